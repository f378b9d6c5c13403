/*
 * raffia_pool_create(): turns options, settings and the device's offers into a plan, and walks the
 * ladder until one rung holds the whole initial size.
 */
#include "core/checked.h"
#include "core/error.h"
#include "core/fallbacks.h"
#include "core/options.h"
#include "core/parallel.h"
#include "core/settings.h"
#include "policy/ladder.h"
#include "policy/parameters.h"
#include "policy/sizing.h"
#include "pool/pool.h"
#include "pool/registry.h"

#include <string.h>

#define GRANULE_DEFAULT 256u

/* Half of the mappings that the kernel lets a process have. */
#define HOST_MAPPINGS_DEFAULT 32768u

#define FLAGS_KNOWN                                                                                \
    (RAFFIA_POOL_REMAPPABLE | RAFFIA_POOL_SHAREABLE | RAFFIA_POOL_GUARD | RAFFIA_POOL_FIXED |      \
     RAFFIA_POOL_ADAPTIVE)

/* What the caller wants, with settings and defaults filled in. */
struct request {
    raffia_pool_options options;
    raffia_pages_mode mode;
    size_t page_size; /* where the ladder starts */
    size_t granule;   /* 0: the page size got */
};

/* A pool made on purpose is an opt-in: only a setting given explicitly says otherwise. */
static raffia_pages_mode mode_of(raffia_pages_mode asked)
{
    if (asked != RAFFIA_PAGES_DEFAULT)
        return asked;
    return core_setting_given(CORE_SETTING_PAGES) ? raffia_pages_mode_in_force() : RAFFIA_PAGES_TRY;
}

/* The field that says "none" of something there must be, or NULL. */
static const char *field_without(const raffia_pool_options *o)
{
    if (o->maximum_bytes == RAFFIA_NONE)
        return "maximum_bytes";
    if (o->chunk_bytes == RAFFIA_NONE)
        return "chunk_bytes";
    return o->flags & RAFFIA_POOL_REMAPPABLE && o->address_bytes == RAFFIA_NONE ? "address_bytes"
                                                                                : NULL;
}

static raffia_status read_request(const raffia_pool_options *options, struct request *request)
{
    raffia_status status = core_options_copy(&request->options, sizeof request->options, options,
                                             "raffia_pool_options");
    if (status)
        return status;
    raffia_pool_options *o = &request->options;
    if ((unsigned)o->pages > RAFFIA_PAGES_ON)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "pages mode %d is none of off, try and on",
                          (int)o->pages);
    if (o->flags & ~(unsigned)FLAGS_KNOWN)
        return core_error(RAFFIA_ERROR_UNSUPPORTED, "pool flags %#x are not known to this library",
                          o->flags & ~(unsigned)FLAGS_KNOWN);
    if (o->numa_node_plus_one < 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "NUMA node %d does not exist",
                          o->numa_node_plus_one - 1);
    const char *missing = field_without(o);
    if (missing)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%s of a pool is %zu, which stands for none, and a pool cannot do "
                          "without; 0 chooses it",
                          missing, RAFFIA_NONE);
    if (o->name && strlen(o->name) > RAFFIA_POOL_NAME_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a pool's name has at most %u bytes, and '%.*s...' has %zu",
                          RAFFIA_POOL_NAME_MAX, (int)RAFFIA_POOL_NAME_MAX / 2, o->name,
                          strlen(o->name));
    if (o->flags & RAFFIA_POOL_FIXED && o->initial_bytes == RAFFIA_NONE)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a fixed pool without initial bytes could never serve one: give it "
                          "initial_bytes, or 0 for all of its maximum");
    request->mode = mode_of(o->pages);
    request->page_size = o->page_size ? o->page_size : core_setting_size(CORE_SETTING_PAGE_SIZE);
    if (!core_is_power_of_two(request->page_size) || request->page_size < GRANULE_DEFAULT)
        return core_error(
            RAFFIA_ERROR_INVALID_ARGUMENT,
            "page size %zu is not a power of two from %u on; 2 MiB and 1 GiB are usual",
            request->page_size, GRANULE_DEFAULT);
    request->granule = 0;
    if (o->granule == RAFFIA_NONE)
        return RAFFIA_OK;
    request->granule = o->granule ? o->granule : GRANULE_DEFAULT;
    if (!core_is_power_of_two(request->granule) || request->granule < GRANULE_DEFAULT ||
        request->granule > request->page_size)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "granule %zu is not a power of two from %u to the page size, %zu",
                          request->granule, GRANULE_DEFAULT, request->page_size);
    return RAFFIA_OK;
}

static raffia_status round_up(size_t *bytes, size_t unit, const char *what)
{
    if (core_align_up(*bytes, unit, bytes))
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_OVERFLOW,
                      "%s of a pool, %zu bytes in whole pages of %zu, exceeds the address space",
                      what, *bytes, unit);
}

/* Chunks that move need addresses where nothing is yet. */
static raffia_status plan_remapping(const struct request *request, struct pool_plan *plan)
{
    const raffia_pool_options *o = &request->options;
    if (!(o->flags & RAFFIA_POOL_REMAPPABLE))
        return RAFFIA_OK;
    /* Whole chunks only: one of another size could not move. */
    size_t maximum = plan->maximum_bytes - plan->maximum_bytes % plan->chunk_bytes;
    raffia_status status = RAFFIA_OK;
    if (maximum < plan->initial_bytes) {
        maximum = plan->initial_bytes;
        status = round_up(&maximum, plan->chunk_bytes, "the maximum");
    }
    plan->maximum_bytes = maximum;
    size_t addresses = o->address_bytes;
    if (!addresses && !core_add(maximum, maximum / 2, &addresses))
        addresses = maximum;
    addresses = core_max(addresses, maximum);
    if (!status)
        status = round_up(&addresses, plan->chunk_bytes, "the addresses");
    plan->address_bytes = addresses;
    plan->mapping_limit = o->remap_mappings;
    if (!o->remap_mappings && plan->device.driver->capabilities & DRIVER_CPU_ACCESSIBLE)
        plan->mapping_limit = HOST_MAPPINGS_DEFAULT;
    return status;
}

/* Sizes for one rung. All are multiples of its page size and of the granule. */
static raffia_status size_plan(const struct request *request, const raffia_device_info *info,
                               struct pool_plan *plan)
{
    const raffia_pool_options *o = &request->options;
    struct policy_parameters parameters;
    policy_parameters_for(info, &parameters);
    size_t unit = core_max(plan->page_size, plan->granule);
    size_t initial = o->initial_bytes == RAFFIA_NONE ? 0 : o->initial_bytes;
    size_t maximum = o->maximum_bytes;
    bool default_size = maximum == 0;
    if (default_size)
        maximum = core_max(initial, policy_default_pool_bytes(info, parameters.pool_share,
                                                              parameters.pool_maximum, unit));
    raffia_status status = round_up(&initial, unit, "the initial size");
    if (!status)
        status = round_up(&maximum, unit, "the maximum");
    if (status)
        return status;
    size_t chunk =
        o->chunk_bytes ? o->chunk_bytes : policy_chunk_bytes(initial ? initial : maximum, unit);
    status = round_up(&chunk, unit, "the chunk size");
    if (status)
        return status;
    chunk = core_min(chunk, maximum);
    const bool fixed = (o->flags & RAFFIA_POOL_FIXED) != 0;
    if (o->initial_bytes == 0)
        initial = default_size || fixed ? maximum : chunk;
    if (initial > maximum)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the initial size of a pool, %zu, exceeds its maximum, %zu",
                          o->initial_bytes, o->maximum_bytes);
    plan->initial_bytes = initial;
    if (fixed && !default_size && initial < maximum)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a fixed pool does not grow from its initial size, %zu, to a maximum of "
                          "%zu: give one of the two, or RAFFIA_POOL_FIXED up",
                          o->initial_bytes, o->maximum_bytes);
    plan->maximum_bytes = fixed ? initial : maximum;
    plan->chunk_bytes = core_min(chunk, plan->maximum_bytes);
    return plan_remapping(request, plan);
}

/* A granule of a page stays aligned to huge pages, whatever the ladder falls to: who asks for it
 * relies on that. */
static size_t granule_for(const struct request *request, raffia_page_offer rung)
{
    if (request->granule)
        return request->granule;
    return core_max(rung.size, core_min(request->page_size, POOL_HUGE_ALIGNMENT));
}

static raffia_status make_plan(const struct request *request, struct driver_device device,
                               const raffia_device_info *info, raffia_page_offer rung,
                               struct pool_plan *plan)
{
    const raffia_pool_options *o = &request->options;
    *plan = (struct pool_plan){
        .device = device,
        .name = o->name ? o->name : "pool",
        .kind = rung.kind,
        .page_size = rung.size,
        .granule = granule_for(request, rung),
        .flags = o->flags,
        .threads = core_thread_count(o->threads),
        .numa_node = o->numa_node_plus_one - 1,
    };
    return size_plan(request, info, plan);
}

/* Counts the step from rung i to the next, or to nothing. */
static void count_step(const struct policy_ladder *ladder, size_t i, raffia_fallback_reason reason)
{
    raffia_page_offer none = {0};
    raffia_page_offer from = ladder->rungs[i];
    raffia_page_offer to = i + 1 < ladder->count ? ladder->rungs[i + 1] : none;
    core_fallback(from.kind, from.size, to.kind, to.size, reason, raffia_last_error());
}

/* A pool that is made without pages finds out which it gets when it first grows. */
static void leave_for_later(const struct policy_ladder *ladder, size_t first,
                            struct pool_plan *plan)
{
    if (plan->initial_bytes > 0)
        return;
    for (size_t i = first; i < ladder->count && plan->lower_count < POOL_LOWER_MAX; i++)
        plan->lower[plan->lower_count++] = ladder->rungs[i];
    for (int reason = 0; reason < RAFFIA_REASON_COUNT; reason++)
        if (policy_reason_allows_fallback((raffia_fallback_reason)reason))
            plan->reasons_to_descend |= 1u << reason;
}

/* Where no step down is left, other pools give back what they hold idle before it fails. */
static raffia_status create(const struct pool_plan *plan, bool is_last, raffia_pool **pool_p,
                            raffia_fallback_reason *reason)
{
    raffia_status status = pool_create(plan, pool_p, reason);
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY ||
        (!is_last && policy_reason_allows_fallback(*reason)))
        return status;
    const struct pool_need need = {plan->device,        plan->kind, plan->page_size,
                                   plan->initial_bytes, NULL,       NULL};
    return pool_registry_trim(&need) ? pool_create(plan, pool_p, reason) : status;
}

static raffia_status walk_ladder(const struct request *request, struct driver_device device,
                                 const raffia_device_info *info, const struct policy_ladder *ladder,
                                 raffia_pool **pool_p)
{
    raffia_fallback_reason first_refusal = RAFFIA_REASON_NONE;
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < ladder->count; i++) {
        struct pool_plan plan;
        status = make_plan(request, device, info, ladder->rungs[i], &plan);
        if (status)
            return status;
        plan.asked_kind = ladder->rungs[0].kind;
        plan.asked_size = ladder->rungs[0].size;
        plan.asked_refused = first_refusal;
        leave_for_later(ladder, i + 1, &plan);
        raffia_fallback_reason reason = RAFFIA_REASON_NONE;
        status = create(&plan, i + 1 == ladder->count, pool_p, &reason);
        if (!status || !policy_reason_allows_fallback(reason))
            return status;
        if (first_refusal == RAFFIA_REASON_NONE)
            first_refusal = reason;
        if (i + 1 < ladder->count || request->mode == RAFFIA_PAGES_ON)
            count_step(ladder, i, reason);
    }
    if (request->mode != RAFFIA_PAGES_ON)
        return status;
    return core_error_prefix_as(RAFFIA_ERROR_NO_HUGE_PAGES,
                                "pages=on, but no huge pages can be had");
}

raffia_status raffia_pool_create(const raffia_pool_options *options, raffia_pool **pool_p)
{
    if (!pool_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_pool_create: pool_p is NULL");
    struct request request;
    raffia_status status = read_request(options, &request);
    if (status)
        return status;
    struct driver_device device;
    status = driver_open(request.options.device, &device);
    if (status)
        return status;
    raffia_device_info info;
    status = device.driver->device_info(device.index, &info);
    if (status)
        return status;
    struct policy_ladder ladder;
    status = policy_ladder_make(request.mode, request.page_size, &info, &ladder);
    if (status)
        return status;
    return walk_ladder(&request, device, &info, &ladder, pool_p);
}
