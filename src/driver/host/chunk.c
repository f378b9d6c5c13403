#include "driver/host/chunk.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/sys.h"
#include "core/text.h"
#include "driver/host/facts.h"
#include "driver/host/reasons.h"
#include "driver/host/verbs.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* st_blocks counts these, whatever the block size of the file system. */
#define STAT_BLOCK_BYTES 512

/* mmap(2) and memfd_create(2) take log2 of a hugetlb page size at this bit. */
#define HUGE_SIZE_SHIFT 26

/* A peer that could shrink the file would make this process's next access a SIGBUS. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Smaller pages would not make a node: this ends a walk down the ladder. */
static raffia_status check_node(int node)
{
    char online[HOST_ONLINE_MAX];
    int nodes[HOST_NODES_MAX];
    if (node < 0)
        return RAFFIA_OK;
    const size_t count = host_nodes(nodes, HOST_NODES_MAX);
    for (size_t i = 0; i < count && i < HOST_NODES_MAX; i++)
        if (nodes[i] == node)
            return RAFFIA_OK;
    if (count == 0 || count >= HOST_NODES_MAX) /* not known, or not all of them */
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_NOT_FOUND, "there is no NUMA node %d: this machine's are %s",
                      node, host_nodes_text(online));
}

static raffia_status check_spec(const struct driver_chunk_spec *spec,
                                raffia_fallback_reason *reason)
{
    char bytes[CORE_SIZE_TEXT_MAX], page[CORE_SIZE_TEXT_MAX];
    if (spec->bytes == 0 || !core_is_power_of_two(spec->page_size) ||
        !core_is_aligned(spec->bytes, spec->page_size) || spec->bytes > PTRDIFF_MAX)
        return core_error(
            RAFFIA_ERROR_INVALID_ARGUMENT, "a chunk of %s is not a whole number of pages of %s",
            core_format_size(spec->bytes, bytes), core_format_size(spec->page_size, page));
    if (spec->handle == DRIVER_HANDLE_FABRIC)
        return host_refuse(RAFFIA_REASON_UNSUPPORTED, reason,
                           "the host driver exports chunks as file descriptors only");
    raffia_status status = check_node(spec->numa_node);
    return status ? status : host_check_kind(spec, reason);
}

static bool needs_file(const struct driver_chunk_spec *spec)
{
    return spec->kind == RAFFIA_PAGE_HUGETLB || spec->remappable ||
           spec->handle == DRIVER_HANDLE_FD;
}

/* The kernel answers a file that grows beyond its process's limit with SIGXFSZ, which ends it. */
static raffia_status check_file_size(const struct driver_chunk_spec *spec,
                                     raffia_fallback_reason *reason)
{
    struct rlimit most;
    char bytes[CORE_SIZE_TEXT_MAX], allowed[CORE_SIZE_TEXT_MAX];
    if (getrlimit(RLIMIT_FSIZE, &most) || most.rlim_cur == RLIM_INFINITY ||
        spec->bytes <= most.rlim_cur)
        return RAFFIA_OK;
    return host_refuse(RAFFIA_REASON_LIMIT, reason,
                       "a chunk of %s in %s pages is a memory file, and files of this process may "
                       "have at most %s (ulimit -f)",
                       core_format_size(spec->bytes, bytes), raffia_page_kind_name(spec->kind),
                       core_format_size((size_t)most.rlim_cur, allowed));
}

static raffia_status open_file(const struct driver_chunk_spec *spec, int *fd_p,
                               raffia_fallback_reason *reason)
{
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    if (spec->kind == RAFFIA_PAGE_HUGETLB)
        flags |= MFD_HUGETLB | ((unsigned)__builtin_ctzl(spec->page_size) << HUGE_SIZE_SHIFT);
    raffia_status status = check_file_size(spec, reason);
    if (status)
        return status;
    struct host_failure failure = {.step = HOST_STEP_CREATE};
    int fd = sys_memfd_create("raffia", flags);
    if (fd >= 0 && sys_ftruncate(fd, (off_t)spec->bytes) == 0 && sys_seal(fd, SEALS) == 0) {
        *fd_p = fd;
        return RAFFIA_OK;
    }
    failure.error_number = errno;
    if (fd >= 0)
        sys_close(fd);
    return host_explain(spec, &failure, reason);
}

static raffia_status new_chunk(const struct driver_chunk_spec *spec, struct host_chunk **chunk_p)
{
    struct host_chunk *chunk = core_calloc(1, sizeof *chunk);
    if (!chunk)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    chunk->spec = *spec;
    chunk->fd = -1;
    *chunk_p = chunk;
    return RAFFIA_OK;
}

raffia_status host_chunk_create(int device, const struct driver_chunk_spec *spec,
                                driver_chunk *chunk_p, raffia_fallback_reason *reason)
{
    assert(device == 0);
    (void)device;
    *reason = RAFFIA_REASON_NONE;
    raffia_status status = check_spec(spec, reason);
    if (status)
        return status;
    struct host_chunk *chunk;
    status = new_chunk(spec, &chunk);
    if (status) {
        *reason = RAFFIA_REASON_MEMORY;
        return status;
    }
    if (needs_file(spec))
        status = open_file(spec, &chunk->fd, reason);
    if (status) {
        core_free(chunk);
        return status;
    }
    *chunk_p = (driver_chunk)(void *)chunk;
    return RAFFIA_OK;
}

raffia_status host_chunk_destroy(int device, driver_chunk handle)
{
    (void)device;
    struct host_chunk *chunk = host_chunk_of(handle);
    if (atomic_load(&chunk->mappings) != 0)
        return core_error(RAFFIA_ERROR_BUSY, "a chunk is still mapped and cannot be destroyed");
    if (chunk->fd >= 0)
        sys_close(chunk->fd);
    core_free(chunk);
    return RAFFIA_OK;
}

size_t host_chunk_held(const struct host_chunk *chunk)
{
    struct stat status;
    if (chunk->fd < 0 || sys_fstat(chunk->fd, &status))
        return 0;
    return core_min((size_t)status.st_blocks * STAT_BLOCK_BYTES, chunk->spec.bytes);
}

raffia_status host_chunk_export(int device, driver_chunk handle, enum driver_handle_type type,
                                uint64_t words[DRIVER_HANDLE_WORDS])
{
    (void)device;
    struct host_chunk *chunk = host_chunk_of(handle);
    if (type != DRIVER_HANDLE_FD || chunk->spec.handle != DRIVER_HANDLE_FD)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "the host driver exports only chunks that were created for export as a "
                          "file descriptor");
    int fd = sys_duplicate(chunk->fd);
    if (fd < 0)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "cannot duplicate the descriptor of a chunk for export");
    for (int i = 1; i < DRIVER_HANDLE_WORDS; i++)
        words[i] = 0;
    words[0] = (uint64_t)fd;
    return RAFFIA_OK;
}

/* Whether a file that somebody gave us is what it is said to be, and will stay so. */
static raffia_status check_import(int fd, const struct driver_chunk_spec *spec)
{
    struct stat status;
    struct statfs system;
    if (sys_fstat(fd, &status) || sys_fstatfs(fd, &system))
        return core_error_errno(RAFFIA_ERROR_INVALID_ARGUMENT, errno,
                                "descriptor %d is no chunk to import", fd);
    bool huge = spec->kind == RAFFIA_PAGE_HUGETLB;
    if ((unsigned long)system.f_type != (huge ? HUGETLBFS_MAGIC : TMPFS_MAGIC) ||
        (huge && (size_t)system.f_bsize != spec->page_size))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "descriptor %d is not memory in %s pages of %zu bytes", fd,
                          raffia_page_kind_name(spec->kind), spec->page_size);
    if (status.st_size < 0 || (size_t)status.st_size != spec->bytes)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "descriptor %d holds %lld bytes, not the %zu of the chunk", fd,
                          (long long)status.st_size, spec->bytes);
    int seals = sys_seals(fd);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "descriptor %d can be shrunk by its owner: it lacks F_SEAL_SHRINK", fd);
    return RAFFIA_OK;
}

raffia_status host_chunk_import(int device, enum driver_handle_type type,
                                const uint64_t words[DRIVER_HANDLE_WORDS],
                                const struct driver_chunk_spec *spec, driver_chunk *chunk_p)
{
    assert(device == 0);
    (void)device;
    if (type != DRIVER_HANDLE_FD)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "the host driver imports chunks by file descriptor only");
    if (words[0] > INT_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%llu is no file descriptor",
                          (unsigned long long)words[0]);
    int fd = (int)words[0];
    raffia_fallback_reason reason;
    raffia_status status = check_spec(spec, &reason);
    if (!status)
        status = check_import(fd, spec);
    struct host_chunk *chunk = NULL;
    if (!status)
        status = new_chunk(spec, &chunk);
    if (status)
        return status;
    chunk->fd = sys_duplicate(fd);
    if (chunk->fd < 0) {
        status = core_error_errno(core_status_of_errno(errno), errno,
                                  "cannot duplicate descriptor %d of a chunk to import", fd);
        core_free(chunk);
        return status;
    }
    *chunk_p = (driver_chunk)(void *)chunk;
    return RAFFIA_OK;
}
