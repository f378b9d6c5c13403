/* Evidence from /proc/self/smaps, read as a stream: it may be many megabytes long. */
#include "core/checked.h"
#include "core/memory.h"
#include "core/sys.h"
#include "driver/host/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)64 << 10)

/* What smaps says about one mapping. */
struct mapping {
    uintptr_t start, end;
    size_t page_size;
    size_t huge; /* mapped by whole page-directory entries */
};

/* Called for each mapping that reaches into the range. */
typedef void (*visitor)(void *context, const struct mapping *mapping);

struct walk {
    uintptr_t start, end;
    struct mapping mapping; /* the one whose lines are being read; end 0: none yet */
    bool done;
    visitor visit;
    void *context;
};

static void finish_mapping(struct walk *walk)
{
    if (walk->mapping.end > walk->start && walk->mapping.start < walk->end)
        walk->visit(walk->context, &walk->mapping);
}

static void read_line(struct walk *walk, const char *line)
{
    struct mapping header = {0};
    size_t kilobytes;
    char key[32];
    if (*line >= 'A' && *line <= 'Z') {
        if (sscanf(line, "%31[^:]: %zu kB", key, &kilobytes) != 2)
            return;
        if (strcmp(key, "KernelPageSize") == 0)
            walk->mapping.page_size = kilobytes * 1024;
        else if (strcmp(key, "AnonHugePages") == 0 || strcmp(key, "ShmemPmdMapped") == 0 ||
                 strcmp(key, "FilePmdMapped") == 0)
            walk->mapping.huge += kilobytes * 1024;
    } else if (sscanf(line, "%zx-%zx ", &header.start, &header.end) == 2) {
        finish_mapping(walk);
        walk->mapping = header;
        walk->done = header.start >= walk->end;
    }
}

/* Hands over the whole lines in the buffer; returns how many bytes of an unfinished one remain, now
 * at its start. */
static size_t read_lines(struct walk *walk, char *buffer, size_t length)
{
    char *line = buffer;
    for (char *end; !walk->done && (end = memchr(line, '\n', length - (size_t)(line - buffer)));
         line = end + 1) {
        *end = '\0';
        read_line(walk, line);
    }
    size_t rest = length - (size_t)(line - buffer);
    memmove(buffer, line, rest);
    return rest;
}

static bool walk_smaps(struct walk *walk)
{
    int fd = sys_open("/proc/self/smaps", O_RDONLY);
    if (fd < 0)
        return false;
    char *buffer = core_malloc(BUFFER_BYTES);
    size_t length = 0;
    off_t offset = 0;
    ssize_t got = buffer ? 1 : -1;
    while (got > 0 && !walk->done) {
        got = sys_pread(fd, buffer + length, BUFFER_BYTES - length, offset);
        if (got < 0 && errno == EINTR) {
            got = 1;
            continue;
        }
        if (got > 0) {
            offset += got;
            length = read_lines(walk, buffer, length + (size_t)got);
        }
        if (length == BUFFER_BYTES)
            got = -1; /* a line as long as the buffer: not smaps */
    }
    if (got == 0 && !walk->done)
        finish_mapping(walk);
    core_free(buffer);
    sys_close(fd);
    return got >= 0;
}

static size_t overlap(const struct walk *walk, const struct mapping *mapping)
{
    return core_min(walk->end, mapping->end) - core_max(walk->start, mapping->start);
}

struct huge_count {
    struct walk walk;
    size_t huge;
};

static void count_huge(void *context, const struct mapping *mapping)
{
    struct huge_count *count = context;
    size_t inside = overlap(&count->walk, mapping);
    size_t outside = mapping->end - mapping->start - inside;
    if (mapping->huge > outside)
        count->huge += core_min(mapping->huge - outside, inside);
}

bool host_huge_bytes_by_smaps(const void *at, size_t bytes, size_t *huge_p)
{
    struct huge_count count = {.walk = {.start = (uintptr_t)at, .end = (uintptr_t)at + bytes}};
    count.walk.visit = count_huge;
    count.walk.context = &count;
    if (!walk_smaps(&count.walk))
        return false;
    *huge_p = count.huge;
    return true;
}

struct size_count {
    struct walk walk;
    size_t expected;
    struct host_mapped_sizes sizes;
};

static void count_sizes(void *context, const struct mapping *mapping)
{
    struct size_count *count = context;
    struct host_mapped_sizes *sizes = &count->sizes;
    size_t inside = overlap(&count->walk, mapping);
    sizes->covered += inside;
    sizes->smallest =
        sizes->smallest ? core_min(sizes->smallest, mapping->page_size) : mapping->page_size;
    if (mapping->page_size >= count->expected)
        sizes->conforming += inside;
}

bool host_mapped_sizes_by_smaps(const void *at, size_t bytes, size_t expected,
                                struct host_mapped_sizes *sizes)
{
    struct size_count count = {.walk = {.start = (uintptr_t)at, .end = (uintptr_t)at + bytes},
                               .expected = expected};
    count.walk.visit = count_sizes;
    count.walk.context = &count;
    if (!walk_smaps(&count.walk))
        return false;
    *sizes = count.sizes;
    return true;
}
