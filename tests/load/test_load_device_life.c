/* Loads into a device: every call failed once, forks, and several loads at once. */
#include "device_fixture.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static raffia_status load_once(void *context)
{
    raffia_model *model;
    raffia_status status = raffia_model_load(path.text, context, &model);
    if (!status) {
        unsigned char copy[3];
        const raffia_tensor *tensor = raffia_model_tensor(model, "c");
        status = raffia_model_read(model, tensor, 0, copy, 3);
        for (size_t i = 0; !status && i < 3; i++)
            assert_int_equal(copy[i], model_file_byte(tensors[2].offset + i, 0));
        raffia_model_release(model);
    }
    raffia_load_release_staging();
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.misuses, 0);
    return status;
}

static void a_load_survives_every_failure(void **state)
{
    (void)state;
    static const raffia_reader readers[] = {RAFFIA_READER_BUFFERED, RAFFIA_READER_DIRECT};
    for (size_t i = 0; i < 2; i++) {
        raffia_load_options options =
            LOAD_OPTIONS(.device = "sim:0", .threads = 2, .reader = readers[i],
                         .budget_bytes = 512 * KIB, .window_bytes = 128 * KIB,
                         .checksum = i ? RAFFIA_CHECKSUM_XXH3 : RAFFIA_CHECKSUM_NONE);
        assert_true(fault_loop(load_once, &options, 5000) > 50);
        assert_true(sim_is_idle());
    }
}

static void a_forked_child_is_refused(void **state)
{
    (void)state;
    raffia_model *model, *other;
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        unsigned char byte;
        const raffia_tensor *tensor = raffia_model_tensor(model, "a");
        int code = raffia_model_read(model, tensor, 0, &byte, 1) == RAFFIA_ERROR_FORKED ? 0 : 1;
        if (raffia_model_load(path.text, &LOAD_OPTIONS(.device = "sim:0"), &other) !=
            RAFFIA_ERROR_FORKED)
            code |= 2;
        raffia_load_release_staging();
        raffia_model_release(model);
#ifndef __SANITIZE_THREAD__ /* which ends a forked child that starts threads */
        if (raffia_model_load(path.text, &LOAD_OPTIONS(.device = "host"), &other))
            code |= 4;
#endif
        _exit(code);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    check_all(model);
    raffia_model_release(model);
}

enum { LOADERS = 4, ROUNDS = 6 };

static void *load_often(void *argument)
{
    unsigned number = *(unsigned *)argument;
    for (unsigned round = 0; round < ROUNDS; round++) {
        raffia_model *model;
        unsigned char last;
        if (raffia_model_load(path.text,
                              &LOAD_OPTIONS(.device = number % 2 ? "sim:0" : "sim:1", .threads = 2,
                                            .budget_bytes = 256 * KIB),
                              &model))
            return "a load failed";
        const raffia_tensor *tensor = raffia_model_tensor(model, "e");
        raffia_status status = raffia_model_read(model, tensor, tensor->bytes - 1, &last, 1);
        raffia_model_release(model);
        if (status || last != model_file_byte(tensors[4].offset + tensors[4].bytes - 1, 0))
            return "a byte is wrong";
    }
    return NULL;
}

static void loads_at_once_have_rings_of_their_own(void **state)
{
    (void)state;
    pthread_t threads[LOADERS];
    unsigned numbers[LOADERS];
    for (unsigned i = 0; i < LOADERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, load_often, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < LOADERS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        if (wrong)
            fail_msg("loader %u: %s", i, (const char *)wrong);
    }
    raffia_load_release_staging();
    assert_true(sim_is_idle());
}

/* What a child finds whose parent had loads under way: it must not hang, nor get anything. */
static int look_from_child(const raffia_model *model)
{
    raffia_model *other;
    unsigned char byte;
    alarm(60);
    if (raffia_model_read(model, raffia_model_tensor(model, "a"), 0, &byte, 1) !=
        RAFFIA_ERROR_FORKED)
        return 1;
    if (raffia_model_load(path.text, &LOAD_OPTIONS(.device = "sim:0"), &other) !=
        RAFFIA_ERROR_FORKED)
        return 2;
    raffia_load_release_staging();
    return 0;
}

static void a_child_forked_among_loads_is_refused(void **state)
{
    (void)state;
    raffia_model *model;
    pthread_t threads[LOADERS];
    unsigned numbers[LOADERS];
    load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    for (unsigned i = 0; i < LOADERS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, load_often, &numbers[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(look_from_child(model));
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    for (unsigned i = 0; i < LOADERS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    raffia_model_release(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_load_survives_every_failure),
        TEST(a_forked_child_is_refused),
        TEST(loads_at_once_have_rings_of_their_own),
        TEST(a_child_forked_among_loads_is_refused),
    };
    return cmocka_run_group_tests_name("life of loads into a device", tests, make_directory,
                                       remove_directory);
}
