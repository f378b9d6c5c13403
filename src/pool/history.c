/* Which sizes outlive the moments at which memory is given back. */
#include "pool/history.h"

#include "core/memory.h"
#include "pool/arena.h"

/* A block of more than this part of a chunk takes so much of it that little is lost with it. */
#define SMALL_SHARE 4

/* Placed blocks are slower to allocate. So many are placed from one look to the next: a pool that
 * nobody trims is soon as fast as it can be, and for one that is trimmed it is no time beside that
 * of giving chunks back and mapping them again. */
#define PLACED_PER_LOOK 4096

/* Each look leaves this part of what was known before. */
#define KEPT_NUMERATOR   3
#define KEPT_DENOMINATOR 4

#define SAMPLE_UNIT 16
#define SEEN_LEAST  4 /* samples before a class is judged */

static inline unsigned class_of(size_t bytes)
{
    const unsigned octave = 63 - (unsigned)__builtin_clzll(bytes | 4);
    return octave * 4 + (unsigned)(bytes >> (octave - 2) & 3);
}

/* Never 0, and less than 2^32, as a space has fewer granules. */
static inline uint64_t place_of(const struct pool_history *history, size_t offset)
{
    return (offset >> history->granule_shift) + 1;
}

static inline _Atomic uint64_t *sample_of(struct pool_history *history, uint64_t place)
{
    _Static_assert((POOL_HISTORY_SAMPLES & (POOL_HISTORY_SAMPLES - 1)) == 0, "a power of two");
    return &history->samples[(uint32_t)place * 2654435769u >> 16 & (POOL_HISTORY_SAMPLES - 1)];
}

raffia_status pool_history_create(struct raffia_pool *pool)
{
    if (pool->flags & RAFFIA_POOL_FIXED)
        return RAFFIA_OK;
    struct pool_history *history = core_calloc(1, sizeof *history);
    if (!history)
        return core_error_prefix("the history of pool '%s'", pool->name);
    history->most_bytes = pool->chunk_bytes / SMALL_SHARE;
    history->granule_shift = (unsigned)__builtin_ctzll(pool->granule);
    atomic_flag_clear(&history->looking);
    pool->history = history;
    return RAFFIA_OK;
}

void pool_history_destroy(struct raffia_pool *pool)
{
    core_free(pool->history);
}

/* The borders lie apart, so that a class near one does not go to and fro. */
static void judge(struct pool_history *history, unsigned class, unsigned kept)
{
    const unsigned gone = atomic_exchange_explicit(&history->gone[class], 0, memory_order_relaxed);
    const uint64_t more = (uint64_t)kept + gone;
    if (!more)
        return;
    uint64_t *survivors = &history->kept[class], *all = &history->seen[class];
    *survivors = *survivors * KEPT_NUMERATOR / KEPT_DENOMINATOR + (uint64_t)kept * SAMPLE_UNIT;
    *all = *all * KEPT_NUMERATOR / KEPT_DENOMINATOR + more * SAMPLE_UNIT;
    if (*all < (uint64_t)SEEN_LEAST * SAMPLE_UNIT)
        return;
    if (2 * *survivors < *all)
        atomic_store_explicit(&history->brief[class], 1, memory_order_relaxed);
    else if (4 * *survivors > 3 * *all)
        atomic_store_explicit(&history->brief[class], 0, memory_order_relaxed);
}

void pool_history_look(struct pool_history *history)
{
    unsigned kept[POOL_HISTORY_CLASSES] = {0};
    if (atomic_flag_test_and_set_explicit(&history->looking, memory_order_acquire))
        return;
    for (size_t i = 0; i < POOL_HISTORY_SAMPLES; i++) {
        const uint64_t sample =
            atomic_exchange_explicit(&history->samples[i], 0, memory_order_relaxed);
        if (sample)
            kept[sample % POOL_HISTORY_CLASSES]++;
    }
    for (unsigned class = 0; class < POOL_HISTORY_CLASSES; class ++)
        judge(history, class, kept[class]);
    atomic_store_explicit(&history->placed_since, 0, memory_order_relaxed);
    atomic_flag_clear_explicit(&history->looking, memory_order_release);
}

size_t pool_history_brief_classes(const struct pool_history *history)
{
    size_t count = 0;
    for (size_t i = 0; i < POOL_HISTORY_CLASSES; i++)
        count += atomic_load_explicit(&history->brief[i], memory_order_relaxed);
    return count;
}

/* What threads have to themselves is gathered in leases, which are low already. */
enum space_placement pool_history_placement(const struct raffia_pool *pool, size_t bytes)
{
    const struct pool_history *history = pool->history;
    if (bytes > history->most_bytes ||
        atomic_load_explicit(&history->brief[class_of(bytes)], memory_order_relaxed) ||
        atomic_load_explicit(&history->placed_since, memory_order_relaxed) >= PLACED_PER_LOOK ||
        pool_arenas_of(pool))
        return SPACE_PLACE_ANY;
    return SPACE_PLACE_LOW;
}

/* Whether a block finds a free sample, and whether a block that is freed was followed, is as good
 * as random: both are written in any case, as a branch would cost more than the rest of it. */
void pool_history_born(struct raffia_pool *pool, const struct space_request *request,
                       const struct space_block *block)
{
    struct pool_history *history = pool->history;
    if (request->bytes > history->most_bytes)
        return;
    if (request->placement == SPACE_PLACE_LOW) {
        atomic_fetch_add_explicit(&history->placed, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&history->placed_since, 1, memory_order_relaxed);
    }
    const uint64_t place = place_of(history, block->offset);
    _Atomic uint64_t *slot = sample_of(history, place);
    const uint64_t mine = place * POOL_HISTORY_CLASSES | class_of(request->bytes);
    const uint64_t sample = atomic_load_explicit(slot, memory_order_relaxed);
    atomic_store_explicit(slot, sample ? sample : mine, memory_order_relaxed);
}

void pool_history_gone(struct raffia_pool *pool, const void *address)
{
    struct pool_history *history = pool->history;
    /* An address below the base wraps to an offset beyond any range. */
    const size_t offset = (uintptr_t)address - (uintptr_t)pool->base;
    if (offset >= pool->range_bytes)
        return;
    const uint64_t place = place_of(history, offset);
    _Atomic uint64_t *slot = sample_of(history, place);
    const uint64_t sample = atomic_load_explicit(slot, memory_order_relaxed);
    const bool followed = sample / POOL_HISTORY_CLASSES == place;
    atomic_store_explicit(slot, followed ? 0 : sample, memory_order_relaxed);
    atomic_uint *gone = &history->gone[sample % POOL_HISTORY_CLASSES];
    atomic_store_explicit(gone, atomic_load_explicit(gone, memory_order_relaxed) + followed,
                          memory_order_relaxed);
}
