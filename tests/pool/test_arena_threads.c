/*
 * Arenas under what threads do to them: a model that hops from arena to arena, and real threads
 * that take and free what others took.
 */
#include "core/memory.h"
#include "pool/arena.h"
#include "pool/pool_fixture.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SEAT_MEETINGS 8
#define HOP_MEETINGS  256

/* The thread moves on to the next arena. */
static void hop(raffia_pool *pool)
{
    for (int i = 0; i < HOP_MEETINGS; i++)
        pool_arena_met(pool, true);
}

/* As if nothing had ever been taken away from arenas. */
static void forget_losses(raffia_pool *pool)
{
    struct pool_arenas *arenas = pool_arenas_of(pool);
    arenas->penalty = 0;
    for (int i = 0; i < POOL_ARENAS; i++)
        arenas->arenas[i].patience = 0;
}

/* ---- a model -------------------------------------------------------------------------------- */

#define MODEL_BLOCKS 400
#define MODEL_STEPS  30000
#define GRANULES     (TEST_MAXIMUM / TEST_GRANULE)

struct live {
    size_t first, count; /* granules */
    size_t requested;
};

struct model {
    raffia_pool *pool;
    struct test_random random;
    bool taken[GRANULES];
    struct live live[MODEL_BLOCKS];
    size_t count, refused, leased, resized;
};

static size_t granules(size_t bytes)
{
    return (bytes + TEST_GRANULE - 1) / TEST_GRANULE;
}

/* Whether so many granules in a row are nobody's. */
static bool fits(const struct model *model, size_t count)
{
    size_t run = 0;
    for (size_t i = 0; i < GRANULES && run < count; i++)
        run = model->taken[i] ? 0 : run + 1;
    return run >= count;
}

static void mark(struct model *model, size_t first, size_t count, bool taken)
{
    for (size_t i = first; i < first + count; i++) {
        assert_int_not_equal(model->taken[i], taken);
        model->taken[i] = taken;
    }
}

static void step_alloc(struct model *model)
{
    const size_t bytes = test_random_size(&model->random, TEST_CHUNK);
    void *address = NULL;
    if (model->count == MODEL_BLOCKS)
        return;
    raffia_status status = raffia_pool_alloc(model->pool, bytes, 0, &address);
    if (status) {
        assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
        assert_false(fits(model, granules(bytes)));
        model->refused++;
        return;
    }
    const size_t offset = (size_t)((char *)address - model->pool->base);
    const struct pool_arenas *arenas = pool_arenas_of(model->pool);
    model->leased += arenas && atomic_load(&arenas->owners[offset >> arenas->lease_shift]);
    const struct live live = {offset / TEST_GRANULE, granules(bytes), bytes};
    mark(model, live.first, live.count, true);
    model->live[model->count++] = live;
}

static void *address_of(const struct model *model, const struct live *live)
{
    return model->pool->base + live->first * TEST_GRANULE;
}

static void step_free(struct model *model)
{
    if (!model->count)
        return;
    struct live *live = &model->live[test_random_below(&model->random, model->count)];
    must_free(model->pool, address_of(model, live));
    assert_int_equal(raffia_pool_free(model->pool, address_of(model, live)),
                     RAFFIA_ERROR_BAD_ADDRESS);
    mark(model, live->first, live->count, false);
    *live = model->live[--model->count];
}

static bool may_resize(const struct model *model, const struct live *live, size_t count)
{
    if (count > GRANULES - live->first)
        return false;
    for (size_t i = live->first + live->count; i < live->first + count; i++)
        if (model->taken[i])
            return false;
    return true;
}

static void step_resize(struct model *model)
{
    if (!model->count)
        return;
    struct live *live = &model->live[test_random_below(&model->random, model->count)];
    const size_t bytes = test_random_size(&model->random, TEST_CHUNK / 8);
    const bool possible = may_resize(model, live, granules(bytes));
    raffia_status status = raffia_pool_resize(model->pool, address_of(model, live), bytes);
    assert_int_equal(status, possible ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_MEMORY);
    if (!possible)
        return;
    mark(model, live->first, live->count, false);
    live->count = granules(bytes);
    live->requested = bytes;
    mark(model, live->first, live->count, true);
    model->resized++;
}

static void step_look(struct model *model)
{
    size_t requested = 0, taken = 0;
    for (size_t i = 0; i < model->count; i++) {
        requested += model->live[i].requested;
        taken += model->live[i].count * TEST_GRANULE;
    }
    const raffia_pool_stats stats = stats_of(model->pool);
    assert_int_equal(stats.live_blocks, model->count);
    assert_int_equal(stats.in_use_bytes, taken);
    assert_int_equal(stats.requested_bytes, requested);
    assert_int_equal(stats.free_bytes, TEST_MAXIMUM - taken);
    assert_true(stats.peak_in_use_bytes >= taken);
    if (!model->count)
        return;
    const struct live *live = &model->live[test_random_below(&model->random, model->count)];
    raffia_block block;
    const size_t inside = test_random_below(&model->random, live->requested);
    assert_ok(raffia_pool_find(model->pool, (char *)address_of(model, live) + inside, &block));
    assert_ptr_equal(block.address, address_of(model, live));
    assert_int_equal(block.requested_bytes, live->requested);
}

static bool compare(void *context, const raffia_block *block)
{
    const struct model *model = context;
    const size_t first = (size_t)((char *)block->address - model->pool->base) / TEST_GRANULE;
    for (size_t i = first; i < first + granules(block->bytes); i++)
        if (model->taken[i] != block->live)
            fail_msg("granule %zu is said to be %s", i, block->live ? "live" : "free");
    return true;
}

/* Fills up to about so many blocks; then they come and go. */
static void step(struct model *model, size_t wanted)
{
    const size_t dice = test_random_below(&model->random, 1000);
    if (dice < 15)
        hop(model->pool);
    else if (dice < 25)
        forget_losses(model->pool);
    else if (dice < 30)
        assert_ok(raffia_pool_check(model->pool));
    else if (dice < 32)
        assert_ok(raffia_pool_walk(model->pool, compare, model));
    else if (dice < 60)
        step_look(model);
    else if (dice < 120)
        step_resize(model);
    else if (test_random_below(&model->random, 2 * wanted) > model->count)
        step_alloc(model);
    else
        step_free(model);
}

static void run_model(uint64_t seed)
{
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_MAXIMUM;
    plan.flags = RAFFIA_POOL_FIXED;
    struct model *model = calloc(1, sizeof *model);
    assert_non_null(model);
    model->random.state = seed;
    model->pool = make_pool(&plan);
    hop(model->pool);
    for (size_t i = 0; i < MODEL_STEPS; i++)
        step(model, i / 3000 % 2 ? 20 : 300);
    while (model->count)
        step_free(model);
    assert_true(model->refused > 50 && model->leased > 2000 && model->resized > 100);
    drop_pool(model->pool);
    free(model);
}

static void blocks_of_arenas_are_those_of_a_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++)
        run_model(seed);
}

/* ---- packing -------------------------------------------------------------------------------- */

#define LOAD_BYTES   ((size_t)64 << 20)
#define LOAD_LARGEST (LOAD_BYTES / 64)
#define LOAD_STEPS   100000
#define LOAD_BLOCKS  4096

/* How often the thread moves on to the next arena: so that many are in use, or one. */
enum hopping {
    HOP_NEVER, /* and it has no arena at all */
    HOP_ONCE,
    HOP_OFTEN,
};

struct load {
    raffia_pool *pool;
    struct test_random random;
    struct {
        void *address;
        size_t bytes;
    } blocks[LOAD_BLOCKS];
    size_t count, live;
    double asked, refused;
};

static void free_any(struct load *load)
{
    const size_t victim = test_random_below(&load->random, load->count);
    must_free(load->pool, load->blocks[victim].address);
    load->live -= load->blocks[victim].bytes;
    load->blocks[victim] = load->blocks[--load->count];
}

/* Sizes on a logarithmic scale from a granule on, four fifths of the pool live. */
static void load_step(struct load *load)
{
    void *address;
    size_t bytes;
    do
        bytes = test_random_size(&load->random, LOAD_LARGEST);
    while (bytes < TEST_GRANULE);
    while (load->live + bytes > LOAD_BYTES / 5 * 4 || load->count == LOAD_BLOCKS)
        free_any(load);
    load->asked += (double)bytes;
    if (raffia_pool_alloc(load->pool, bytes, 0, &address)) {
        load->refused += (double)bytes;
        return;
    }
    load->blocks[load->count].address = address;
    load->blocks[load->count++].bytes = bytes;
    load->live += bytes;
}

/* The share of bytes refused for want of a stretch. */
static double refused_share(enum hopping hopping, uint64_t seed)
{
    struct pool_plan plan = small_plan();
    plan.initial_bytes = plan.maximum_bytes = plan.chunk_bytes = LOAD_BYTES;
    plan.flags = RAFFIA_POOL_FIXED;
    struct load *load = calloc(1, sizeof *load);
    assert_non_null(load);
    load->pool = make_pool(&plan);
    load->random.state = seed;
    for (size_t i = 0; i < LOAD_STEPS; i++) {
        if (hopping && i % (hopping == HOP_OFTEN ? 1000 : LOAD_STEPS) == 0)
            hop(load->pool);
        load_step(load);
    }
    while (load->count)
        free_any(load);
    drop_pool(load->pool);
    const double share = load->refused / load->asked;
    free(load);
    return share;
}

/* The same requests, so that the outcome is the same each time. */
static void arenas_cost_little_packing(void **state)
{
    (void)state;
    double shares[3] = {0};
    for (int hopping = HOP_NEVER; hopping <= HOP_OFTEN; hopping++)
        for (uint64_t seed = 1; seed <= 4; seed++)
            shares[hopping] += refused_share((enum hopping)hopping, seed) / 4;
    print_message("bytes refused: %.3f %% without arenas, %.3f %% with one, %.3f %% with many\n",
                  100 * shares[HOP_NEVER], 100 * shares[HOP_ONCE], 100 * shares[HOP_OFTEN]);
    assert_true(shares[HOP_ONCE] < shares[HOP_NEVER] + 0.004);
    assert_true(shares[HOP_OFTEN] < shares[HOP_NEVER] + 0.004);
}

/* ---- threads -------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  20000
#define SHELF   64
#define POOL    (4 * TEST_MAXIMUM)

/* Blocks lie on a shelf that all threads take from and put to. Each is written to all over. */
struct shelf {
    raffia_pool *pool;
    _Atomic(unsigned char *) places[SHELF];
    atomic_bool stop;
    _Atomic(const char *) complaint;
};

struct worker {
    struct shelf *shelf;
    uint64_t seed;
};

/* The first bytes of a block say how long it is, all others are its mark. */
static unsigned char *make_block(struct shelf *shelf, struct test_random *random)
{
    const uint32_t bytes = (uint32_t)test_random_size(random, 24 * KIB) + 8;
    void *block;
    raffia_status status = raffia_pool_alloc(shelf->pool, bytes, 0, &block);
    if (status) {
        if (status != RAFFIA_ERROR_OUT_OF_MEMORY)
            atomic_store(&shelf->complaint, raffia_status_name(status));
        return NULL;
    }
    memset(block, (int)(bytes % 251), bytes);
    memcpy(block, &bytes, sizeof bytes);
    return block;
}

static void end_block(struct shelf *shelf, unsigned char *block)
{
    uint32_t bytes;
    memcpy(&bytes, block, sizeof bytes);
    for (size_t i = sizeof bytes; i < bytes; i++)
        if (block[i] != bytes % 251) {
            atomic_store(&shelf->complaint, "two blocks overlap");
            break;
        }
    if (raffia_pool_free(shelf->pool, block))
        atomic_store(&shelf->complaint, "a free was refused");
}

static void *exchange(void *argument)
{
    const struct worker *worker = argument;
    struct shelf *shelf = worker->shelf;
    struct test_random random = {worker->seed};
    for (size_t i = 0; i < ROUNDS; i++) {
        unsigned char *block = make_block(shelf, &random);
        block = atomic_exchange(&shelf->places[test_random_below(&random, SHELF)], block);
        if (block)
            end_block(shelf, block);
    }
    return NULL;
}

static void *look_on(void *argument)
{
    const struct worker *worker = argument;
    struct shelf *shelf = worker->shelf;
    while (!atomic_load(&shelf->stop)) {
        raffia_pool_stats stats;
        void *large;
        if (raffia_pool_query(shelf->pool, &stats) || raffia_pool_check(shelf->pool))
            atomic_store(&shelf->complaint, "it is damaged");
        if (stats.free_bytes + stats.in_use_bytes != stats.reserved_bytes)
            atomic_store(&shelf->complaint, "a snapshot does not agree with itself");
        if (!raffia_pool_alloc(shelf->pool, stats.largest_free_bytes, 0, &large) &&
            raffia_pool_free(shelf->pool, large))
            atomic_store(&shelf->complaint, "a large free was refused");
        if (raffia_pool_trim(shelf->pool, 0, NULL))
            atomic_store(&shelf->complaint, "a trim failed");
    }
    return NULL;
}

static void run_threads(size_t count, bool watched, bool fixed)
{
    struct pool_plan plan = small_plan();
    struct shelf shelf = {.pool = NULL};
    struct worker workers[THREADS + 1];
    pthread_t threads[THREADS + 1];
    plan.maximum_bytes = POOL;
    plan.initial_bytes = fixed ? POOL : 0;
    plan.flags = fixed ? RAFFIA_POOL_FIXED : 0;
    shelf.pool = make_pool(&plan);
    for (size_t i = 0; i < count + watched; i++) {
        workers[i] = (struct worker){&shelf, 100 + i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < count ? exchange : look_on, &workers[i]), 0);
    }
    for (size_t i = 0; i < count + watched; i++) {
        if (i == count)
            atomic_store(&shelf.stop, true);
        pthread_join(threads[i], NULL);
    }
    if (atomic_load(&shelf.complaint))
        fail_msg("%s", atomic_load(&shelf.complaint));
    for (size_t i = 0; i < SHELF; i++)
        if (shelf.places[i])
            end_block(&shelf, shelf.places[i]);
    drop_pool(shelf.pool);
}

static void threads_free_what_others_took(void **state)
{
    (void)state;
    run_threads(THREADS, false, true);
}

static void others_look_trim_and_take_all_meanwhile(void **state)
{
    (void)state;
    run_threads(THREADS, true, true);
    run_threads(THREADS - 1, true, false);
}

/* ---- threads that come and go --------------------------------------------------------------- */

struct guest {
    raffia_pool *pool;
    void *kept; /* a block that outlives its thread */
    raffia_status status;
};

static void *visit_shortly(void *argument)
{
    struct guest *guest = argument;
    void *blocks[8] = {NULL};
    for (int i = 0; i < SEAT_MEETINGS; i++)
        pool_arena_met(guest->pool, false);
    for (int i = 0; i < 8 && !guest->status; i++)
        guest->status = raffia_pool_alloc(guest->pool, 700, 0, &blocks[i]);
    for (int i = 1; i < 8 && !guest->status; i++)
        guest->status = raffia_pool_free(guest->pool, blocks[i]);
    guest->kept = blocks[0];
    return NULL;
}

static void threads_that_come_and_go_leave_nothing_behind(void **state)
{
    (void)state;
    struct pool_plan plan = small_plan();
    plan.initial_bytes = TEST_MAXIMUM;
    plan.flags = RAFFIA_POOL_FIXED;
    raffia_pool *pool = make_pool(&plan);
    long memory = 0;
    void *older = NULL;
    for (int i = 0; i < 1000; i++) {
        struct guest guest = {.pool = pool};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, visit_shortly, &guest), 0);
        pthread_join(thread, NULL);
        assert_ok(guest.status);
        if (older)
            must_free(pool, older);
        older = guest.kept;
        if (i == 100)
            memory = core_memory_live();
    }
    assert_int_equal(core_memory_live(), memory);
    assert_int_equal(stats_of(pool).in_use_bytes, 768);
    must_free(pool, older);
    void *all = must_alloc(pool, TEST_MAXIMUM);
    must_free(pool, all);
    drop_pool(pool);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up_plain_device)
    const struct CMUnitTest tests[] = {
        TEST(blocks_of_arenas_are_those_of_a_model),
        TEST(arenas_cost_little_packing),
        TEST(threads_free_what_others_took),
        TEST(others_look_trim_and_take_all_meanwhile),
        TEST(threads_that_come_and_go_leave_nothing_behind),
    };
    return cmocka_run_group_tests_name("pool arenas, threads", tests, NULL, NULL);
}
