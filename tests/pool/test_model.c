/*
 * A pool against an obvious model: a list of the blocks that are live.
 *
 * The model says exactly when a request must be served: there is an aligned place without blocks,
 * and the chunks that blocks and place need together stay within the maximum.
 */
#include "pool/pool_fixture.h"
#include "pool/pool_internal.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <string.h>

#define MODEL_BLOCKS  48
#define MODEL_GRANULE ((size_t)4096)
#define MODEL_MAXIMUM (9 * TEST_CHUNK + TEST_PAGE)
#define MODEL_STEPS   1500

struct live {
    size_t offset, bytes; /* rounded to the granule */
    size_t requested;
    unsigned char pattern;
};

struct model {
    raffia_pool *pool;
    struct test_random random;
    struct live live[MODEL_BLOCKS];
    size_t count;
    size_t range, limit; /* addresses, and the largest maximum */
    size_t maximum;
    size_t served, refused, resized, not_resized;
};

static size_t rounded(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static bool overlaps(const struct model *model, size_t offset, size_t bytes,
                     const struct live *except)
{
    for (size_t i = 0; i < model->count; i++) {
        const struct live *other = &model->live[i];
        if (other != except && offset < other->offset + other->bytes &&
            other->offset < offset + bytes)
            return true;
    }
    return false;
}

/* Bytes of the slots that the blocks and [offset, offset + bytes) touch. */
static size_t bytes_needed(const struct model *model, size_t offset, size_t bytes)
{
    size_t needed = 0;
    for (size_t start = 0; start < model->range; start += TEST_CHUNK) {
        const size_t size = model->range - start < TEST_CHUNK ? model->range - start : TEST_CHUNK;
        const bool touched = offset < start + size && start < offset + bytes;
        if (touched || overlaps(model, start, size, NULL))
            needed += size;
    }
    return needed;
}

/* What is mapped already costs nothing: a lowered maximum takes nothing away from a place that
 * needs no growth. */
static bool is_mapped(const struct model *model, size_t offset, size_t bytes)
{
    const struct pool_interval interval = {offset, bytes, 0};
    for (size_t i = pool_first_slot(model->pool, &interval);
         i < pool_end_slot(model->pool, &interval); i++)
        if (model->pool->slots[i].state != POOL_SLOT_MAPPED)
            return false;
    return true;
}

static bool could_be_served(const struct model *model, size_t bytes, size_t alignment)
{
    if (bytes > model->range)
        return false;
    for (size_t offset = 0; offset <= model->range - bytes; offset += alignment)
        if (!overlaps(model, offset, bytes, NULL) &&
            (is_mapped(model, offset, bytes) ||
             bytes_needed(model, offset, bytes) <= model->maximum))
            return true;
    return false;
}

static void check_content(const struct model *model, const struct live *live)
{
    const unsigned char *byte = (unsigned char *)model->pool->base + live->offset;
    for (size_t i = 0; i < live->requested; i++)
        if (byte[i] != live->pattern)
            fail_msg("byte %zu of a block of %zu was overwritten", i, live->requested);
}

static void paint(struct model *model, struct live *live)
{
    live->pattern = (unsigned char)(1 + test_random_below(&model->random, 250));
    memset(model->pool->base + live->offset, live->pattern, live->requested);
}

static void step_alloc(struct model *model)
{
    const size_t bytes = test_random_size(&model->random, 4 * TEST_CHUNK);
    const size_t alignment = MODEL_GRANULE << test_random_below(&model->random, 7);
    const size_t size = rounded(bytes, MODEL_GRANULE);
    if (model->count == MODEL_BLOCKS)
        return;
    const bool possible = could_be_served(model, size, alignment);
    void *address = NULL;
    raffia_status status = raffia_pool_alloc(model->pool, bytes, alignment, &address);
    if (!possible) {
        assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
        model->refused++;
        return;
    }
    assert_ok(status);
    struct live live = {(size_t)((char *)address - model->pool->base), size, bytes, 0};
    assert_true(live.offset <= model->range - size);
    assert_int_equal((uintptr_t)address % alignment, 0);
    assert_false(overlaps(model, live.offset, size, NULL));
    paint(model, &live);
    model->live[model->count++] = live;
    model->served++;
}

static void step_free(struct model *model)
{
    if (!model->count)
        return;
    struct live *live = &model->live[test_random_below(&model->random, model->count)];
    check_content(model, live);
    must_free(model->pool, model->pool->base + live->offset);
    *live = model->live[--model->count];
}

static void step_resize(struct model *model)
{
    if (!model->count)
        return;
    struct live *live = &model->live[test_random_below(&model->random, model->count)];
    const size_t bytes = test_random_size(&model->random, 2 * TEST_CHUNK);
    const size_t size = rounded(bytes, MODEL_GRANULE);
    const bool possible =
        size <= live->bytes ||
        (size <= model->range - live->offset && !overlaps(model, live->offset, size, live) &&
         (is_mapped(model, live->offset, size) ||
          bytes_needed(model, live->offset, size) <= model->maximum));
    raffia_status status = raffia_pool_resize(model->pool, model->pool->base + live->offset, bytes);
    if (!possible) {
        assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
        check_content(model, live);
        model->not_resized++;
        return;
    }
    assert_ok(status);
    if (bytes < live->requested)
        live->requested = bytes;
    check_content(model, live);
    live->requested = bytes;
    live->bytes = size;
    paint(model, live);
    model->resized++;
}

static void step_trim(struct model *model)
{
    const size_t keep = test_random_below(&model->random, model->limit);
    const size_t before = stats_of(model->pool).reserved_bytes;
    size_t released;
    assert_ok(raffia_pool_trim(model->pool, keep, &released));
    const raffia_pool_stats stats = stats_of(model->pool);
    assert_int_equal(stats.reserved_bytes, before - released);
    assert_true(stats.reserved_bytes <= keep || stats.idle_bytes == 0);
}

static void step_maximum(struct model *model)
{
    size_t maximum = model->limit;
    if (test_random_below(&model->random, 2))
        maximum = test_random_below(&model->random, model->limit + 1);
    assert_ok(raffia_pool_set_maximum(model->pool, maximum));
    model->maximum = maximum;
    const raffia_pool_stats stats = stats_of(model->pool);
    assert_true(stats.reserved_bytes <= maximum || stats.idle_bytes == 0);
}

static void step(struct model *model)
{
    const size_t dice = test_random_below(&model->random, 100);
    if (dice < 50)
        step_alloc(model);
    else if (dice < 80)
        step_free(model);
    else if (dice < 92)
        step_resize(model);
    else if (dice < 96)
        step_trim(model);
    else
        step_maximum(model);
}

static void check_figures(const struct model *model)
{
    const raffia_pool_stats stats = stats_of(model->pool);
    size_t in_use = 0, requested = 0;
    for (size_t i = 0; i < model->count; i++) {
        in_use += model->live[i].bytes;
        requested += model->live[i].requested;
    }
    assert_int_equal(stats.live_blocks, model->count);
    assert_int_equal(stats.in_use_bytes, in_use);
    assert_int_equal(stats.requested_bytes, requested);
    assert_int_equal(stats.free_bytes, stats.reserved_bytes - in_use);
    assert_int_equal(stats.hits + stats.misses, model->served);
    assert_int_equal(stats.failures, model->refused);
    assert_ok(raffia_pool_check(model->pool));
}

/* `address_bytes`: 0, or more than the maximum. */
static void run_model(unsigned flags, size_t maximum_bytes, size_t address_bytes, const char *name)
{
    struct pool_plan plan = small_plan();
    plan.maximum_bytes = maximum_bytes;
    plan.address_bytes = address_bytes;
    plan.granule = MODEL_GRANULE;
    plan.flags = flags;
    struct model model = {.pool = make_pool(&plan),
                          .range = address_bytes ? address_bytes : maximum_bytes,
                          .limit = maximum_bytes,
                          .maximum = maximum_bytes};
    model.random = test_random_seeded(name);
    for (size_t i = 0; i < MODEL_STEPS; i++) {
        step(&model);
        check_figures(&model);
    }
    while (model.count)
        step_free(&model);
    assert_true(model.served > MODEL_STEPS / 10);
    assert_true(model.refused && model.resized && model.not_resized);

    /* Nothing was lost on the way. */
    assert_ok(raffia_pool_set_maximum(model.pool, maximum_bytes));
    must_free(model.pool, must_alloc(model.pool, maximum_bytes));
    assert_int_equal(stats_of(model.pool).free_blocks, 1);
    drop_pool(model.pool);
}

static void a_pool_does_what_a_list_of_blocks_says(void **state)
{
    (void)state;
    run_model(0, MODEL_MAXIMUM, 0, "a pool");
}

static void a_remappable_pool_does_the_same(void **state)
{
    (void)state;
    run_model(RAFFIA_POOL_REMAPPABLE, MODEL_MAXIMUM, 0, "a remappable pool");
}

static void b16_one_with_addresses_to_spare_does_the_same(void **state)
{
    (void)state;
    run_model(RAFFIA_POOL_REMAPPABLE, 10 * TEST_CHUNK, 15 * TEST_CHUNK,
              "a pool with addresses to spare");
}

static void b16_an_adaptive_pool_does_the_same(void **state)
{
    (void)state;
    run_model(RAFFIA_POOL_ADAPTIVE, MODEL_MAXIMUM, 0, "an adaptive pool");
    run_model(RAFFIA_POOL_ADAPTIVE | RAFFIA_POOL_REMAPPABLE, 10 * TEST_CHUNK, 15 * TEST_CHUNK,
              "an adaptive pool that moves chunks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_pool_does_what_a_list_of_blocks_says, set_up_device),
        cmocka_unit_test_setup(a_remappable_pool_does_the_same, set_up_device),
        cmocka_unit_test_setup(b16_one_with_addresses_to_spare_does_the_same, set_up_device),
        cmocka_unit_test_setup(b16_an_adaptive_pool_does_the_same, set_up_device),
    };
    return cmocka_run_group_tests_name("pool model", tests, NULL, NULL);
}
