#include "driver/host/facts.h"

#include "core/memory.h"
#include "core/sys.h"
#include "driver/host/claims.h"
#include "driver/host/pagemap.h"
#include "driver/host/process_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t host_base_page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Page tables of the memory itself: eight bytes for each page of 4 KiB, and the kernel deposits as
 * much for a huge page that might be split. */
#define PAGE_TABLE_SHARE 512

/* What a program that got its memory still takes to use it: stacks of threads, files it opens. If
 * nothing were left for that, the next touch of anything would end it. */
#define LEFT_TO_OTHERS ((uint64_t)2 << 20)

void host_memory_read(struct host_memory *memory)
{
    uint64_t claimed = host_claims_bytes();
    memory->total = memory->available = HOST_UNLIMITED;
    char *text = host_read_whole("/proc/meminfo");
    if (text) {
        host_find_kilobytes(text, "MemTotal:", &memory->total);
        host_find_kilobytes(text, "MemAvailable:", &memory->available);
    }
    core_free(text);
    host_memory_limit(&memory->cgroup);
    if (memory->available != HOST_UNLIMITED)
        memory->available = host_subtract(memory->available, claimed);
    if (memory->cgroup.limit != HOST_UNLIMITED)
        memory->cgroup.usage = host_add(memory->cgroup.usage, claimed);
}

uint64_t host_memory_room(const struct host_memory *memory)
{
    uint64_t below_limit = host_limit_room(&memory->cgroup);
    return memory->available < below_limit ? memory->available : below_limit;
}

uint64_t host_fillable(uint64_t room)
{
    if (room == HOST_UNLIMITED)
        return room;
    uint64_t left = host_subtract(room, LEFT_TO_OTHERS);
    return left - left / (PAGE_TABLE_SHARE + 1);
}

/* "0-1,4": calls nothing and allocates nothing; a malformed list ends where it is malformed. */
static size_t parse_list(const char *text, int *numbers, size_t capacity)
{
    size_t count = 0;
    for (const char *cursor = text; *cursor >= '0' && *cursor <= '9';) {
        char *end;
        long first = strtol(cursor, &end, 10);
        long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        for (long number = first; number <= last && number - first < HOST_NODES_MAX; number++) {
            if (count < capacity)
                numbers[count] = (int)number;
            count++;
        }
        cursor = *end == ',' ? end + 1 : end;
    }
    return count;
}

const char *host_nodes_text(char text[static HOST_ONLINE_MAX])
{
    if (sys_read_text(HOST_NODES_DIRECTORY "/online", text, HOST_ONLINE_MAX) <= 0)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return text;
}

size_t host_nodes(int *nodes, size_t capacity)
{
    char text[HOST_ONLINE_MAX];
    if (*host_nodes_text(text) == '\0')
        return 0;
    return parse_list(text, nodes, capacity);
}

uint64_t host_node_room(int node)
{
    char path[HOST_PATH_MAX];
    snprintf(path, sizeof path, HOST_NODES_DIRECTORY "/node%d/meminfo", node);
    char *text = host_read_whole(path);
    if (!text)
        return HOST_UNLIMITED;
    static const char *const parts[] = {"MemFree:", "Active(file):", "Inactive(file):"};
    uint64_t room = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char key[64];
        uint64_t bytes;
        snprintf(key, sizeof key, "Node %d %s", node, parts[i]);
        if (host_find_kilobytes(text, key, &bytes))
            room = host_add(room, bytes);
    }
    core_free(text);
    return room;
}

uint64_t host_open_files_limit(void)
{
    return host_process_limit("Max open files");
}

/* Sums the columns of /proc/buddyinfo that hold blocks of at least `block` bytes. Column n counts
 * free blocks of 2^n base pages. */
static uint64_t free_in_blocks(size_t block)
{
    char *text = host_read_whole("/proc/buddyinfo");
    uint64_t sum = 0;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
        char *cursor = strstr(line, "zone");
        if (!cursor)
            continue;
        cursor += strlen("zone");
        cursor += strspn(cursor, " ");
        cursor += strcspn(cursor, " ");
        char *end = cursor;
        for (uint64_t bytes = host_base_page_size();; bytes *= 2) {
            uint64_t count = strtoull(cursor, &end, 10);
            if (end == cursor)
                break;
            if (bytes >= block)
                sum = host_add(sum, count * bytes);
            cursor = end;
        }
    }
    core_free(text);
    return sum;
}

void host_facts_read(struct host_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    facts->base_page_size = host_base_page_size();
    if (sys_read_text("/proc/sys/kernel/osrelease", facts->kernel_release,
                      sizeof facts->kernel_release) < 0)
        facts->kernel_release[0] = '\0';
    facts->kernel_release[strcspn(facts->kernel_release, "\n")] = '\0';
    host_memory_read(&facts->memory);
    host_thp_read(&facts->thp);
    size_t sizes[HOST_POOLS_MAX];
    size_t count = host_hugetlb_sizes(sizes, HOST_POOLS_MAX);
    facts->pool_count = count < HOST_POOLS_MAX ? count : HOST_POOLS_MAX;
    for (size_t i = 0; i < facts->pool_count; i++)
        host_hugetlb_pool_read(sizes[i], &facts->pools[i]);
    size_t nodes = host_nodes(NULL, 0);
    facts->node_count = nodes ? nodes : 1;
    facts->pagemap_scan = host_pagemap_scan_works();
    if (facts->thp.page_size)
        facts->huge_blocks_bytes = free_in_blocks(facts->thp.page_size);
    facts->locked_memory_limit = host_process_limit("Max locked memory");
    facts->open_files_limit = host_open_files_limit();
}
