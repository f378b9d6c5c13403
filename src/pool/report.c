/* What a pool says of itself. */
#include "core/checked.h"
#include "core/log.h"
#include "core/text.h"
#include "pool/arena.h"
#include "pool/history.h"
#include "pool/order.h"

void pool_describe_block(const struct raffia_pool *pool, const struct space_block *block,
                         raffia_block *description)
{
    const bool taken = block->state != SPACE_FREE;
    *description = (raffia_block){
        .address = pool->base + block->offset,
        .bytes = block->bytes,
        .requested_bytes = taken ? block->requested - pool->guard_bytes : block->bytes,
        .live = taken && block->state != SPACE_PENDING,
        .pending = block->state == SPACE_PENDING,
    };
}

/* Bytes of whole slots that are present and free, outside `spared`. */
static size_t whole_free_bytes(struct raffia_pool *pool, const struct pool_interval *spared)
{
    size_t bytes = 0;
    for (size_t i = 0; i < pool->slot_count; i++)
        if (!pool_is_spared(pool, i, spared) &&
            space_is_free(pool->space, pool_slot_offset(pool, i), pool_slot_bytes(pool, i)))
            bytes += pool_slot_bytes(pool, i);
    return bytes;
}

size_t pool_idle_bytes(struct raffia_pool *pool, const struct pool_interval *spared)
{
    return pool->flags & RAFFIA_POOL_FIXED ? 0 : whole_free_bytes(pool, spared);
}

void pool_refresh_report(struct raffia_pool *pool)
{
    raffia_page_report report = {
        .asked_kind = pool->asked_kind,
        .asked_size = pool->asked_size,
        .got_kind = pool->kind,
        .got_size = pool->page_size,
        .reason = pool->asked_refused,
        .evidence = "none",
    };
    bool confirmed = true;
    size_t smallest = SIZE_MAX;
    for (size_t i = 0; i < pool->slot_count; i++) {
        if (pool->slots[i].state != POOL_SLOT_MAPPED)
            continue;
        const struct driver_page_evidence *evidence = &pool->slots[i].loan.evidence;
        report.total_bytes += pool_slot_bytes(pool, i);
        report.verified_bytes += evidence->verified ? evidence->conforming : 0;
        report.evidence = evidence->source;
        smallest = core_min(smallest, evidence->verified ? evidence->smallest : 0);
        confirmed = confirmed && evidence->verified && evidence->smallest >= pool->page_size;
    }
    if (report.total_bytes) {
        report.verified = confirmed;
        report.verified_size = smallest;
    }
    pool->report = report;
}

/* All locks held. */
static void fill_in(struct raffia_pool *pool, const struct pool_arenas *arenas,
                    raffia_pool_stats *stats)
{
    struct space_stats space;
    struct page_store_stats store;
    space_query(pool->space, &space);
    page_store_query(pool->store, &store);
    const size_t whole = whole_free_bytes(pool, NULL);
    /* Blocks that are leases count too, but where there is a guard there are none. */
    const size_t held = space.blocks - pool->pending_blocks;
    *stats = (raffia_pool_stats){
        .reserved_bytes = pool->mapped_bytes,
        .in_use_bytes = pool->in_use_bytes,
        .requested_bytes = space.requested_bytes - held * pool->guard_bytes,
        .free_bytes = space.free_bytes,
        .largest_free_bytes =
            space.largest_free > pool->guard_bytes ? space.largest_free - pool->guard_bytes : 0,
        .idle_bytes = pool->flags & RAFFIA_POOL_FIXED ? 0 : whole,
        .maximum_bytes = pool->maximum_bytes,
        .address_bytes = pool->range_bytes,
        .peak_in_use_bytes = pool->peak_in_use_bytes,
        .peak_reserved_bytes = pool->peak_mapped_bytes,
        .live_blocks = pool->live_blocks,
        .free_blocks = space.free_blocks,
        .chunks = pool->mapped_slots,
        .chunk_bytes = pool->chunk_bytes,
        .granule = pool->granule,
        .hits = pool->hits,
        .misses = pool->misses,
        .failures = pool->failures,
        .frees = pool->frees,
        .bad_frees = pool->bad_frees,
        .driver_calls = store.driver_calls,
        .pages = pool->report,
        .pending_bytes = pool->pending_bytes,
        .pending_blocks = pool->pending_blocks,
        .stranded_bytes = space.free_bytes - whole,
        .remaps = pool->remap.remaps,
        .remapped_chunks = pool->remap.chunks,
        .remap_ns = pool->remap.ns,
        .remap_unmap_ns = pool->remap.unmap_ns,
        .remap_address_refusals = pool->remap.address_refusals,
        .remap_mapping_refusals = pool->remap.mapping_refusals,
        .pressure_calls = pool->pressure.calls,
    };
    if (pool->history) {
        stats->placed_low = atomic_load_explicit(&pool->history->placed, memory_order_relaxed);
        stats->brief_classes = pool_history_brief_classes(pool->history);
    }
    size_t largest = space.largest_free;
    if (arenas) {
        pool_arenas_add_up(arenas, stats);
        largest = stats->largest_free_bytes; /* there are no guards */
        stats->peak_in_use_bytes = pool->peak_in_use_bytes =
            core_max(pool->peak_in_use_bytes, stats->in_use_bytes);
    }
    if (stats->free_bytes)
        stats->fragmentation = 1 - (double)largest / (double)stats->free_bytes;
}

static raffia_status refuse_null(const struct raffia_pool *pool, const char *what)
{
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "pool '%s': there is no %s (NULL)", pool->name,
                      what);
}

raffia_status raffia_pool_query(raffia_pool *pool, raffia_pool_stats *stats)
{
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    if (!stats)
        return refuse_null(pool, "place to put the figures");
    pool_order_refresh(pool);
    struct pool_arenas *arenas = pool_lock_all(pool);
    pool_return_idle(pool, arenas);
    fill_in(pool, arenas, stats);
    pool_unlock_all(pool, arenas);
    return RAFFIA_OK;
}

raffia_status raffia_pool_find(raffia_pool *pool, const void *address, raffia_block *block)
{
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    if (!block)
        return refuse_null(pool, "place to describe the block");
    struct space_block found;
    struct pool_bad_address verdict;
    const struct pool_home home = pool_lock_home(pool, address);
    const bool starts_here = pool_find_live_in(pool, home.space, address, &found);
    if (!starts_here)
        pool_judge_address(pool, home.space, address, &verdict);
    core_lock_leave(home.lock);
    if (starts_here)
        pool_describe_block(pool, &found, block);
    else if (verdict.fault == POOL_ADDRESS_INTERIOR)
        *block = verdict.block;
    else
        return pool_refuse_address(pool, "find", &verdict);
    return RAFFIA_OK;
}

struct walk {
    const struct raffia_pool *pool;
    raffia_block_visitor visitor;
    void *context;
};

static bool visit(void *context, const struct space_block *item)
{
    const struct walk *walk = context;
    raffia_block block;
    pool_describe_block(walk->pool, item, &block);
    return walk->visitor(walk->context, &block);
}

raffia_status raffia_pool_walk(raffia_pool *pool, raffia_block_visitor visitor, void *context)
{
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    if (!visitor)
        return refuse_null(pool, "visitor");
    struct walk walk = {pool, visitor, context};
    status = pool_lock_whole(pool);
    if (!status)
        space_walk(pool->space, visit, &walk);
    core_lock_leave(&pool->lock);
    return status;
}

/* Growth lock held: no chunk goes away while it is looked at. */
static raffia_status read_back(struct raffia_pool *pool)
{
    const struct driver *driver = pool->device.driver;
    raffia_status status = RAFFIA_OK;
    if (!(driver->capabilities & DRIVER_CAN_VERIFY))
        return RAFFIA_OK;
    for (size_t i = 0; !status && i < pool->slot_count; i++) {
        struct page_loan *loan = &pool->slots[i].loan;
        if (pool->slots[i].state == POOL_SLOT_MAPPED)
            status = driver->page_size_of(pool->device.index, loan->at, loan->bytes, pool->kind,
                                          pool->page_size, &loan->evidence);
    }
    return status;
}

/* Growth lock held. Bytes that were read back and lie in smaller pages than the pool was made of:
 * each chunk had the right ones when it came. */
static size_t split_bytes(const struct raffia_pool *pool)
{
    size_t bytes = 0;
    for (size_t i = 0; i < pool->slot_count; i++) {
        const struct driver_page_evidence *evidence = &pool->slots[i].loan.evidence;
        if (pool->slots[i].state == POOL_SLOT_MAPPED && evidence->verified)
            bytes += pool_slot_bytes(pool, i) - evidence->conforming;
    }
    return bytes;
}

static void warn_of_split(const struct raffia_pool *pool, size_t bytes)
{
    char split[CORE_SIZE_TEXT_MAX], page[CORE_SIZE_TEXT_MAX];
    core_log_warn("pool '%s': %s lie in pages of less than %s by now: the kernel has split "
                  "transparent pages; hugetlb pages stay whole",
                  pool->name, core_format_size(bytes, split),
                  core_format_size(pool->page_size, page));
}

raffia_status raffia_pool_verify(raffia_pool *pool, raffia_page_report *report)
{
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    pool_lock(&pool->growth_lock);
    status = read_back(pool);
    const size_t split = split_bytes(pool);
    const bool news = split && !pool->split_told;
    pool->split_told = pool->split_told || news;
    core_lock_take(&pool->lock);
    pool_refresh_report(pool);
    if (!status && report)
        *report = pool->report;
    core_lock_leave(&pool->lock);
    pool_unlock(&pool->growth_lock);
    if (news)
        warn_of_split(pool, split);
    return status;
}
