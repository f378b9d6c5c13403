/*
 * Several models that load and go at once, through one pool (SPEC B13): each load succeeds, falls
 * back or fails whole, whatever the others do and however small the pool is.
 */
#include "models.h"
#include "support/cmocka.h"
#include "support/random.h"

#include <raffia/log.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LOADERS = 4, ROUNDS = 8, MODELS = 3, HELD = 2 };

static struct test_directory directory;
static struct life_model models[MODELS];
static const size_t sizes[MODELS] = {4 * MIB, 7 * MIB, 2 * MIB};

struct loader {
    raffia_pool *pool;
    unsigned number;
    unsigned loaded, fell_back, refused;
    char complaint[1000];
};

static void complain(struct loader *loader, const char *what)
{
    snprintf(loader->complaint, sizeof loader->complaint, "%s: %s", what, raffia_last_error());
}

/* From the pool, or else from memory of its own, as a program would. */
static raffia_model *load_somewhere(struct loader *loader, const struct life_model *model)
{
    raffia_model *loaded = NULL;
    raffia_status status = life_load(
        model, &LOAD_OPTIONS(.pool = loader->pool, .threads = 2, .checksum = RAFFIA_CHECKSUM_XXH3),
        &loaded);
    if (!status) {
        loader->loaded++;
        return loaded;
    }
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY) {
        complain(loader, "a load failed for another reason than memory");
        return NULL;
    }
    loader->refused++;
    status = life_load(model, &LOAD_OPTIONS(.pages = RAFFIA_PAGES_OFF, .threads = 1), &loaded);
    if (status)
        complain(loader, "a load into regular memory failed");
    else
        loader->fell_back++;
    return loaded;
}

/* Keeps two models, checks the older one before it goes. */
static void *load_and_release(void *argument)
{
    struct loader *loader = argument;
    raffia_model *held[HELD] = {NULL};
    unsigned which[HELD] = {0};
    for (unsigned round = 0; round < ROUNDS && !loader->complaint[0]; round++) {
        const unsigned slot = round % HELD;
        if (held[slot] && !life_model_is_whole(&models[which[slot]], held[slot]))
            complain(loader, "a model changed while others came and went");
        raffia_model_release(held[slot]);
        which[slot] = (loader->number + round) % MODELS;
        held[slot] = load_somewhere(loader, &models[which[slot]]);
    }
    for (unsigned i = 0; i < HELD; i++)
        raffia_model_release(held[i]);
    return NULL;
}

static atomic_bool stop;

static void *trim_and_check(void *pool)
{
    raffia_status status = RAFFIA_OK;
    while (!atomic_load(&stop) && !status) {
        status = raffia_pool_trim(pool, 4 * MIB, NULL);
        if (!status)
            status = raffia_pool_check(pool);
    }
    return (void *)(intptr_t)status;
}

struct outcome {
    unsigned loaded, fell_back, refused;
};

static struct outcome load_together(raffia_pool_options options, bool trimming)
{
    raffia_pool *pool = life_pool_make(&options);
    pthread_t threads[LOADERS], trimmer;
    struct loader loaders[LOADERS];
    struct outcome sum = {0};
    void *trimmed = NULL;
    atomic_store(&stop, false);
    if (trimming)
        assert_int_equal(pthread_create(&trimmer, NULL, trim_and_check, pool), 0);
    for (unsigned i = 0; i < LOADERS; i++) {
        loaders[i] = (struct loader){.pool = pool, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, load_and_release, &loaders[i]), 0);
    }
    for (unsigned i = 0; i < LOADERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&stop, true);
    if (trimming)
        pthread_join(trimmer, &trimmed);
    for (unsigned i = 0; i < LOADERS; i++) {
        if (loaders[i].complaint[0])
            fail_msg("loader %u: %s", i, loaders[i].complaint);
        sum.loaded += loaders[i].loaded;
        sum.fell_back += loaders[i].fell_back;
        sum.refused += loaders[i].refused;
    }
    assert_int_equal((intptr_t)trimmed, RAFFIA_OK);
    assert_int_equal(sum.loaded + sum.refused, LOADERS * ROUNDS);
    assert_int_equal(sum.fell_back, sum.refused);
    life_pool_end(pool);
    return sum;
}

static raffia_pool_options pool_of(size_t maximum)
{
    return POOL_OPTIONS(.pages = RAFFIA_PAGES_OFF, .initial_bytes = RAFFIA_NONE,
                        .maximum_bytes = maximum, .chunk_bytes = MIB);
}

/* Each loader holds two models at most, and for a moment none is released before the next. */
static void b13_with_room_for_all_every_load_succeeds(void **state)
{
    (void)state;
    assert_int_equal(load_together(pool_of(LOADERS * HELD * 8 * MIB), false).refused, 0);
    assert_int_equal(load_together(pool_of(LOADERS * HELD * 8 * MIB), true).refused, 0);
}

static void b13_in_a_pool_too_small_for_all_each_load_succeeds_or_fails_whole(void **state)
{
    (void)state;
    const struct outcome outcome = load_together(pool_of(12 * MIB), false);
    assert_true(outcome.loaded > 0 && outcome.refused > 0);
    load_together(pool_of(12 * MIB), true);
}

/* The largest never fits, the others do now and then. */
static void b13_in_a_pool_too_small_for_one_the_others_still_load(void **state)
{
    (void)state;
    raffia_pool_options options = pool_of(5 * MIB);
    options.initial_bytes = 5 * MIB;
    options.flags = RAFFIA_POOL_FIXED;
    const struct outcome outcome = load_together(options, false);
    assert_true(outcome.loaded > 0 && outcome.refused >= LOADERS * ROUNDS / MODELS);
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
        cmocka_unit_test(b13_with_room_for_all_every_load_succeeds),
        cmocka_unit_test(b13_in_a_pool_too_small_for_all_each_load_succeeds_or_fails_whole),
        cmocka_unit_test(b13_in_a_pool_too_small_for_one_the_others_still_load),
    };
    return cmocka_run_group_tests_name("life many", tests, make_models, remove_models);
}
