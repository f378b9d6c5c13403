#include "driver/host/reasons.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "driver/host/facts.h"
#include "driver/host/process_limits.h"
#include "driver/host/verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Behind a figure of memory that is free: why not all of it can be had. */
#define LEFT_TEXT "; a little is left for page tables and whatever else is running"

raffia_status host_refuse(raffia_fallback_reason reason, raffia_fallback_reason *reason_p,
                          const char *format, ...)
{
    char text[CORE_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *reason_p = reason;
    return core_error(driver_status_of_reason(reason), "%s", text);
}

/* "hugetlb 2 MiB pages, 64 MiB asked": how every sentence about a chunk begins. */
#define REQUEST_TEXT_MAX 128

static const char *request_text(const struct driver_chunk_spec *spec,
                                char text[static REQUEST_TEXT_MAX])
{
    char page[CORE_SIZE_TEXT_MAX], bytes[CORE_SIZE_TEXT_MAX];
    snprintf(text, REQUEST_TEXT_MAX, "%s %s pages, %s asked", raffia_page_kind_name(spec->kind),
             core_format_size(spec->page_size, page), core_format_size(spec->bytes, bytes));
    return text;
}

/* Refuses for the errno of a system call. */
static raffia_status refuse_errno(const struct driver_chunk_spec *spec,
                                  raffia_fallback_reason reason, raffia_fallback_reason *reason_p,
                                  int error_number, const char *what)
{
    char request[REQUEST_TEXT_MAX];
    *reason_p = reason;
    return core_error_errno(driver_status_of_reason(reason), error_number, "%s: %s",
                            request_text(spec, request), what);
}

raffia_status host_check_kind(const struct driver_chunk_spec *spec,
                              raffia_fallback_reason *reason_p)
{
    char request[REQUEST_TEXT_MAX], size[CORE_SIZE_TEXT_MAX];
    size_t exists;
    switch (spec->kind) {
    case RAFFIA_PAGE_HUGETLB:
        return RAFFIA_OK;
    case RAFFIA_PAGE_REGULAR:
        exists = host_base_page_size();
        break;
    case RAFFIA_PAGE_TRANSPARENT: {
        struct host_thp thp;
        host_thp_read(&thp);
        if (!thp.present)
            return host_refuse(RAFFIA_REASON_UNSUPPORTED, reason_p,
                               "%s: this kernel has no transparent huge pages (%s is missing)",
                               request_text(spec, request), HOST_THP_DIRECTORY);
        exists = thp.page_size;
        break;
    }
    default:
        return host_refuse(RAFFIA_REASON_UNSUPPORTED, reason_p,
                           "the host driver has no pages of the kind '%s'",
                           raffia_page_kind_name(spec->kind));
    }
    if (spec->page_size != exists)
        return host_refuse(RAFFIA_REASON_UNSUPPORTED, reason_p,
                           "%s: pages of this kind are %s large on this machine",
                           request_text(spec, request), core_format_size(exists, size));
    return RAFFIA_OK;
}

raffia_status host_check_transparent(const struct driver_chunk_spec *spec,
                                     raffia_fallback_reason *reason_p)
{
    char request[REQUEST_TEXT_MAX];
    if (spec->kind != RAFFIA_PAGE_TRANSPARENT)
        return RAFFIA_OK;
    struct host_thp thp;
    host_thp_read(&thp);
    bool shared = spec->remappable || spec->handle == DRIVER_HANDLE_FD;
    if (strcmp(thp.anonymous, "never") == 0)
        return host_refuse(RAFFIA_REASON_DISABLED, reason_p,
                           "%s: transparent huge pages are switched off; to allow them where a "
                           "program asks, write 'madvise' to %s",
                           request_text(spec, request), thp.anonymous_path);
    if (shared && strcmp(thp.shared, "deny") == 0)
        return host_refuse(RAFFIA_REASON_DISABLED, reason_p,
                           "%s: huge pages in shared memory are switched off; to allow them where "
                           "a program asks, write 'advise' to %s/shmem_enabled",
                           request_text(spec, request), HOST_THP_DIRECTORY);
    if (thp.process_disabled)
        return host_refuse(RAFFIA_REASON_DISABLED, reason_p,
                           "%s: transparent huge pages are switched off for this process "
                           "(prctl(PR_SET_THP_DISABLE); THP_enabled is 0 in /proc/self/status)",
                           request_text(spec, request));
    return RAFFIA_OK;
}

static raffia_status refuse_node(const struct driver_chunk_spec *spec, uint64_t room,
                                 raffia_fallback_reason *reason_p)
{
    char request[REQUEST_TEXT_MAX], free_text[CORE_SIZE_TEXT_MAX];
    return host_refuse(
        RAFFIA_REASON_NODE, reason_p, "%s: NUMA node %d has %s free (%s/node%d/meminfo)" LEFT_TEXT,
        request_text(spec, request), spec->numa_node, core_format_size((size_t)room, free_text),
        HOST_NODES_DIRECTORY, spec->numa_node);
}

static raffia_status refuse_limit(const struct driver_chunk_spec *spec,
                                  const struct host_limit *limit, raffia_fallback_reason *reason_p)
{
    char request[REQUEST_TEXT_MAX], most[CORE_SIZE_TEXT_MAX], used[CORE_SIZE_TEXT_MAX];
    return host_refuse(RAFFIA_REASON_CGROUP, reason_p,
                       "%s: the control group allows %s, of which %s are used (%s)%s",
                       request_text(spec, request), core_format_size((size_t)limit->limit, most),
                       core_format_size((size_t)limit->usage, used), limit->path,
                       spec->kind == RAFFIA_PAGE_HUGETLB ? "" : LEFT_TEXT);
}

raffia_status host_check_room(const struct driver_chunk_spec *spec, size_t bytes,
                              raffia_fallback_reason *reason_p)
{
    if (spec->kind == RAFFIA_PAGE_HUGETLB || bytes == 0)
        return RAFFIA_OK;
    struct host_memory memory;
    host_memory_read(&memory);
    if (bytes > host_fillable(host_limit_room(&memory.cgroup)))
        return refuse_limit(spec, &memory.cgroup, reason_p);
    if (bytes > host_fillable(memory.available)) {
        char request[REQUEST_TEXT_MAX], available[CORE_SIZE_TEXT_MAX], total[CORE_SIZE_TEXT_MAX];
        return host_refuse(
            RAFFIA_REASON_MEMORY, reason_p,
            "%s: the machine has %s available of %s (MemAvailable in /proc/meminfo)" LEFT_TEXT,
            request_text(spec, request), core_format_size((size_t)memory.available, available),
            core_format_size((size_t)memory.total, total));
    }
    if (spec->numa_node >= 0) {
        uint64_t room = host_node_room(spec->numa_node);
        if (bytes > host_fillable(room))
            return refuse_node(spec, room, reason_p);
    }
    return RAFFIA_OK;
}

static raffia_status explain_create(const struct driver_chunk_spec *spec, int error_number,
                                    raffia_fallback_reason *reason_p)
{
    char request[REQUEST_TEXT_MAX];
    switch (error_number) {
    case EMFILE:
    case ENFILE:
        return host_refuse(RAFFIA_REASON_LIMIT, reason_p,
                           "%s: each such chunk needs a file descriptor, and the process may have "
                           "%" PRIu64 " open (ulimit -n; fs.file-max for the machine)",
                           request_text(spec, request), host_open_files_limit());
    case EPERM:
    case EACCES:
        return refuse_errno(spec, RAFFIA_REASON_PERMISSION, reason_p, error_number,
                            "memfd_create or sealing is not permitted (a seccomp filter?)");
    case ENOMEM:
    case ENOSPC:
        return refuse_errno(spec, RAFFIA_REASON_MEMORY, reason_p, error_number,
                            "the kernel cannot make its file");
    default:
        return refuse_errno(spec, RAFFIA_REASON_UNSUPPORTED, reason_p, error_number,
                            spec->kind == RAFFIA_PAGE_HUGETLB
                                ? "this kernel has no such pages (it lists its own in "
                                  "/sys/kernel/mm/hugepages)"
                                : "memfd_create does not work here");
    }
}

static raffia_status refuse_pool(const struct driver_chunk_spec *spec,
                                 const struct host_hugetlb_pool *pool,
                                 raffia_fallback_reason *reason_p)
{
    char page[CORE_SIZE_TEXT_MAX];
    /* Whoever sets pages aside wants to do it once, not chunk by chunk. */
    uint64_t asked = core_max(spec->bytes, spec->total_bytes) / spec->page_size;
    uint64_t missing = host_subtract(asked, host_hugetlb_available(pool));
    return host_refuse(
        RAFFIA_REASON_POOL_EMPTY, reason_p,
        "hugetlb %s pages: %" PRIu64 " asked, %" PRIu64 " free (%" PRIu64
        " of them reserved), %" PRIu64 " of %" PRIu64 " overcommit pages used; to have %" PRIu64
        " more: echo %" PRIu64 " | sudo tee %s/hugepages-%zukB/nr_hugepages, and read it back",
        core_format_size(spec->page_size, page), asked, pool->free, pool->reserved, pool->surplus,
        pool->overcommit, missing, host_add(host_subtract(pool->total, pool->surplus), missing),
        HOST_HUGEPAGES_DIRECTORY, spec->page_size / 1024);
}

/* The addresses of a chunk are the process's already, but for those of the trial that hugetlb pages
 * are reserved by (mapping.c). Private memory becomes data when it is made writable; files never
 * are. */
static unsigned counted_in_place(const struct driver_chunk_spec *spec)
{
    return spec->remappable || spec->handle == DRIVER_HANDLE_FD ? 0 : HOST_COUNTED_DATA;
}

static raffia_status explain_map(const struct driver_chunk_spec *spec, int error_number,
                                 raffia_fallback_reason *reason_p)
{
    char limit[HOST_LIMIT_TEXT_MAX];
    if (spec->kind == RAFFIA_PAGE_HUGETLB && error_number == ENOMEM) {
        struct host_hugetlb_pool pool;
        host_hugetlb_pool_read(spec->page_size, &pool);
        /* The kernel charges the control group before it looks at the pool. */
        if (host_limit_room(&pool.reservation) < spec->bytes)
            return refuse_limit(spec, &pool.reservation, reason_p);
        if (host_hugetlb_available(&pool) < spec->bytes / spec->page_size)
            return refuse_pool(spec, &pool, reason_p);
        return refuse_errno(spec, RAFFIA_REASON_LIMIT, reason_p, error_number,
                            *host_process_limit_text(spec->bytes, HOST_COUNTED_ADDRESSES, limit)
                                ? limit
                                : "there are enough pages, but they cannot be mapped "
                                  "(vm.max_map_count, or another process took them meanwhile)");
    }
    if (error_number == ENOMEM)
        return refuse_errno(spec, RAFFIA_REASON_LIMIT, reason_p, error_number,
                            *host_process_limit_text(spec->bytes, counted_in_place(spec), limit)
                                ? limit
                                : "mmap is refused (vm.max_map_count, or the commit limit of "
                                  "vm.overcommit_memory=2)");
    if (error_number == EPERM || error_number == EACCES)
        return refuse_errno(spec, RAFFIA_REASON_PERMISSION, reason_p, error_number,
                            "mmap is not permitted");
    return refuse_errno(spec, RAFFIA_REASON_UNSUPPORTED, reason_p, error_number, "mmap is refused");
}

/* The reservation was granted and yet a page could not be had: a control group that counts pages
 * when they are touched, or a node, since the reservation knows nothing of nodes. */
static raffia_status explain_hugetlb_fill(const struct driver_chunk_spec *spec, int error_number,
                                          raffia_fallback_reason *reason_p)
{
    char request[REQUEST_TEXT_MAX];
    struct host_hugetlb_pool pool;
    host_hugetlb_pool_read(spec->page_size, &pool);
    if (host_limit_room(&pool.fault) < spec->bytes)
        return refuse_limit(spec, &pool.fault, reason_p);
    for (size_t i = 0; i < pool.node_count; i++)
        if (pool.nodes[i].node == spec->numa_node &&
            pool.nodes[i].free < spec->bytes / spec->page_size)
            return host_refuse(
                RAFFIA_REASON_NODE, reason_p,
                "%s: NUMA node %d has %" PRIu64 " of these pages free and the machine %" PRIu64
                "; more for this node: %s/node%d/hugepages/hugepages-%zukB/nr_hugepages",
                request_text(spec, request), spec->numa_node, pool.nodes[i].free, pool.free,
                HOST_NODES_DIRECTORY, spec->numa_node, spec->page_size / 1024);
    if (pool.node_count > 1)
        return refuse_errno(spec, RAFFIA_REASON_NODE, reason_p, error_number,
                            "the pages reserved lie on NUMA nodes that this process may not use "
                            "(numactl, cpuset.mems)");
    return refuse_errno(spec, RAFFIA_REASON_FAULT, reason_p, error_number,
                        "pages that were reserved could not be had");
}

static raffia_status explain_fill(const struct driver_chunk_spec *spec, int error_number,
                                  raffia_fallback_reason *reason_p)
{
    if (error_number == EINVAL)
        return refuse_errno(spec, RAFFIA_REASON_UNSUPPORTED, reason_p, error_number,
                            "the kernel lacks MADV_POPULATE_WRITE (Linux 5.14)");
    if (error_number == EHWPOISON)
        return refuse_errno(spec, RAFFIA_REASON_FAULT, reason_p, error_number,
                            "a page of the machine's memory is broken");
    if (spec->kind == RAFFIA_PAGE_HUGETLB)
        return explain_hugetlb_fill(spec, error_number, reason_p);
    raffia_status status = host_check_room(spec, spec->bytes, reason_p);
    if (status)
        return status;
    if (error_number == ENOMEM)
        return refuse_errno(spec, RAFFIA_REASON_MEMORY, reason_p, error_number,
                            "the kernel ran out of memory while it filled them");
    return refuse_errno(spec, RAFFIA_REASON_FAULT, reason_p, error_number,
                        "not every page could be filled");
}

static raffia_status explain_verify(const struct driver_chunk_spec *spec,
                                    const struct host_failure *failure,
                                    raffia_fallback_reason *reason_p)
{
    char request[REQUEST_TEXT_MAX], small[CORE_SIZE_TEXT_MAX];
    if (!failure->verified)
        return host_refuse(RAFFIA_REASON_SMALLER, reason_p,
                           "%s: the page size cannot be read back (neither /proc/self/pagemap nor "
                           "/proc/self/smaps can be read), so nothing is promised",
                           request_text(spec, request));
    if (spec->kind == RAFFIA_PAGE_HUGETLB)
        return host_refuse(RAFFIA_REASON_SMALLER, reason_p,
                           "%s: the kernel gave pages of another size (%s)",
                           request_text(spec, request), failure->evidence);
    return host_refuse(RAFFIA_REASON_FAULT, reason_p,
                       "%s: %s of it came in smaller pages (read back from %s), also after "
                       "MADV_COLLAPSE: memory is fragmented; as root, echo 1 > "
                       "/proc/sys/vm/compact_memory helps for a while",
                       request_text(spec, request), core_format_size(failure->small_bytes, small),
                       failure->evidence);
}

raffia_status host_explain(const struct driver_chunk_spec *spec, const struct host_failure *failure,
                           raffia_fallback_reason *reason_p)
{
    int error_number = failure->error_number;
    switch (failure->step) {
    case HOST_STEP_CREATE:
        return explain_create(spec, error_number, reason_p);
    case HOST_STEP_MAP:
        return explain_map(spec, error_number, reason_p);
    case HOST_STEP_BIND:
        return refuse_errno(spec, RAFFIA_REASON_NODE, reason_p, error_number,
                            "the memory cannot be bound to its NUMA node (does it exist, and does "
                            "cpuset.mems allow it?)");
    case HOST_STEP_ADVISE:
        if (error_number == EINVAL)
            return refuse_errno(spec, RAFFIA_REASON_UNSUPPORTED, reason_p, error_number,
                                "the kernel was built without transparent huge pages");
        return refuse_errno(spec, RAFFIA_REASON_LIMIT, reason_p, error_number,
                            "advice about huge pages is refused (vm.max_map_count?)");
    case HOST_STEP_FILL:
        return explain_fill(spec, error_number, reason_p);
    case HOST_STEP_VERIFY:
        break;
    }
    return explain_verify(spec, failure, reason_p);
}
