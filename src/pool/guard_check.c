/* Looking at the guards of all blocks: on demand, and when the process exits. */
#include "core/log.h"
#include "core/memory.h"
#include "pool/guard.h"
#include "pool/registry.h"

#include <stdlib.h>

/* Damaged blocks that a pool names at exit. */
#define EXIT_LINES 16

#define FIRST_CENSUS ((size_t)64)

raffia_status pool_guard_reserve_census(struct raffia_pool *pool)
{
    struct pool_guard *guard = pool->guard;
    core_lock_take(&pool->lock);
    const size_t live = pool->live_blocks + pool->pending_blocks;
    core_lock_leave(&pool->lock);
    if (live < guard->census_room)
        return RAFFIA_OK;
    const size_t room = guard->census_room ? 2 * guard->census_room : FIRST_CENSUS;
    struct space_block *census = core_reallocate(guard->census, room, sizeof *census);
    if (!census)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    guard->census = census;
    guard->census_room = room;
    return RAFFIA_OK;
}

struct counting {
    struct pool_guard *guard;
    size_t count;
};

static bool note_block(void *context, const struct space_block *item)
{
    struct counting *counting = context;
    if (item->state == SPACE_HELD)
        counting->guard->census[counting->count++] = *item;
    return counting->count < counting->guard->census_room;
}

/* Pool lock and guard lock held. The blocks that are live now: guards are read with the pool lock
 * let go. None is allocated meanwhile, and what is freed waits for the guard lock with its memory.
 */
static size_t take_census(struct raffia_pool *pool)
{
    struct counting counting = {.guard = pool->guard};
    if (counting.guard->census_room)
        space_walk(pool->space, note_block, &counting);
    return counting.count;
}

/* Called for each damaged block. */
typedef void (*damage_visitor)(void *context, const struct pool_damage *damage);

/* Guard lock held. */
static void look_at_all(struct raffia_pool *pool, size_t count, raffia_guard_report *report,
                        damage_visitor visitor, void *context)
{
    for (size_t i = 0; i < count; i++) {
        const struct space_block *block = &pool->guard->census[i];
        struct pool_damage damage;
        const enum pool_guard_verdict verdict = pool_guard_is_there(pool, block)
                                                    ? pool_guard_inspect(pool, block, &damage)
                                                    : POOL_GUARD_UNREAD;
        if (verdict == POOL_GUARD_UNREAD) {
            report->skipped_blocks++;
            continue;
        }
        report->checked_blocks++;
        if (verdict == POOL_GUARD_DAMAGED) {
            report->damaged_blocks++;
            visitor(context, &damage);
        }
    }
}

static void keep_first(void *context, const struct pool_damage *damage)
{
    struct pool_damage *first = context;
    if (!first->block.address)
        *first = *damage;
}

raffia_status pool_guard_check(struct raffia_pool *pool, raffia_guard_report *report)
{
    struct pool_damage first = {0};
    raffia_guard_report found = {0};
    pool_lock(&pool->guard->lock);
    core_lock_take(&pool->lock);
    const size_t count = take_census(pool);
    core_lock_leave(&pool->lock);
    look_at_all(pool, count, &found, keep_first, &first);
    pool_unlock(&pool->guard->lock);
    if (found.damaged_blocks) {
        found.address = first.block.address;
        found.requested_bytes = first.block.requested_bytes;
        found.damage_offset = first.block.requested_bytes + first.distance;
    }
    *report = found;
    return found.damaged_blocks ? pool_report_damage(pool, &first) : RAFFIA_OK;
}

raffia_status raffia_pool_check_guards(raffia_pool *pool, raffia_guard_report *report_p)
{
    raffia_guard_report report;
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    if (!pool->guard)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "pool '%s' was made without RAFFIA_POOL_GUARD: its blocks have no guards",
                          pool->name);
    status = pool_guard_check(pool, &report);
    if (report_p)
        *report_p = report;
    return status;
}

/* ---- at exit -------------------------------------------------------------------------------- */

struct last_words {
    const struct raffia_pool *pool;
    size_t lines;
};

static void name_block(void *context, const struct pool_damage *damage)
{
    struct last_words *words = context;
    if (words->lines++ < EXIT_LINES)
        core_log_error("pool '%s': at exit, the block of %zu bytes at %p was written to beyond its "
                       "end, first %zu bytes behind it",
                       words->pool->name, damage->block.requested_bytes, damage->block.address,
                       damage->distance);
}

/*
 * Other threads may still run, or have ended inside a call: a lock that is not free is left alone,
 * and with it the pool.
 */
static bool look_at_exit(void *context, raffia_pool *pool)
{
    (void)context;
    const struct driver_device device = pool->device;
    struct last_words words = {.pool = pool};
    raffia_guard_report report = {0};
    if (!pool->guard || device.driver->context_state(device.index) ||
        pthread_mutex_trylock(&pool->guard->lock))
        return true;
    if (core_lock_try(&pool->lock)) {
        const size_t count = take_census(pool);
        core_lock_leave(&pool->lock);
        look_at_all(pool, count, &report, name_block, &words);
    }
    pthread_mutex_unlock(&pool->guard->lock);
    if (words.lines > EXIT_LINES)
        core_log_error("pool '%s': %zu more blocks were written to beyond their end", pool->name,
                       words.lines - EXIT_LINES);
    return true;
}

static void check_at_exit(void)
{
    pool_registry_for_each(look_at_exit, NULL);
}

static void register_check(void)
{
    if (atexit(check_at_exit))
        core_log_warn("guards will not be looked at when the process exits: atexit() refused");
}

void pool_guard_watch_exit(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_check);
}
