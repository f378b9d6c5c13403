/* Putting chunks behind addresses and taking them away. */
#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/sys.h"
#include "driver/host/chunk.h"
#include "driver/host/claims.h"
#include "driver/host/fill.h"
#include "driver/host/reasons.h"
#include "driver/host/verbs.h"
#include "driver/host/verify.h"

#include <assert.h>
#include <errno.h>
#include <sys/mman.h>

/* Makes addresses reserved and empty, whatever was there. */
static int empty_range(void *at, size_t bytes)
{
    void *base = sys_mmap(at, bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return base == MAP_FAILED ? errno : 0;
}

static bool fail(struct host_failure *failure, enum host_step step, int error_number)
{
    failure->step = step;
    failure->error_number = error_number;
    return false;
}

/*
 * mmap(2) with MAP_FIXED takes away what was at the addresses before it asks for memory, and where
 * the memory is refused it leaves them to whoever maps next: the stack of another thread, say,
 * which an undo would then wipe out. So nothing here may be refused once the old mapping is gone.
 */

/* A shared hugetlb mapping makes the file's reservation, which outlives it: with that, the mapping
 * in place asks for nothing more. (The trial counts against ulimit -v while it stands.) */
static int reserve_hugetlb(int fd, size_t bytes)
{
    void *trial = sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (trial == MAP_FAILED)
        return errno;
    sys_munmap(trial, bytes);
    return 0;
}

/* Files in ordinary pages are charged as they are filled, and mapping them asks for no memory. */
static bool place_file(const struct host_chunk *chunk, void *at, struct host_failure *failure)
{
    const struct driver_chunk_spec *spec = &chunk->spec;
    const int error_number =
        spec->kind == RAFFIA_PAGE_HUGETLB ? reserve_hugetlb(chunk->fd, spec->bytes) : 0;
    if (error_number)
        return fail(failure, HOST_STEP_MAP, error_number);
    if (sys_mmap(at, spec->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, chunk->fd, 0) ==
        MAP_FAILED)
        return fail(failure, HOST_STEP_MAP, errno);
    return true;
}

/* The reserved addresses are private and anonymous already. A kernel that counts every promise
 * (vm.overcommit_memory 2) refuses here; the others leave it to the check of the room. */
static bool place_anonymous(const struct host_chunk *chunk, void *at, struct host_failure *failure)
{
    if (sys_mprotect(at, chunk->spec.bytes, PROT_READ | PROT_WRITE))
        return fail(failure, HOST_STEP_MAP, errno);
    return true;
}

static bool place(const struct host_chunk *chunk, void *at, struct host_failure *failure)
{
    return chunk->fd >= 0 ? place_file(chunk, at, failure) : place_anonymous(chunk, at, failure);
}

/* What the kernel must know before the first touch. */
static bool advise(const struct driver_chunk_spec *spec, void *at, struct host_failure *failure)
{
    if (spec->numa_node >= 0 && sys_mbind(at, spec->bytes, spec->numa_node))
        return fail(failure, HOST_STEP_BIND, errno);
    if (spec->kind == RAFFIA_PAGE_TRANSPARENT && sys_madvise(at, spec->bytes, MADV_HUGEPAGE))
        return fail(failure, HOST_STEP_ADVISE, errno);
    /* EINVAL: a kernel without transparent huge pages, which will not make any. */
    if (spec->kind == RAFFIA_PAGE_REGULAR && sys_madvise(at, spec->bytes, MADV_NOHUGEPAGE) &&
        errno != EINVAL)
        return fail(failure, HOST_STEP_ADVISE, errno);
    return true;
}

static bool fill(const struct driver_chunk_spec *spec, void *at, struct host_claim *claim,
                 struct host_failure *failure)
{
    int error_number = host_fill(at, spec->bytes, spec->page_size, spec->threads, claim);
    return error_number ? fail(failure, HOST_STEP_FILL, error_number) : true;
}

static bool conforms(const struct host_chunk *chunk, const void *at, struct host_failure *failure)
{
    struct driver_page_evidence evidence;
    host_read_chunk_pages(chunk, at, &evidence);
    if (evidence.verified && evidence.conforming >= chunk->spec.bytes)
        return true;
    failure->evidence = evidence.source;
    failure->small_bytes = chunk->spec.bytes - core_min(evidence.conforming, chunk->spec.bytes);
    failure->verified = evidence.verified;
    return fail(failure, HOST_STEP_VERIFY, 0);
}

/* Shared memory gets no transparent huge pages by faulting unless the administrator says so, but
 * can be collapsed; anonymous memory is collapsed only where faulting gave small pages. So is
 * shared memory that was filled before: its pages are as large as they were, a fault maps them
 * whole, and a collapse takes milliseconds even where there is nothing to do. */
static bool fill_and_verify(struct host_chunk *chunk, void *at, bool was_filled,
                            struct host_claim *claim, struct host_failure *failure)
{
    const struct driver_chunk_spec *spec = &chunk->spec;
    bool transparent = spec->kind == RAFFIA_PAGE_TRANSPARENT;
    if (transparent && chunk->fd >= 0 && !was_filled)
        host_collapse(at, spec->bytes, spec->page_size, spec->threads, claim);
    if (!fill(spec, at, claim, failure))
        return false;
    if (conforms(chunk, at, failure))
        return true;
    if (!transparent || !failure->verified)
        return false;
    host_collapse(at, spec->bytes, spec->page_size, spec->threads, claim);
    return fill(spec, at, claim, failure) && conforms(chunk, at, failure);
}

/* Undoes a mapping that came to nothing. Memory that the chunk held before stays its own. */
static void undo(struct host_chunk *chunk, void *at, bool was_empty)
{
    int error_number = empty_range(at, chunk->spec.bytes);
    if (error_number)
        core_log_error("the addresses of a failed mapping cannot be emptied (errno %d); they are "
                       "lost until their range is released",
                       error_number);
    if (chunk->fd >= 0 && was_empty && sys_punch_hole(chunk->fd, (off_t)chunk->spec.bytes))
        core_log_warn("a chunk whose mapping failed keeps its memory until it is destroyed");
}

static raffia_status check_place(struct host_chunk *chunk, void *at, raffia_fallback_reason *reason)
{
    if (!core_is_aligned((uintptr_t)at, chunk->spec.page_size)) {
        *reason = RAFFIA_REASON_MISALIGNED;
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "address %p is not aligned to pages of %zu bytes", at,
                          chunk->spec.page_size);
    }
    if (chunk->fd < 0 && atomic_load(&chunk->mappings) != 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a chunk that is not remappable is mapped already");
    return RAFFIA_OK;
}

static raffia_status claim_room(const struct driver_chunk_spec *spec, size_t bytes,
                                struct host_claim *claim, raffia_fallback_reason *reason)
{
    if (spec->kind == RAFFIA_PAGE_HUGETLB)
        return RAFFIA_OK;
    host_claims_lock();
    raffia_status status = host_check_room(spec, bytes, reason);
    if (!status)
        host_claim_make(claim, bytes);
    host_claims_unlock();
    return status;
}

raffia_status host_chunk_map(int device, driver_chunk handle, void *at,
                             raffia_fallback_reason *reason)
{
    assert(device == 0);
    (void)device;
    struct host_chunk *chunk = host_chunk_of(handle);
    const struct driver_chunk_spec *spec = &chunk->spec;
    *reason = RAFFIA_REASON_NONE;
    raffia_status status = check_place(chunk, at, reason);
    size_t held = host_chunk_held(chunk);
    if (!status && held < spec->bytes) /* else its pages are there, and are read back */
        status = host_check_transparent(spec, reason);
    struct host_claim claim = {0};
    if (!status)
        status = claim_room(spec, spec->bytes - held, &claim, reason);
    if (status)
        return status;

    struct host_failure failure = {0};
    bool mapped = place(chunk, at, &failure) && advise(spec, at, &failure) &&
                  fill_and_verify(chunk, at, held == spec->bytes, &claim, &failure);
    host_claim_end(&claim);
    if (mapped) {
        atomic_fetch_add(&chunk->mappings, 1);
        return RAFFIA_OK;
    }
    /* Explained after the memory is given back, so that the numbers are those without us. */
    undo(chunk, at, held == 0 && atomic_load(&chunk->mappings) == 0);
    return host_explain(spec, &failure, reason);
}

raffia_status host_chunk_unmap(int device, driver_chunk handle, void *at)
{
    (void)device;
    struct host_chunk *chunk = host_chunk_of(handle);
    if (atomic_load(&chunk->mappings) == 0)
        return core_error(RAFFIA_ERROR_BAD_ADDRESS, "a chunk is not mapped at %p", at);
    int error_number = empty_range(at, chunk->spec.bytes);
    if (error_number)
        return core_error_errno(core_status_of_errno(error_number), error_number,
                                "cannot unmap %zu bytes at %p", chunk->spec.bytes, at);
    atomic_fetch_sub(&chunk->mappings, 1);
    return RAFFIA_OK;
}
