#include "soak/soak.h"

#include "core/memory.h"
#include "driver/sim/sim.h"
#include "pool/pool.h"
#include "pool/pool_internal.h"
#include "support/random.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SOAK_PAGE    ((size_t)64 << 10)
#define SOAK_CHUNK   SOAK_PAGE
#define SOAK_CHUNKS  128u
#define SOAK_MAXIMUM (SOAK_CHUNKS * SOAK_CHUNK)
#define SOAK_RANGE   (SOAK_MAXIMUM / 2 * 3)
#define SOAK_HELD    128u /* blocks of all threads at most */
#define SOAK_STEPS   64u  /* rounds between which all threads stop and everything is checked */

struct held {
    unsigned char *at;
    size_t bytes; /* as asked for */
    uint64_t stamp;
};

struct shared {
    const struct soak *soak;
    raffia_pool *pool;
    unsigned char *base;
    atomic_uint *owners; /* one for each granule */
    atomic_bool broken;
    atomic_size_t requested;
};

struct worker {
    struct shared *shared;
    struct test_random random;
    unsigned number;
    driver_stream stream;
    size_t steps; /* of this round */
    struct held held[SOAK_HELD];
    size_t count;
    uint64_t address_refusals; /* seen so far */
    struct soak_figures figures;
};

static bool complain(struct shared *shared, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "soak, seed %llu: ", (unsigned long long)shared->soak->seed);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    atomic_store(&shared->broken, true);
    return false;
}

/* ---- the map -------------------------------------------------------------------------------- */

/* Granules from `from` bytes on of a block of `bytes`. */
static void own(struct worker *worker, const unsigned char *at, size_t from, size_t bytes)
{
    struct shared *shared = worker->shared;
    const size_t granule = shared->soak->granule, offset = (size_t)(at - shared->base);
    if (offset >= SOAK_RANGE || offset % granule || bytes > SOAK_RANGE - offset) {
        complain(shared, "a block of %zu bytes at offset %zu is outside of the pool", bytes,
                 offset);
        return;
    }
    for (size_t i = (offset + from + granule - 1) / granule; i * granule < offset + bytes; i++) {
        unsigned nobody = 0;
        if (!atomic_compare_exchange_strong(&shared->owners[i], &nobody, worker->number))
            complain(shared, "the granule at %zu was given to thread %u and belongs to %u",
                     i * granule, worker->number, nobody);
    }
}

static void disown(struct worker *worker, const unsigned char *at, size_t from, size_t bytes)
{
    struct shared *shared = worker->shared;
    const size_t granule = shared->soak->granule, offset = (size_t)(at - shared->base);
    for (size_t i = (offset + from + granule - 1) / granule; i * granule < offset + bytes; i++)
        if (atomic_exchange(&shared->owners[i], 0) != worker->number)
            complain(shared, "the granule at %zu was not thread %u's", i * granule, worker->number);
}

/* ---- stamps --------------------------------------------------------------------------------- */

static void stamp(struct held *held)
{
    const size_t size = core_min(held->bytes, sizeof held->stamp);
    memcpy(held->at, &held->stamp, size);
    memcpy(held->at + held->bytes - size, &held->stamp, size);
}

static bool is_stamped(const struct held *held)
{
    const size_t size = core_min(held->bytes, sizeof held->stamp);
    /* A block shorter than two stamps has the last one only. */
    return !memcmp(held->at + held->bytes - size, &held->stamp, size) &&
           (held->bytes < 2 * size || !memcmp(held->at, &held->stamp, size));
}

/* ---- operations ----------------------------------------------------------------------------- */

/* The pool was alone with this thread, and nothing is pending: with so many whole chunks free the
 * request should have been served, unless addresses were short. */
static void judge_refusal(struct worker *worker, size_t bytes)
{
    struct shared *shared = worker->shared;
    const struct soak *soak = shared->soak;
    raffia_pool_stats stats;
    if (soak->threads > 1 || soak->asynchronous || !(soak->flags & RAFFIA_POOL_REMAPPABLE) ||
        raffia_pool_query(shared->pool, &stats) || stats.pending_bytes)
        return;
    const size_t whole =
        stats.free_bytes - stats.stranded_bytes + SOAK_MAXIMUM - stats.reserved_bytes;
    if (bytes <= whole && stats.remap_address_refusals == worker->address_refusals)
        complain(shared, "%zu bytes were refused with %zu free in whole chunks", bytes, whole);
    worker->address_refusals = stats.remap_address_refusals;
}

/* Small blocks pin chunks, large ones want many: both in plenty, and now and then one that wants a
 * quarter of the pool. */
static size_t any_size(struct test_random *random)
{
    const size_t dice = test_random_below(random, 16);
    if (dice == 0)
        return test_random_size(random, SOAK_MAXIMUM / 4);
    return dice < 8 ? test_random_size(random, SOAK_CHUNK)
                    : 1 + test_random_below(random, 6 * SOAK_CHUNK);
}

static void step_alloc(struct worker *worker)
{
    struct shared *shared = worker->shared;
    const struct soak *soak = shared->soak;
    struct test_random *random = &worker->random;
    struct held *held = &worker->held[worker->count];
    const size_t bytes = any_size(random);
    const size_t alignment =
        test_random_below(random, 8) ? 0 : (size_t)1 << test_random_below(random, 17);
    void *at = NULL;
    raffia_status status;
    if (soak->asynchronous && test_random_below(random, 2))
        status = raffia_pool_alloc_on(shared->pool, worker->stream, bytes, alignment, &at);
    else
        status = raffia_pool_alloc(shared->pool, bytes, alignment, &at);
    worker->figures.allocations++;
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY) {
        worker->figures.refused++;
        if (!alignment || alignment <= soak->granule)
            judge_refusal(worker, bytes);
        return;
    }
    if (status) {
        complain(shared, "an allocation failed: %s", raffia_last_error());
        return;
    }
    if (alignment && (uintptr_t)at % alignment)
        complain(shared, "%p is not aligned to %zu", at, alignment);
    *held = (struct held){at, bytes, test_random_next(random)};
    own(worker, held->at, 0, bytes);
    stamp(held);
    atomic_fetch_add(&shared->requested, bytes);
    worker->count++;
}

/* An address that cannot be a block's start, whoever allocates meanwhile: the inside of one that is
 * ours, or one that is no pool's. */
static void free_badly(struct worker *worker, const struct held *held)
{
    struct shared *shared = worker->shared;
    static char foreign;
    void *bad = &foreign;
    if (held->bytes > shared->soak->granule && test_random_below(&worker->random, 2))
        bad = held->at + shared->soak->granule;
    if (raffia_pool_free(shared->pool, bad) != RAFFIA_ERROR_BAD_ADDRESS)
        complain(shared, "a free of %p was not refused", bad);
    worker->figures.bad_frees++;
}

static void step_free(struct worker *worker)
{
    struct shared *shared = worker->shared;
    const struct soak *soak = shared->soak;
    if (!worker->count)
        return;
    const size_t i = test_random_below(&worker->random, worker->count);
    const struct held held = worker->held[i];
    if (!is_stamped(&held))
        complain(shared, "the block of %zu bytes at %p was overwritten", held.bytes,
                 (void *)held.at);
    if (test_random_below(&worker->random, 64) == 0)
        free_badly(worker, &held);
    disown(worker, held.at, 0, held.bytes);
    atomic_fetch_sub(&shared->requested, held.bytes);
    worker->held[i] = worker->held[--worker->count];
    raffia_status status = soak->asynchronous && test_random_below(&worker->random, 2)
                               ? raffia_pool_free_on(shared->pool, worker->stream, held.at)
                               : raffia_pool_free(shared->pool, held.at);
    if (status)
        complain(shared, "a free failed: %s", raffia_last_error());
    worker->figures.frees++;
    /* Alone, the address is nobody's until the next allocation. */
    if (soak->threads == 1 && test_random_below(&worker->random, 64) == 0) {
        if (raffia_pool_free(shared->pool, held.at) != RAFFIA_ERROR_BAD_ADDRESS)
            complain(shared, "a second free of %p was not refused", (void *)held.at);
        worker->figures.bad_frees++;
    }
}

static void step_resize(struct worker *worker)
{
    struct shared *shared = worker->shared;
    if (!worker->count)
        return;
    struct held *held = &worker->held[test_random_below(&worker->random, worker->count)];
    const size_t old = held->bytes;
    const size_t bytes = test_random_size(&worker->random, 2 * SOAK_CHUNK);
    if (bytes < old) /* what is given back may be somebody else's at once */
        disown(worker, held->at, bytes, old);
    raffia_status status = raffia_pool_resize(shared->pool, held->at, bytes);
    worker->figures.resizes++;
    if (status == RAFFIA_ERROR_OUT_OF_MEMORY && bytes > old)
        return;
    if (status) {
        complain(shared, "a resize failed: %s", raffia_last_error());
        return;
    }
    if (bytes > old)
        own(worker, held->at, old, bytes);
    atomic_fetch_add(&shared->requested, bytes - old);
    held->bytes = bytes;
    stamp(held);
}

static void step(struct worker *worker)
{
    struct shared *shared = worker->shared;
    const size_t dice = test_random_below(&worker->random, 10000);
    const bool full = atomic_load(&shared->requested) > SOAK_MAXIMUM / 100 * 96;
    if (dice == 0) {
        if (raffia_pool_trim(shared->pool, SOAK_MAXIMUM / 2, NULL))
            complain(shared, "a trim failed: %s", raffia_last_error());
        worker->figures.trims++;
    } else if (dice < 500) {
        step_resize(worker);
    } else if (worker->count < SOAK_HELD / shared->soak->threads &&
               (full ? dice < 4500 : dice < 5800)) {
        step_alloc(worker);
    } else {
        step_free(worker);
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (size_t i = 0; i < worker->steps && !atomic_load(&worker->shared->broken); i++)
        step(worker);
    return NULL;
}

/* ---- checks --------------------------------------------------------------------------------- */

/* No thread runs. */
static bool check(struct shared *shared, const struct worker *workers, struct soak_figures *figures)
{
    raffia_pool_stats stats;
    size_t requested = 0, blocks = 0;
    for (unsigned i = 0; i < shared->soak->threads; i++)
        for (size_t j = 0; j < workers[i].count; j++, blocks++) {
            requested += workers[i].held[j].bytes;
            if (!is_stamped(&workers[i].held[j]))
                return complain(shared, "a block of %zu bytes was overwritten",
                                workers[i].held[j].bytes);
        }
    if (raffia_pool_check(shared->pool) || raffia_pool_query(shared->pool, &stats))
        return complain(shared, "%s", raffia_last_error());
    if (stats.live_blocks != blocks || stats.requested_bytes != requested)
        return complain(shared, "the pool has %zu blocks of %zu bytes, the model %zu of %zu",
                        stats.live_blocks, stats.requested_bytes, blocks, requested);
    if (stats.free_bytes + stats.in_use_bytes + stats.pending_bytes != stats.reserved_bytes ||
        stats.reserved_bytes > SOAK_MAXIMUM)
        return complain(shared, "%zu free, %zu in use and %zu pending of %zu", stats.free_bytes,
                        stats.in_use_bytes, stats.pending_bytes, stats.reserved_bytes);
    figures->fill += (double)requested / (double)SOAK_MAXIMUM;
    figures->checks++;
    return true;
}

static bool run_round(struct shared *shared, struct worker *workers, size_t operations)
{
    const unsigned threads = shared->soak->threads;
    pthread_t ids[16];
    unsigned started = 0;
    for (unsigned i = 0; i < threads; i++) {
        workers[i].steps = operations / threads;
        if (i && !pthread_create(&ids[i], NULL, work, &workers[i]))
            started++;
    }
    work(&workers[0]);
    for (unsigned i = 1; i <= started; i++)
        pthread_join(ids[i], NULL);
    return !atomic_load(&shared->broken);
}

/* All that was handed out came back, and is one piece again. */
static bool check_end(struct shared *shared, struct worker *workers, struct soak_figures *figures)
{
    raffia_pool_stats stats;
    void *all = NULL;
    for (unsigned i = 0; i < shared->soak->threads; i++)
        while (workers[i].count && !atomic_load(&shared->broken))
            step_free(&workers[i]);
    if (shared->soak->asynchronous) {
        raffia_status status = RAFFIA_OK;
        for (unsigned i = 0; !status && i < shared->soak->threads; i++)
            status = raffia_stream_retire("sim:0", workers[i].stream); /* marks what waits */
        if (status || sim_driver.device_wait(0))
            return complain(shared, "%s", raffia_last_error());
    }
    if (!check(shared, workers, figures) || raffia_pool_query(shared->pool, &stats))
        return false;
    if (stats.free_bytes != stats.reserved_bytes)
        return complain(shared, "%zu of %zu bytes are lost",
                        stats.reserved_bytes - stats.free_bytes, stats.reserved_bytes);
    figures->remaps += stats.remaps;
    figures->remapped_chunks += stats.remapped_chunks;
    if (raffia_pool_alloc(shared->pool, SOAK_MAXIMUM, 0, &all) ||
        raffia_pool_free(shared->pool, all))
        return complain(shared, "the whole pool cannot be had any more: %s", raffia_last_error());
    return true;
}

static void add_up(struct soak_figures *sum, const struct soak_figures *one)
{
    sum->allocations += one->allocations;
    sum->refused += one->refused;
    sum->frees += one->frees;
    sum->bad_frees += one->bad_frees;
    sum->resizes += one->resizes;
    sum->trims += one->trims;
}

static bool run_on(struct shared *shared, struct worker *workers, struct soak_figures *figures)
{
    const struct soak *soak = shared->soak;
    bool good = true;
    for (unsigned i = 0; i < soak->threads; i++) {
        workers[i] = (struct worker){.shared = shared, .number = i + 1};
        workers[i].random.state = soak->seed * 1000 + i;
        if (soak->asynchronous && sim_driver.stream_create(0, &workers[i].stream))
            return complain(shared, "no stream: %s", raffia_last_error());
    }
    for (unsigned i = 0; good && i < SOAK_STEPS; i++)
        good = run_round(shared, workers, soak->operations / SOAK_STEPS) &&
               check(shared, workers, figures);
    good = good && check_end(shared, workers, figures);
    for (unsigned i = 0; i < soak->threads; i++) {
        add_up(figures, &workers[i].figures);
        if (soak->asynchronous) {
            if (raffia_stream_retire("sim:0", workers[i].stream) ||
                sim_driver.stream_destroy(0, workers[i].stream))
                good = complain(shared, "%s", raffia_last_error());
        }
    }
    return good;
}

static raffia_status make_pool(const struct soak *soak, struct shared *shared)
{
    const struct sim_config config = {
        .synchronous = !soak->asynchronous,
        .page_count = 2,
        .pages = {{RAFFIA_PAGE_DEVICE, SOAK_PAGE}, {RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE}},
    };
    const bool remaps = (soak->flags & RAFFIA_POOL_REMAPPABLE) != 0;
    const struct pool_plan plan = {
        .device = {&sim_driver, 0},
        .name = "soak",
        .kind = RAFFIA_PAGE_DEVICE,
        .page_size = SOAK_PAGE,
        .initial_bytes = soak->flags & RAFFIA_POOL_FIXED ? SOAK_MAXIMUM : 0,
        .maximum_bytes = SOAK_MAXIMUM,
        .chunk_bytes = SOAK_CHUNK,
        .address_bytes = remaps ? SOAK_RANGE : 0,
        .granule = soak->granule,
        .flags = soak->flags,
        .threads = 1,
        .numa_node = -1,
        .asked_kind = RAFFIA_PAGE_DEVICE,
        .asked_size = SOAK_PAGE,
    };
    raffia_fallback_reason reason;
    sim_reset();
    raffia_status status = sim_configure(0, &config);
    if (!status)
        status = pool_create(&plan, &shared->pool, &reason);
    if (!status)
        shared->base = pool_base(shared->pool);
    return status;
}

bool soak_run(const struct soak *soak, struct soak_figures *figures)
{
    struct shared shared = {.soak = soak};
    struct worker *workers = core_calloc(soak->threads, sizeof *workers);
    shared.owners = core_calloc(SOAK_RANGE / soak->granule, sizeof *shared.owners);
    bool good = workers && shared.owners && !make_pool(soak, &shared);
    if (!good)
        complain(&shared, "cannot begin: %s", raffia_last_error());
    good = good && run_on(&shared, workers, figures);
    raffia_pool_release(shared.pool);
    core_free(shared.owners);
    core_free(workers);
    if (good && !sim_is_idle())
        good = complain(&shared, "something is left on the device");
    return good && !atomic_load(&shared.broken);
}
