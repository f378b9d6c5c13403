/*
 * Models that rotate through a pool which stands (SPEC B13): after the first round no mapping is
 * made or given up any more, and nothing fails.
 */
#include "driver/hugetlb_pages.h"
#include "models.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <raffia/log.h>

#include <stdio.h>

enum { MODELS = 3, ROUNDS = 20, PAGES = 20 };

#define CHUNK_BYTES (2 * MIB)

static struct test_directory directory;
static struct life_model models[MODELS];
static const size_t sizes[MODELS] = {5 * MIB, 9 * MIB, 3 * MIB};
static size_t sum, largest;

/* What loading into the pool needs for a model: its tensors, each from an aligned address on. */
static size_t needed(const struct life_model *model)
{
    raffia_model *inspected;
    assert_ok(raffia_model_inspect(model->path.text, NULL, &inspected));
    const size_t bytes = raffia_model_bytes_needed(inspected);
    raffia_model_release(inspected);
    return bytes;
}

static size_t tenths(size_t bytes, size_t tenths_of_it)
{
    return bytes / 10 * tenths_of_it;
}

static raffia_model *must_load(raffia_pool *pool, int model)
{
    raffia_model *loaded = NULL;
    assert_ok(life_load(&models[model], &LOAD_OPTIONS(.pool = pool, .threads = 2), &loaded));
    return loaded;
}

struct rotation {
    raffia_pool *pool;
    uint64_t driver_calls; /* after the first round */
};

static void start(struct rotation *rotation, raffia_pool_options options, size_t maximum)
{
    options.maximum_bytes = maximum;
    if (!options.initial_bytes)
        options.initial_bytes = maximum;
    *rotation = (struct rotation){.pool = life_pool_make(&options)};
}

static void end_round(struct rotation *rotation, int round)
{
    const raffia_pool_stats stats = life_pool_stats(rotation->pool);
    assert_ok(raffia_pool_check(rotation->pool));
    if (round == 0)
        rotation->driver_calls = stats.driver_calls;
    assert_int_equal(stats.driver_calls, rotation->driver_calls);
    assert_int_equal(stats.failures, 0);
}

/* All stay; each is replaced in its turn. */
static void replace_in_turn(raffia_pool_options options)
{
    struct rotation rotation;
    raffia_model *loaded[MODELS] = {NULL};
    start(&rotation, options, tenths(sum, 13));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MODELS; i++) {
            raffia_model_release(loaded[i]);
            loaded[i] = must_load(rotation.pool, i);
        }
        end_round(&rotation, round);
    }
    for (int i = 0; i < MODELS; i++) {
        assert_true(life_model_is_whole(&models[i], loaded[i]));
        raffia_model_release(loaded[i]);
    }
    life_pool_end(rotation.pool);
}

/* The next one is loaded before the last one goes. */
static void overlap_in_turn(raffia_pool_options options)
{
    struct rotation rotation;
    raffia_model *last = NULL;
    start(&rotation, options, tenths(sum, 13));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MODELS; i++) {
            raffia_model *next = must_load(rotation.pool, i);
            raffia_model_release(last);
            last = next;
        }
        end_round(&rotation, round);
    }
    raffia_model_release(last);
    life_pool_end(rotation.pool);
}

/* Each time some go, in any order, and come again in another. */
static void shuffle(raffia_pool_options options)
{
    struct test_random random = test_random_seeded("shuffle");
    struct rotation rotation;
    raffia_model *loaded[MODELS] = {NULL};
    start(&rotation, options, tenths(sum, 13));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MODELS; i++)
            if (test_random_below(&random, 2)) {
                raffia_model_release(loaded[i]);
                loaded[i] = NULL;
            }
        const size_t first = test_random_below(&random, MODELS);
        for (size_t i = first; i < first + MODELS; i++)
            if (!loaded[i % MODELS])
                loaded[i % MODELS] = must_load(rotation.pool, (int)(i % MODELS));
        end_round(&rotation, round);
    }
    for (int i = 0; i < MODELS; i++) {
        assert_true(life_model_is_whole(&models[i], loaded[i]));
        raffia_model_release(loaded[i]);
    }
    life_pool_end(rotation.pool);
}

/* One at a time. */
static void take_turns(raffia_pool_options options)
{
    struct rotation rotation;
    start(&rotation, options, tenths(largest, 12));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < MODELS; i++)
            raffia_model_release(must_load(rotation.pool, i));
        end_round(&rotation, round);
    }
    life_pool_end(rotation.pool);
}

/* Mapped as a whole from the start. */
static const raffia_pool_options standing = {.struct_size = sizeof(raffia_pool_options),
                                             .device = "host",
                                             .pages = RAFFIA_PAGES_OFF,
                                             .chunk_bytes = CHUNK_BYTES};

/* Nothing is mapped at first: the first round grows it. */
static raffia_pool_options growing(void)
{
    raffia_pool_options options = standing;
    options.initial_bytes = RAFFIA_NONE;
    return options;
}

static raffia_pool_options in_reserved_pages(void)
{
    raffia_pool_options options = growing();
    options.pages = RAFFIA_PAGES_ON;
    if (!hugetlb_pages_set(PAGES)) {
        print_message("the machine's pool of 2 MiB pages cannot be set to %d pages\n", PAGES);
        skip();
    }
    return options;
}

static int restore_pages(void **state)
{
    (void)state;
    hugetlb_pages_restore();
    return 0;
}

static void b13_models_are_replaced_without_a_driver_call(void **state)
{
    (void)state;
    replace_in_turn(standing);
    replace_in_turn(growing());
}

static void b13_models_overlap_without_a_driver_call(void **state)
{
    (void)state;
    overlap_in_turn(standing);
}

static void b13_models_come_and_go_in_any_order_without_a_driver_call(void **state)
{
    (void)state;
    shuffle(standing);
}

static void b13_models_take_turns_in_little_more_than_the_largest_needs(void **state)
{
    (void)state;
    take_turns(standing);
    take_turns(growing());
}

static void b13_models_rotate_through_reserved_pages(void **state)
{
    (void)state;
    const raffia_pool_options options = in_reserved_pages();
    replace_in_turn(options);
    take_turns(options);
    assert_int_equal(hugetlb_pages_available(), PAGES);
}

static int make_models(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_ERROR);
    test_directory_make(&directory);
    for (unsigned i = 0; i < MODELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "model-%u", i);
        life_model_make(&models[i], &directory, name, sizes[i], i);
        const size_t bytes = needed(&models[i]);
        sum += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return 0;
}

static int remove_models(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b13_models_are_replaced_without_a_driver_call),
        cmocka_unit_test(b13_models_overlap_without_a_driver_call),
        cmocka_unit_test(b13_models_come_and_go_in_any_order_without_a_driver_call),
        cmocka_unit_test(b13_models_take_turns_in_little_more_than_the_largest_needs),
        cmocka_unit_test_teardown(b13_models_rotate_through_reserved_pages, restore_pages),
    };
    return cmocka_run_group_tests_name("life rotation", tests, make_models, remove_models);
}
