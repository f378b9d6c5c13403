/* Facts about hugetlb pools and transparent huge pages. */
#include "core/checked.h"
#include "core/memory.h"
#include "core/sys.h"
#include "driver/host/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kernels have fewer page sizes than this. */
#define SIZES_MAX 16

static int larger_first(const void *a, const void *b)
{
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    return (left < right) - (left > right);
}

size_t host_hugetlb_sizes(size_t *sizes, size_t capacity)
{
    DIR *directory = sys_open_directory(HOST_HUGEPAGES_DIRECTORY);
    if (!directory)
        return 0;
    size_t all[SIZES_MAX] = {0}, count = 0;
    for (const struct dirent *entry; count < SIZES_MAX && (entry = readdir(directory));) {
        size_t kilobytes, bytes;
        if (sscanf(entry->d_name, "hugepages-%zukB", &kilobytes) == 1 &&
            core_multiply(kilobytes, 1024, &bytes) && core_is_power_of_two(bytes))
            all[count++] = bytes;
    }
    closedir(directory);
    qsort(all, count, sizeof *all, larger_first);
    memcpy(sizes, all, core_min(count, capacity) * sizeof *all);
    return count;
}

/* 0 where the file is missing. */
static uint64_t number_in(const char *directory, const char *name)
{
    char path[HOST_PATH_MAX];
    uint64_t value;
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path ||
        sys_read_number(path, &value))
        return 0;
    return value;
}

static void read_nodes(struct host_hugetlb_pool *pool)
{
    int nodes[HOST_NODES_MAX];
    pool->node_count = core_min(host_nodes(nodes, HOST_NODES_MAX), HOST_NODES_MAX);
    for (size_t i = 0; i < pool->node_count; i++) {
        char directory[HOST_PATH_MAX];
        snprintf(directory, sizeof directory,
                 HOST_NODES_DIRECTORY "/node%d/hugepages/hugepages-%zukB", nodes[i],
                 pool->page_size / 1024);
        pool->nodes[i] = (struct host_node_pages){
            .node = nodes[i],
            .total = number_in(directory, "nr_hugepages"),
            .free = number_in(directory, "free_hugepages"),
            .surplus = number_in(directory, "surplus_hugepages"),
        };
    }
}

void host_hugetlb_pool_read(size_t page_size, struct host_hugetlb_pool *pool)
{
    char directory[HOST_PATH_MAX];
    snprintf(directory, sizeof directory, HOST_HUGEPAGES_DIRECTORY "/hugepages-%zukB",
             page_size / 1024);
    pool->page_size = page_size;
    pool->total = number_in(directory, "nr_hugepages");
    pool->free = number_in(directory, "free_hugepages");
    pool->reserved = number_in(directory, "resv_hugepages");
    pool->surplus = number_in(directory, "surplus_hugepages");
    pool->overcommit = number_in(directory, "nr_overcommit_hugepages");
    read_nodes(pool);
    host_hugetlb_limits(page_size, &pool->fault, &pool->reservation);
}

uint64_t host_hugetlb_available(const struct host_hugetlb_pool *pool)
{
    return host_add(host_subtract(pool->free, pool->reserved),
                    host_subtract(pool->overcommit, pool->surplus));
}

/* The word in brackets of a file such as "always [madvise] never"; "" if there is none. */
static void read_choice(const char *path, char word[static HOST_THP_MODE_MAX])
{
    char text[256];
    word[0] = '\0';
    if (sys_read_text(path, text, sizeof text) <= 0)
        return;
    char *start = strchr(text, '[');
    char *end = start ? strchr(start, ']') : NULL;
    if (!end)
        return;
    *end = '\0';
    snprintf(word, HOST_THP_MODE_MAX, "%s", start + 1);
}

/* Newer kernels have a mode for each size, which counts unless it says "inherit". */
static void read_anonymous_mode(struct host_thp *thp)
{
    snprintf(thp->anonymous_path, sizeof thp->anonymous_path,
             HOST_THP_DIRECTORY "/hugepages-%zukB/enabled", thp->page_size / 1024);
    read_choice(thp->anonymous_path, thp->anonymous);
    if (thp->anonymous[0] && strcmp(thp->anonymous, "inherit") != 0)
        return;
    snprintf(thp->anonymous_path, sizeof thp->anonymous_path, HOST_THP_DIRECTORY "/enabled");
    read_choice(thp->anonymous_path, thp->anonymous);
}

size_t host_thp_page_size(void)
{
    uint64_t page_size;
    if (sys_read_number(HOST_THP_DIRECTORY "/hpage_pmd_size", &page_size) ||
        !core_is_power_of_two((size_t)page_size))
        return 0;
    return (size_t)page_size;
}

void host_thp_read(struct host_thp *thp)
{
    memset(thp, 0, sizeof *thp);
    thp->page_size = host_thp_page_size();
    thp->present = thp->page_size > 0;
    if (!thp->present)
        return;
    read_anonymous_mode(thp);
    read_choice(HOST_THP_DIRECTORY "/shmem_enabled", thp->shared);
    read_choice(HOST_THP_DIRECTORY "/defrag", thp->defrag);
    char *status = host_read_whole("/proc/self/status");
    uint64_t enabled;
    if (status && host_find_number(status, "THP_enabled:", &enabled))
        thp->process_disabled = enabled == 0;
    core_free(status);
}
