/* The steps of growth: chunks are borrowed, put behind absent slots, and added to the space. */
#include "core/checked.h"
#include "core/text.h"
#include "pool/pool_internal.h"

size_t pool_budget(struct raffia_pool *pool)
{
    struct page_store_stats stats;
    page_store_query(pool->store, &stats);
    return stats.lent_bytes < pool->maximum_bytes ? pool->maximum_bytes - stats.lent_bytes : 0;
}

void pool_drop_loaned(struct raffia_pool *pool, const struct pool_interval *interval)
{
    struct core_error_record cause;
    core_error_save(&cause);
    for (size_t i = pool_first_slot(pool, interval); i < pool_end_slot(pool, interval); i++) {
        struct pool_slot *slot = &pool->slots[i];
        if (slot->state != POOL_SLOT_LOANED)
            continue;
        if (!page_store_return(pool->store, &slot->loan))
            slot->state = POOL_SLOT_ABSENT;
    }
    core_error_restore(&cause);
}

/* Memory the device has for chunks that are not there yet; SIZE_MAX where it cannot tell. */
static size_t device_room(const struct raffia_pool *pool)
{
    const struct driver_device device = pool->device;
    struct core_error_record before;
    raffia_device_info info;
    core_error_save(&before);
    /* Pages set aside for hugetlb are no part of the free memory. */
    if (pool->kind == RAFFIA_PAGE_HUGETLB)
        return SIZE_MAX;
    if (device.driver->device_info(device.index, &info)) {
        core_error_restore(&before);
        return SIZE_MAX;
    }
    return info.total_bytes ? info.free_bytes : SIZE_MAX;
}

/* The driver looks for the room of one chunk at a time: of many that do not fit together it would
 * fill all but the last, and leave the machine without memory meanwhile. */
static raffia_status check_room(struct raffia_pool *pool, const struct pool_interval *interval,
                                raffia_fallback_reason *reason)
{
    struct page_store_stats stats;
    const size_t absent = pool_absent_bytes(pool, interval);
    if (absent <= pool->chunk_bytes)
        return RAFFIA_OK;
    page_store_query(pool->store, &stats);
    const size_t needed = absent - core_min(absent, stats.kept_bytes), room = device_room(pool);
    if (needed <= room)
        return RAFFIA_OK;
    char asked[CORE_SIZE_TEXT_MAX], free_now[CORE_SIZE_TEXT_MAX];
    *reason = RAFFIA_REASON_MEMORY;
    return core_error(
        RAFFIA_ERROR_OUT_OF_MEMORY,
        "%s of %s pages are needed, but the device has %s free, limits of its control "
        "groups included",
        core_format_size(needed, asked), raffia_page_kind_name(pool->kind),
        core_format_size(room, free_now));
}

static raffia_status fill(struct raffia_pool *pool, const struct pool_interval *interval,
                          raffia_fallback_reason *reason)
{
    *reason = RAFFIA_REASON_NONE;
    raffia_status enough = check_room(pool, interval, reason);
    if (enough)
        return enough;
    for (size_t i = pool_first_slot(pool, interval); i < pool_end_slot(pool, interval); i++) {
        struct pool_slot *slot = &pool->slots[i];
        if (slot->state != POOL_SLOT_ABSENT)
            continue;
        raffia_status status = page_store_borrow(
            pool->store, pool->base + pool_slot_offset(pool, i), pool_slot_bytes(pool, i),
            pool_absent_bytes(pool, interval), &slot->loan, reason);
        if (status) {
            pool_drop_loaned(pool, interval);
            return status;
        }
        slot->state = POOL_SLOT_LOANED;
    }
    return RAFFIA_OK;
}

raffia_status pool_fill(struct raffia_pool *pool, const struct pool_interval *interval,
                        raffia_fallback_reason *reason)
{
    struct core_error_record before;
    core_error_save(&before);
    raffia_status status = fill(pool, interval, reason);
    if (status && pool_descend(pool, *reason)) {
        do
            status = fill(pool, interval, reason);
        while (status && pool_descend(pool, *reason));
        if (!status)
            core_error_restore(&before); /* of the pages that were refused on the way */
    }
    if (!status)
        pool->ladder.held = true;
    return status;
}

raffia_status pool_admit(struct raffia_pool *pool, const struct pool_interval *interval)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = pool_first_slot(pool, interval); !status && i < pool_end_slot(pool, interval);
         i++) {
        struct pool_slot *slot = &pool->slots[i];
        if (slot->state != POOL_SLOT_LOANED)
            continue;
        const size_t bytes = pool_slot_bytes(pool, i);
        status = space_add(pool->space, pool_slot_offset(pool, i), bytes);
        if (!status) {
            slot->state = POOL_SLOT_MAPPED;
            pool->mapped_bytes += bytes;
            pool->mapped_slots++;
        }
    }
    pool->peak_mapped_bytes = core_max(pool->peak_mapped_bytes, pool->mapped_bytes);
    pool_refresh_report(pool);
    return status;
}

raffia_status pool_map_interval(struct raffia_pool *pool, const struct pool_interval *interval,
                                raffia_fallback_reason *reason)
{
    raffia_status status = pool_fill(pool, interval, reason);
    if (status)
        return status;
    core_lock_take(&pool->lock);
    status = pool_admit(pool, interval);
    core_lock_leave(&pool->lock);
    if (status) {
        *reason = RAFFIA_REASON_NONE;
        pool_drop_loaned(pool, interval);
    }
    return status;
}
