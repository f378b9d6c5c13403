#include "driver/host/pagemap.h"

#include "core/checked.h"
#include "core/sys.h"
#include "driver/host/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* Declarations of the kernel's interface, which is newer than the headers of many systems. Each is
 * recognised by its size, so they must not change. */
struct scan_region {
    uint64_t start, end, categories;
};

struct scan_request {
    uint64_t size, flags, start, end, walk_end;
    uint64_t regions, region_count, pages_max;
    uint64_t inverted, required, any_of, returned;
};

_Static_assert(sizeof(struct scan_request) == 96, "layout of PAGEMAP_SCAN's argument");

struct mapping_query {
    uint64_t size, flags, address;
    uint64_t start, end, mapping_flags, page_size, offset, inode;
    uint32_t device_major, device_minor, name_size, build_id_size;
    uint64_t name, build_id;
};

_Static_assert(sizeof(struct mapping_query) == 104, "layout of PROCMAP_QUERY's argument");

#define PAGEMAP_SCAN_REQUEST  _IOWR('f', 16, struct scan_request)
#define PAGEMAP_IS_HUGE       ((uint64_t)1 << 6)
#define PROCMAP_QUERY_REQUEST _IOWR('f', 17, struct mapping_query)
#define PROCMAP_OR_NEXT       ((uint64_t)0x10)

/* Regions fetched by one call. Neighbours of one kind come as one region. */
#define REGIONS_PER_CALL 64

bool host_huge_bytes_by_scan(const void *at, size_t bytes, size_t *huge_p)
{
    int fd = sys_open("/proc/self/pagemap", O_RDONLY);
    if (fd < 0)
        return false;
    struct scan_region regions[REGIONS_PER_CALL] = {{0}};
    uint64_t end = (uint64_t)(uintptr_t)at + bytes;
    struct scan_request request = {
        .size = sizeof request,
        .start = (uint64_t)(uintptr_t)at,
        .end = end,
        .regions = (uint64_t)(uintptr_t)regions,
        .region_count = REGIONS_PER_CALL,
        .required = PAGEMAP_IS_HUGE,
        .returned = PAGEMAP_IS_HUGE,
    };
    size_t huge = 0;
    bool works = true;
    while (works && request.start < end) {
        int count = sys_ioctl(fd, PAGEMAP_SCAN_REQUEST, &request);
        if (count < 0 && errno == EINTR)
            continue;
        for (int i = 0; i < count; i++)
            huge += (size_t)(regions[i].end - regions[i].start);
        works = count >= 0 && request.walk_end > request.start;
        request.start = request.walk_end;
    }
    sys_close(fd);
    if (works)
        *huge_p = huge;
    return works;
}

bool host_pagemap_scan_works(void)
{
    static const char probe;
    size_t page_size = host_base_page_size(), huge;
    const char *page = &probe - ((uintptr_t)&probe & (page_size - 1));
    return host_huge_bytes_by_scan(page, page_size, &huge);
}

bool host_mapped_sizes_by_query(const void *at, size_t bytes, size_t expected,
                                struct host_mapped_sizes *sizes)
{
    int fd = sys_open("/proc/self/maps", O_RDONLY);
    if (fd < 0)
        return false;
    uint64_t address = (uint64_t)(uintptr_t)at, end = address + bytes;
    struct host_mapped_sizes seen = {0};
    bool works = true;
    while (works && address < end) {
        struct mapping_query query = {
            .size = sizeof query, .flags = PROCMAP_OR_NEXT, .address = address};
        if (sys_ioctl(fd, PROCMAP_QUERY_REQUEST, &query)) {
            works = errno == ENOENT; /* nothing mapped from here on */
            break;
        }
        if (query.start >= end)
            break;
        uint64_t from = query.start > address ? query.start : address;
        address = query.end < end ? query.end : end;
        size_t overlap = (size_t)(address - from), page_size = (size_t)query.page_size;
        seen.covered += overlap;
        seen.smallest = seen.smallest ? core_min(seen.smallest, page_size) : page_size;
        if (page_size >= expected)
            seen.conforming += overlap;
    }
    sys_close(fd);
    if (works)
        *sizes = seen;
    return works;
}
