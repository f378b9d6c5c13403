/* The five calls of raffia/umd.h: a thin face on policy, pools and the regular path. */
#include "core/checked.h"
#include "core/error.h"
#include "core/fallbacks.h"
#include "core/log.h"
#include "policy/ladder.h"
#include "policy/route.h"
#include "pool/pool.h"
#include "resource/regular.h"
#include "resource/umd_device.h"

#include <raffia/umd.h>

/* Regular memory is aligned to no more than this unasked. */
#define REGULAR_UNIT_MAX ((size_t)2 << 20)

int umd_huge_page_pool_init(int device_id, uint64_t pool_size)
{
    struct umd_device *device;
    struct umd_terms terms;
    raffia_status status = umd_find(device_id, &device);
    if (!status)
        status = umd_begin(device, device_id, &terms);
    if (status)
        return status;
    status = umd_build(device, pool_size, true, &terms);
    umd_end(device);
    return status;
}

int umd_huge_page_pool_destroy(int device_id)
{
    struct umd_device *device;
    raffia_status status = umd_find(device_id, &device);
    return status ? status : umd_destroy(device, device_id);
}

static void describe(raffia_pool *pool, const raffia_pool_stats *stats, PoolStatus *status)
{
    void *base = pool_base(pool);
    const bool visible = pool_device(pool).driver->capabilities & DRIVER_CPU_ACCESSIBLE;
    status->cpu_addr = visible ? base : NULL;
    status->gpu_addr = (uintptr_t)base;
    status->total_size = stats->reserved_bytes;
    status->page_size = stats->pages.got_size;
    status->free_list_count = stats->free_blocks;
    status->is_initialized = 1;
    status->free_size = stats->free_bytes;
    status->largest_free = stats->largest_free_bytes;
    status->hits = stats->hits;
}

int umd_huge_page_pool_query(int device_id, PoolStatus *status_p)
{
    if (!status_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "umd_huge_page_pool_query: status is NULL");
    struct umd_device *device;
    raffia_pool *pool = NULL;
    uint64_t fallbacks = 0;
    raffia_status status = umd_find(device_id, &device);
    if (!status)
        status = umd_look(device, device_id, &pool, &fallbacks);
    if (status)
        return status;
    PoolStatus filled = {.device_id = device_id};
    if (pool) {
        raffia_pool_stats stats;
        status = raffia_pool_query(pool, &stats);
        if (!status)
            describe(pool, &stats, &filled);
        filled.fallbacks = fallbacks;
        raffia_pool_release(pool);
    }
    if (!status)
        *status_p = filled;
    return status;
}

/* ---- allocation ----------------------------------------------------------------------------- */

/* A request as it came in. */
struct request {
    int device_id;
    size_t bytes;
    size_t alignment; /* 0: the page size */
    unsigned hints;
    raffia_pages_mode mode;
};

static raffia_status check_words(const struct request *request)
{
    if (request->bytes == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "umd_huge_page_alloc: a block of 0 bytes is no block");
    if (request->alignment && !core_is_power_of_two(request->alignment))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "umd_huge_page_alloc: an alignment of %zu bytes is not a power of two",
                          request->alignment);
    return pool_check_hints(request->hints);
}

static raffia_status serve_huge(struct umd_device *device, const struct request *request,
                                struct umd_terms *terms, void **address_p)
{
    raffia_status status = terms->pool ? RAFFIA_OK : umd_build(device, 0, false, terms);
    if (status)
        return status;
    if (request->mode == RAFFIA_PAGES_ON && !policy_is_huge(terms->got.kind))
        return core_error(RAFFIA_ERROR_NO_HUGE_PAGES,
                          "pages=on, but the pool of device %d has regular pages: destroy it, so "
                          "that it can be built anew",
                          request->device_id);
    return raffia_pool_alloc_hint(terms->pool, request->bytes,
                                  core_max(request->alignment, terms->unit), request->hints,
                                  address_p);
}

static raffia_status serve_regular(struct umd_device *device, const struct request *request,
                                   const struct umd_terms *terms, bool is_fallback,
                                   void **address_p)
{
    struct resource_block block;
    const size_t alignment =
        request->alignment ? request->alignment : core_min(terms->unit, REGULAR_UNIT_MAX);
    raffia_status status = resource_regular_alloc(terms->device, request->bytes, alignment, &block);
    if (status)
        return status;
    status = umd_record(device, &block, is_fallback);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        if (resource_regular_free(terms->device, &block))
            core_log_error("%zu bytes at %p are lost: %s", block.bytes, block.start,
                           raffia_last_error());
        return core_error_restore(&cause);
    }
    *address_p = block.address;
    return RAFFIA_OK;
}

/* The pool's failure is the last error. */
static void count_fallback(const struct umd_terms *terms, raffia_status failure)
{
    const raffia_fallback_reason reason = !terms->pool ? RAFFIA_REASON_MEMORY
                                          : failure == RAFFIA_ERROR_INVALID_ARGUMENT
                                              ? RAFFIA_REASON_UNSUPPORTED
                                              : RAFFIA_REASON_EXHAUSTED;
    core_fallback(terms->got.kind, terms->got.size, terms->regular.kind, terms->regular.size,
                  reason, raffia_last_error());
}

/* Memory that is damaged, or not this process's, is no shortage that other memory could make up
 * for. */
static bool may_fall_back(raffia_status status)
{
    return status != RAFFIA_ERROR_CORRUPT && status != RAFFIA_ERROR_FORKED;
}

static raffia_status serve(struct umd_device *device, const struct request *request,
                           struct umd_terms *terms, void **address_p)
{
    const struct policy_request question = {
        .bytes = request->bytes,
        .alignment = request->alignment ? request->alignment : terms->unit,
        .hints = request->hints,
        .mode = request->mode,
    };
    const struct policy_decision decision = policy_route(&question, &terms->parameters);
    core_log_debug("device %d: %zu bytes of %s memory, by %s", request->device_id, request->bytes,
                   decision.route == POLICY_HUGE ? "huge" : "regular",
                   policy_cause_name(decision.cause));
    if (decision.route == POLICY_REGULAR)
        return serve_regular(device, request, terms, false, address_p);
    struct core_error_record before;
    core_error_save(&before);
    raffia_status status = serve_huge(device, request, terms, address_p);
    if (!status || request->mode == RAFFIA_PAGES_ON || !may_fall_back(status))
        return status;
    count_fallback(terms, status);
    status = serve_regular(device, request, terms, true, address_p);
    if (!status)
        core_error_restore(&before);
    return status;
}

void *umd_huge_page_alloc_hint(int device_id, uint64_t size, uint64_t align, unsigned hints)
{
    struct request request = {
        .device_id = device_id, .bytes = size, .alignment = align, .hints = hints};
    struct umd_device *device;
    struct umd_terms terms;
    void *address = NULL;
    if (hints == RAFFIA_HINT_NONE && umd_alloc_fast(device_id, size, align, &address))
        return address;
    if (check_words(&request) || umd_find(device_id, &device) ||
        umd_begin(device, device_id, &terms))
        return NULL;
    request.mode = umd_mode_for(&terms);
    raffia_status status = serve(device, &request, &terms, &address);
    umd_end(device);
    return status ? NULL : address;
}

void *umd_huge_page_alloc(int device_id, uint64_t size, uint64_t align)
{
    return umd_huge_page_alloc_hint(device_id, size, align, RAFFIA_HINT_NONE);
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* Neither on record nor in a pool. */
static raffia_status refuse_address(struct umd_device *device, int device_id, const void *address)
{
    raffia_pool *pool = NULL;
    uint64_t unused;
    raffia_status status = umd_look(device, device_id, &pool, &unused);
    if (status)
        return status;
    raffia_pool_release(pool);
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "cannot free %p: no block of device %d starts there; it was freed before, or "
                      "never handed out in this process",
                      address, device_id);
}

int umd_huge_page_free(int device_id, void *addr)
{
    if (addr && umd_free_fast(device_id, addr))
        return RAFFIA_OK;
    struct umd_device *device;
    struct umd_owner owner;
    raffia_status status = umd_find(device_id, &device);
    if (status || !addr)
        return status;
    umd_find_owner(device, addr, &owner);
    if (owner.recorded) {
        status = resource_regular_free(owner.device, &owner.block);
        if (status)
            umd_put_back(device, &owner);
        return status;
    }
    if (!owner.pool)
        return refuse_address(device, device_id, addr);
    status = raffia_pool_free(owner.pool, addr);
    raffia_pool_release(owner.pool);
    return status;
}
