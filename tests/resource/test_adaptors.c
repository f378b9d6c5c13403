/* SPEC A10: what each adaptor does, beyond what all resources do. */
#include "driver/sim/sim.h"
#include "resource/makers.h"
#include "support/directory.h"
#include "support/log_capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct users_resource users;

static int fresh(void **state)
{
    (void)state;
    users =
        (struct users_resource){.properties = RAFFIA_DEVICE_ACCESSIBLE | RAFFIA_HOST_ACCESSIBLE};
    return 0;
}

static void *get(raffia_resource *resource, size_t bytes)
{
    void *block;
    assert_ok(raffia_allocate(raffia_ref(resource), NULL, bytes, 0, &block));
    return block;
}

static void drop(raffia_resource *resource, void *block, size_t bytes)
{
    assert_ok(raffia_deallocate(raffia_ref(resource), NULL, block, bytes, 0));
}

static bool has_room(raffia_resource *resource, size_t bytes)
{
    void *block;
    raffia_status status = raffia_allocate(raffia_ref(resource), NULL, bytes, 0, &block);
    if (!status)
        drop(resource, block, bytes);
    else
        assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
    return !status;
}

/* ---- limiting ------------------------------------------------------------------------------- */

static void a10_limiting_counts_in_steps_of_256(void **state)
{
    (void)state;
    raffia_resource *limiting;
    size_t live, limit;
    assert_ok(raffia_limiting_resource_create(users_ref(&users), 1024, &limiting));
    assert_false(has_room(limiting, 1025));
    assert_error_mentions("limit");
    assert_true(has_room(limiting, 1024));
    void *first = get(limiting, 1), *second = get(limiting, 257);
    assert_ok(raffia_limiting_query(raffia_ref(limiting), &live, &limit));
    assert_int_equal(live, 256 + 512);
    assert_int_equal(limit, 1024);
    assert_false(has_room(limiting, 257));
    assert_true(has_room(limiting, 256));
    void *third = get(limiting, 256), *nothing = get(limiting, 0);
    assert_ok(raffia_limiting_query(raffia_ref(limiting), &live, &limit));
    assert_int_equal(live, 1024 + (nothing ? 256 : 0));
    drop(limiting, nothing, 0);
    drop(limiting, third, 256);
    drop(limiting, second, 257);
    assert_true(has_room(limiting, 768));
    drop(limiting, first, 1);
    assert_ok(raffia_limiting_query(raffia_ref(limiting), &live, NULL));
    assert_int_equal(live, 0);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_limiting_query(users_ref(&users), &live, NULL));
    raffia_resource_release(limiting);
}

static void a4_limiting_refuses_a_free_of_more_than_is_live(void **state)
{
    (void)state;
    raffia_resource *limiting;
    assert_ok(raffia_limiting_resource_create(users_ref(&users), MIB, &limiting));
    void *theirs;
    assert_ok(raffia_allocate(users_ref(&users), NULL, 512, 0, &theirs));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(limiting), NULL, theirs, 512, 0));
    assert_int_equal(users.live, 1);
    assert_ok(raffia_deallocate(users_ref(&users), NULL, theirs, 512, 0));
    raffia_resource_release(limiting);
}

static void a10_limiting_gives_back_what_upstream_refused(void **state)
{
    (void)state;
    raffia_resource *limiting;
    size_t live;
    assert_ok(raffia_limiting_resource_create(users_ref(&users), 1024, &limiting));
    users.failure = RAFFIA_ERROR_OUT_OF_MEMORY;
    assert_false(has_room(limiting, 1024));
    users.failure = RAFFIA_OK;
    assert_ok(raffia_limiting_query(raffia_ref(limiting), &live, NULL));
    assert_int_equal(live, 0);
    assert_true(has_room(limiting, 1024));
    raffia_resource_release(limiting);
}

/* ---- statistics ----------------------------------------------------------------------------- */

static raffia_statistics counts(raffia_resource *resource)
{
    raffia_statistics counters;
    assert_ok(raffia_statistics_get(raffia_ref(resource), &counters));
    return counters;
}

#define assert_counter(counter, v, p, t)                                                           \
    do {                                                                                           \
        assert_int_equal((counter).value, v);                                                      \
        assert_int_equal((counter).peak, p);                                                       \
        assert_int_equal((counter).total, t);                                                      \
    } while (0)

static void a10_statistics_count_bytes_and_blocks(void **state)
{
    (void)state;
    raffia_resource *statistics;
    assert_ok(raffia_statistics_resource_create(users_ref(&users), &statistics));
    assert_counter(counts(statistics).bytes, 0, 0, 0);
    void *a = get(statistics, 1000), *b = get(statistics, 10), *none = get(statistics, 0);
    drop(statistics, a, 1000);
    void *c = get(statistics, 500);
    assert_counter(counts(statistics).bytes, 510, 1010, 1510);
    assert_counter(counts(statistics).blocks, 3, 3, 4);
    drop(statistics, b, 10);
    drop(statistics, c, 500);
    drop(statistics, none, 0);
    assert_counter(counts(statistics).bytes, 0, 1010, 1510);
    raffia_resource_release(statistics);
}

static void a10_statistics_are_pushed_and_popped(void **state)
{
    (void)state;
    raffia_resource *statistics;
    raffia_statistics before, popped;
    assert_ok(raffia_statistics_resource_create(users_ref(&users), &statistics));
    const raffia_resource_ref ref = raffia_ref(statistics);
    void *old = get(statistics, 100);
    assert_ok(raffia_statistics_push(ref, &before));
    assert_counter(before.bytes, 100, 100, 100);
    drop(statistics, old, 100); /* older than the counters */
    assert_counter(counts(statistics).bytes, -100, 0, 0);
    void *young = get(statistics, 300);
    assert_counter(counts(statistics).bytes, 200, 200, 300);
    assert_ok(raffia_statistics_pop(ref, &popped));
    assert_counter(popped.bytes, 200, 200, 300);
    assert_counter(counts(statistics).bytes, 300, 300, 400);
    assert_counter(counts(statistics).blocks, 1, 1, 2);
    drop(statistics, young, 300);
    assert_status(RAFFIA_ERROR_LIMIT, raffia_statistics_pop(ref, NULL));
    for (unsigned i = 1; i < RAFFIA_STATISTICS_LEVELS_MAX; i++)
        assert_ok(raffia_statistics_push(ref, NULL));
    assert_status(RAFFIA_ERROR_LIMIT, raffia_statistics_push(ref, NULL));
    assert_counter(counts(statistics).bytes, 0, 0, 0);
    raffia_resource_release(statistics);
}

/* A peak below is reached while the counters above run: value below + peak above. */
static void a10_a_pop_carries_the_peak_down(void **state)
{
    (void)state;
    raffia_resource *statistics;
    assert_ok(raffia_statistics_resource_create(users_ref(&users), &statistics));
    void *kept = get(statistics, 100);
    assert_ok(raffia_statistics_push(raffia_ref(statistics), NULL));
    drop(statistics, get(statistics, 900), 900);
    assert_ok(raffia_statistics_pop(raffia_ref(statistics), NULL));
    assert_counter(counts(statistics).bytes, 100, 1000, 1000);
    drop(statistics, kept, 100);
    raffia_resource_release(statistics);
}

static void a10_a_refused_free_counts_for_nothing(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *statistics;
    static char foreign[256];
    assert_ok(raffia_statistics_resource_create(raffia_ref(device), &statistics));
    raffia_resource_release(device);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(statistics), NULL, foreign, 256, 0));
    assert_counter(counts(statistics).bytes, 0, 0, 0);
    assert_counter(counts(statistics).blocks, 0, 0, 0);
    raffia_resource_release(statistics);
}

/* ---- tracking ------------------------------------------------------------------------------- */

static bool first_block(void *context, const raffia_tracked_block *block)
{
    *(raffia_tracked_block *)context = *block;
    return false;
}

static void a10_tracking_shows_leaks_with_their_stacks(void **state)
{
    (void)state;
    raffia_resource *tracking;
    raffia_tracked_block found;
    size_t bytes, blocks, needed;
    const raffia_tracking_options options = {.struct_size = sizeof options, .capture_stacks = true};
    assert_ok(raffia_tracking_resource_create(users_ref(&users), &options, &tracking));
    const raffia_resource_ref ref = raffia_ref(tracking);
    void *a = get(tracking, 100), *b = get(tracking, 30);
    drop(tracking, a, 100);
    assert_ok(raffia_tracking_query(ref, &bytes, &blocks));
    assert_int_equal(bytes, 30);
    assert_int_equal(blocks, 1);
    assert_ok(raffia_tracking_walk(ref, first_block, &found));
    assert_ptr_equal(found.address, b);
    assert_true(found.frame_count > 2);
    char text[8192], expected[64], few[16];
    assert_ok(raffia_tracking_print(ref, text, sizeof text, &needed));
    snprintf(expected, sizeof expected, "%p: 30 bytes\n    #0 ", b);
    assert_int_equal(strncmp(text, expected, strlen(expected)), 0);
    assert_int_equal(needed, strlen(text) + 1);
    assert_ok(raffia_tracking_print(ref, few, sizeof few, &bytes));
    assert_int_equal(bytes, needed);
    assert_int_equal(strlen(few), sizeof few - 1);
    drop(tracking, b, 30);
    raffia_resource_release(tracking);
    assert_int_equal(users.live, 0);
}

static void a10_tracking_refuses_a_wrong_size(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *tracking;
    assert_ok(raffia_tracking_resource_create(raffia_ref(device), NULL, &tracking));
    raffia_resource_release(device);
    void *block = get(tracking, 100);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_deallocate(raffia_ref(tracking), NULL, block, 99, 0));
    assert_error_mentions("as a block of 99 bytes: the one there has 100");
    size_t bytes, blocks;
    assert_ok(raffia_tracking_query(raffia_ref(tracking), &bytes, &blocks));
    assert_int_equal(bytes, 100);
    assert_int_equal(blocks, 1);
    drop(tracking, block, 100);
    raffia_resource_release(tracking);
}

static void a4_tracking_tells_two_adaptors_over_one_upstream_apart(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *one, *other;
    assert_ok(raffia_tracking_resource_create(raffia_ref(device), NULL, &one));
    assert_ok(raffia_tracking_resource_create(raffia_ref(device), NULL, &other));
    void *block = get(one, 100);
    assert_false(raffia_resource_is_equal(raffia_ref(one), raffia_ref(other)));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(other), NULL, block, 100, 0));
    drop(one, block, 100);
    raffia_resource_release(one);
    raffia_resource_release(other);
    raffia_resource_release(device);
}

/* ---- logging -------------------------------------------------------------------------------- */

struct rows {
    size_t count;
    char text[16][160];
};

static void keep_row(void *context, const char *row)
{
    struct rows *rows = context;
    snprintf(rows->text[rows->count++ % 16], 160, "%s", row);
}

/* The row but for thread and time, which are checked for their form. */
static const char *after_time(const char *row)
{
    long thread;
    int hours, minutes, seconds, micros, length = 0;
    assert_int_equal(sscanf(row, "%ld,%2d:%2d:%2d.%6d,%n", &thread, &hours, &minutes, &seconds,
                            &micros, &length),
                     5);
    assert_true(thread > 0 && length > 17);
    assert_int_equal(row[length - 8], '.');
    return row + length;
}

static void a10_logging_writes_rmms_columns(void **state)
{
    (void)state;
    struct rows rows = {0};
    raffia_resource *logging;
    char expected[128];
    int stream;
    const raffia_logging_options options = {
        .struct_size = sizeof options, .sink = keep_row, .sink_context = &rows};
    assert_ok(raffia_logging_resource_create(users_ref(&users), &options, &logging));
    assert_string_equal(rows.text[0], "Thread,Time,Action,Pointer,Size,Stream\n");
    void *block = get(logging, 1000);
    drop(logging, block, 1000);
    void *ordered;
    assert_ok(raffia_allocate(raffia_ref(logging), &stream, 8, 0, &ordered));
    assert_ok(raffia_deallocate(raffia_ref(logging), &stream, ordered, 8, 0));
    users.failure = RAFFIA_ERROR_OUT_OF_MEMORY;
    assert_false(has_room(logging, 7));
    assert_int_equal(rows.count, 6);
    snprintf(expected, sizeof expected, "allocate,%p,1000,0\n", block);
    assert_string_equal(after_time(rows.text[1]), expected);
    snprintf(expected, sizeof expected, "free,%p,1000,0\n", block);
    assert_string_equal(after_time(rows.text[2]), expected);
    snprintf(expected, sizeof expected, "allocate,%p,8,%p\n", ordered, (void *)&stream);
    assert_string_equal(after_time(rows.text[3]), expected);
    assert_string_equal(after_time(rows.text[5]), "allocate failure,(nil),7,0\n");
    raffia_resource_release(logging);
}

static void a10_logging_writes_no_row_for_a_refused_free(void **state)
{
    (void)state;
    struct rows rows = {0};
    raffia_resource *device = must_make_device("host"), *logging;
    const raffia_logging_options options = {
        .struct_size = sizeof options, .sink = keep_row, .sink_context = &rows};
    assert_ok(raffia_logging_resource_create(raffia_ref(device), &options, &logging));
    void *block = get(logging, 1000);
    assert_int_equal(rows.count, 2);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(logging), NULL, (char *)block + 256, 1000, 0));
    assert_int_equal(rows.count, 2);
    drop(logging, block, 1000);
    assert_int_equal(rows.count, 3);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(raffia_ref(logging), NULL, block, 1000, 0));
    assert_int_equal(rows.count, 3);
    raffia_resource_release(logging);
    raffia_resource_release(device);
}

static unsigned time_zone_asked;

/* In the place of the C library's, whose lock a child may inherit locked. */
struct tm *localtime_r(const time_t *restrict time, struct tm *restrict local)
{
    time_zone_asked++;
    return gmtime_r(time, local);
}

static void a10_logging_in_a_child_waits_for_no_thread_of_its_parent(void **state)
{
    (void)state;
    struct rows rows = {0};
    raffia_resource *logging;
    const raffia_logging_options options = {
        .struct_size = sizeof options, .sink = keep_row, .sink_context = &rows};
    assert_ok(raffia_logging_resource_create(users_ref(&users), &options, &logging));
    drop(logging, get(logging, 10), 10);
    const unsigned before = time_zone_asked;
    assert_int_equal(before, 1);
    const pid_t child = fork();
    if (child == 0) {
        raffia_resource *own = NULL, *device = NULL;
        void *block = NULL;
        const bool done = !raffia_device_resource_create(NULL, &device) &&
                          !raffia_logging_resource_create(raffia_ref(device), &options, &own) &&
                          !raffia_allocate(raffia_ref(own), NULL, 10, 0, &block) &&
                          !raffia_deallocate(raffia_ref(own), NULL, block, 10, 0);
        _exit(!done || time_zone_asked != before);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    raffia_resource_release(logging);
}

static void a10_logging_writes_a_file(void **state)
{
    (void)state;
    struct test_directory directory;
    raffia_resource *logging;
    test_directory_make(&directory);
    const struct test_path path = test_path_in(&directory, "log.csv");
    test_file_write(path.text, "what was there before", 21);
    unsetenv("RMM_LOG_FILE");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_logging_resource_create(users_ref(&users), NULL, &logging));
    assert_error_mentions("RMM_LOG_FILE");
    setenv("RMM_LOG_FILE", path.text, 1);
    assert_ok(raffia_logging_resource_create(users_ref(&users), NULL, &logging));
    unsetenv("RMM_LOG_FILE");
    drop(logging, get(logging, 10), 10);
    const pid_t child = fork(); /* which must not write its parent's rows once more */
    if (child == 0) {
        raffia_resource_release(logging);
        fclose(stdout);
        exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_ok(raffia_logging_flush(raffia_ref(logging)));
    FILE *file = fopen(path.text, "r");
    char line[160];
    size_t lines = 0;
    while (fgets(line, sizeof line, file))
        if (lines++ == 0)
            assert_string_equal(line, "Thread,Time,Action,Pointer,Size,Stream\n");
    fclose(file);
    assert_int_equal(lines, 3);
    raffia_resource_release(logging);
    /* More rows than the buffer holds, and those of the teardown. */
    assert_ok(raffia_logging_resource_create(
        users_ref(&users),
        &(raffia_logging_options){.struct_size = sizeof(raffia_logging_options), .path = path.text},
        &logging));
    for (int i = 0; i < 500; i++)
        drop(logging, get(logging, 10), 10);
    raffia_resource_release(logging);
    file = fopen(path.text, "r");
    for (lines = 0; fgets(line, sizeof line, file); lines++)
        if (lines)
            (void)after_time(line);
    fclose(file);
    assert_int_equal(lines, 1001);
    assert_ok(raffia_logging_resource_create(
        users_ref(&users),
        &(raffia_logging_options){.struct_size = sizeof(raffia_logging_options),
                                  .path = "/dev/full"},
        &logging));
    assert_status(RAFFIA_ERROR_IO, raffia_logging_flush(raffia_ref(logging)));
    raffia_resource_release(logging);
    assert_status(RAFFIA_ERROR_IO,
                  raffia_logging_resource_create(
                      users_ref(&users),
                      &(raffia_logging_options){.struct_size = sizeof(raffia_logging_options),
                                                .path = "/no/such/place"},
                      &logging));
    test_directory_remove(&directory);
}

/* ---- aligned -------------------------------------------------------------------------------- */

static size_t asked;

static void *note_size(size_t bytes, raffia_stream stream, void *argument)
{
    (void)stream;
    (void)argument;
    void *address = NULL;
    asked = bytes;
    return posix_memalign(&address, 256, bytes) ? NULL : address;
}

static void free_plainly(void *address, size_t bytes, raffia_stream stream, void *argument)
{
    (void)stream;
    (void)argument;
    if (address)
        assert_int_equal(bytes, asked);
    free(address);
}

static void a10_aligned_asks_for_what_rmm_asks_for(void **state)
{
    (void)state;
    raffia_resource *below, *aligned;
    const raffia_callback_resource_options callbacks = {
        .struct_size = sizeof callbacks, .allocate = note_size, .deallocate = free_plainly};
    const raffia_aligned_options options = {
        .struct_size = sizeof options, .alignment = 4096, .threshold_bytes = 65536};
    assert_ok(raffia_callback_resource_create(&callbacks, &below));
    assert_ok(raffia_aligned_resource_create(raffia_ref(below), &options, &aligned));
    void *block = get(aligned, 65536);
    assert_int_equal(asked, 69376);
    assert_int_equal((uintptr_t)block % 4096, 0);
    drop(aligned, block, 65536);
    block = get(aligned, 65535); /* below the threshold */
    assert_int_equal(asked, 65535);
    drop(aligned, block, 65535);
    raffia_resource *other;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_aligned_resource_create(
                      raffia_ref(below),
                      &(raffia_aligned_options){.struct_size = sizeof options, .alignment = 3000},
                      &other));
    raffia_resource_release(aligned);
    raffia_resource_release(below);
}

/* ---- failure callback ----------------------------------------------------------------------- */

static bool make_room(size_t bytes, void *argument)
{
    int *calls = argument;
    assert_int_equal(bytes, 77);
    if (++*calls == 3)
        users.failure = RAFFIA_OK;
    return *calls < 100;
}

static void a10_failure_callback_retries_out_of_memory_alone(void **state)
{
    (void)state;
    raffia_resource *failing;
    int calls = 0;
    raffia_failure_callback_options options = {
        .struct_size = sizeof options, .callback = make_room, .argument = &calls};
    assert_ok(raffia_failure_callback_resource_create(users_ref(&users), &options, &failing));
    users.failure = RAFFIA_ERROR_OUT_OF_MEMORY;
    drop(failing, get(failing, 77), 77);
    assert_int_equal(calls, 3);
    users.failure = RAFFIA_ERROR_DRIVER;
    void *block;
    assert_status(RAFFIA_ERROR_DRIVER, raffia_allocate(raffia_ref(failing), NULL, 77, 0, &block));
    assert_int_equal(calls, 3);
    users.failure = RAFFIA_ERROR_OUT_OF_MEMORY;
    assert_false(has_room(failing, 77)); /* until it says no */
    assert_int_equal(calls, 100);
    raffia_resource_release(failing);
    calls = 4;
    options.retries = 5;
    assert_ok(raffia_failure_callback_resource_create(users_ref(&users), &options, &failing));
    assert_false(has_room(failing, 77));
    assert_int_equal(calls, 9);
    raffia_resource_release(failing);
    options.callback = NULL;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_failure_callback_resource_create(users_ref(&users), &options, &failing));
}

/* ---- thread-safe ---------------------------------------------------------------------------- */

static atomic_int inside, most_inside;

static void enter(void)
{
    const int now = atomic_fetch_add(&inside, 1) + 1;
    if (now > atomic_load(&most_inside))
        atomic_store(&most_inside, now);
    for (volatile int i = 0; i < 200; i++)
        ;
    atomic_fetch_sub(&inside, 1);
}

static void *slow_allocate(size_t bytes, raffia_stream stream, void *argument)
{
    enter();
    return note_size(bytes, stream, argument);
}

static void slow_free(void *address, size_t bytes, raffia_stream stream, void *argument)
{
    (void)bytes;
    (void)stream;
    (void)argument;
    enter();
    free(address);
}

static void *hammer(void *argument)
{
    for (int i = 0; i < 500; i++) {
        void *block;
        if (raffia_allocate(raffia_ref((raffia_resource *)argument), NULL, 100, 0, &block) ||
            raffia_deallocate(raffia_ref((raffia_resource *)argument), NULL, block, 100, 0))
            return "failed";
    }
    return NULL;
}

static void a10_thread_safe_lets_one_thread_through(void **state)
{
    (void)state;
    raffia_resource *below, *safe;
    const raffia_callback_resource_options callbacks = {
        .struct_size = sizeof callbacks, .allocate = slow_allocate, .deallocate = slow_free};
    pthread_t threads[4];
    assert_ok(raffia_callback_resource_create(&callbacks, &below));
    assert_ok(raffia_thread_safe_resource_create(raffia_ref(below), &safe));
    raffia_resource_release(below);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, safe), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(most_inside, 1);
    raffia_resource_release(safe);
}

/* ---- binning, fixed-size, async, pinned ----------------------------------------------------- */

static void a10_binning_routes_by_size(void **state)
{
    (void)state;
    raffia_resource *small, *large, *binning;
    assert_ok(raffia_statistics_resource_create(users_ref(&users), &small));
    assert_ok(raffia_statistics_resource_create(users_ref(&users), &large));
    assert_ok(raffia_binning_resource_create(raffia_ref(large), NULL, &binning));
    assert_ok(raffia_binning_add_bin(raffia_ref(binning), 1000, raffia_ref(small)));
    assert_ok(raffia_binning_add_bin(raffia_ref(binning), 1024, raffia_ref(large))); /* is there */
    void *a = get(binning, 1024), *b = get(binning, 1025), *none = get(binning, 0);
    assert_int_equal(counts(small).blocks.value, 2);
    assert_int_equal(counts(large).blocks.value, 1);
    drop(binning, a, 1024);
    drop(binning, b, 1025);
    drop(binning, none, 0);
    assert_int_equal(counts(small).blocks.value, 0);
    assert_int_equal(counts(large).blocks.value, 0);
    for (size_t i = 1; i < RAFFIA_BINS_MAX; i++)
        assert_ok(raffia_binning_add_bin(raffia_ref(binning), (i + 8) * 256, raffia_ref(small)));
    assert_status(RAFFIA_ERROR_LIMIT,
                  raffia_binning_add_bin(raffia_ref(binning), MIB, raffia_ref(small)));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_binning_add_bin(raffia_ref(small), MIB, raffia_ref(small)));
    raffia_resource_release(binning);
    raffia_resource_release(small);
    raffia_resource_release(large);
    raffia_resource *device = must_make_device("host");
    assert_status(
        RAFFIA_ERROR_INVALID_ARGUMENT,
        raffia_binning_resource_create(raffia_ref(device),
                                       &(raffia_binning_resource_options){
                                           .struct_size = sizeof(raffia_binning_resource_options),
                                           .min_exponent = 20,
                                           .max_exponent = 18},
                                       &binning));
    raffia_resource_release(device);
}

static void a10_a_bin_added_later_leaves_live_blocks_their_way(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *binning;
    assert_ok(raffia_binning_resource_create(raffia_ref(device), NULL, &binning));
    raffia_resource_release(device);
    void *block = get(binning, 4096);
    assert_ok(raffia_binning_add_bin(raffia_ref(binning), 4096, (raffia_resource_ref){0}));
    void *other = get(binning, 4096);
    drop(binning, block, 4096);
    drop(binning, other, 4096);
    raffia_resource_release(binning);
}

static void a10_fixed_size_hands_out_the_oldest_block_first(void **state)
{
    (void)state;
    raffia_resource *fixed;
    void *blocks[3];
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = 1000, .blocks_per_chunk = 2};
    assert_ok(raffia_fixed_size_resource_create(users_ref(&users), &options, &fixed));
    assert_int_equal(users.live, 1); /* the first chunk */
    assert_false(has_room(fixed, 1025));
    for (int i = 0; i < 3; i++)
        blocks[i] = get(fixed, 1024); /* rounded up to 256 */
    assert_int_equal(users.live, 2);
    drop(fixed, blocks[1], 1024);
    drop(fixed, blocks[0], 1024);
    void *fourth = get(fixed, 1); /* never used */
    assert_ptr_equal(get(fixed, 1), blocks[1]);
    assert_ptr_equal(get(fixed, 1), blocks[0]);
    drop(fixed, fourth, 1);
    drop(fixed, blocks[0], 1);
    drop(fixed, blocks[1], 1);
    drop(fixed, blocks[2], 1024);
    raffia_resource_release(fixed);
    assert_int_equal(users.live, 0);
}

/* The block is not written by the second stream before the first has read it. */
static void a11_a_block_changes_streams_behind_its_last_use(void **state)
{
    (void)state;
    sim_reset();
    raffia_resource *device = must_make_device("sim:0"), *fixed;
    driver_stream first, second;
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = 4096, .blocks_per_chunk = 1};
    assert_ok(sim_driver.stream_create(0, &first));
    assert_ok(sim_driver.stream_create(0, &second));
    assert_ok(raffia_fixed_size_resource_create(raffia_ref(device), &options, &fixed));
    raffia_resource_release(device);
    char old[64], seen[64] = {0}, new[64];
    memset(old, 1, sizeof old);
    memset(new, 2, sizeof new);
    void *block, *again;
    assert_ok(raffia_allocate(raffia_ref(fixed), first, 64, 0, &block));
    assert_ok(sim_stream_hold(0, first));
    assert_ok(sim_driver.copy(0, first, block, old, sizeof old));
    assert_ok(sim_driver.copy(0, first, seen, block, sizeof seen));
    assert_ok(raffia_deallocate(raffia_ref(fixed), first, block, 64, 0));
    assert_ok(raffia_allocate(raffia_ref(fixed), second, 64, 0, &again));
    assert_ptr_equal(again, block);
    assert_ok(sim_driver.copy(0, second, again, new, sizeof new));
    size_t pending;
    assert_ok(sim_stream_pending(0, second, &pending));
    assert_true(pending > 0);
    assert_ok(sim_stream_resume(0, first));
    assert_ok(sim_driver.stream_wait(0, second));
    assert_ok(sim_driver.stream_wait(0, first));
    assert_memory_equal(seen, old, sizeof seen);
    assert_memory_equal(again, new, sizeof new);
    assert_ok(raffia_deallocate(raffia_ref(fixed), second, again, 64, 0));
    /* A stream that is being captured is left alone, and the block stays live. */
    assert_ok(raffia_allocate(raffia_ref(fixed), second, 64, 0, &again));
    assert_ok(sim_stream_capture_begin(0, second));
    assert_status(RAFFIA_ERROR_BUSY, raffia_deallocate(raffia_ref(fixed), second, again, 64, 0));
    assert_ok(sim_stream_capture_end(0, second, false));
    assert_ok(raffia_deallocate(raffia_ref(fixed), second, again, 64, 0));
    assert_ok(sim_driver.stream_destroy(0, first));
    assert_ok(sim_driver.stream_destroy(0, second));
    raffia_resource_release(fixed);
    assert_true(sim_is_idle());
}

static void a10_an_arena_gathers_what_streams_left_free(void **state)
{
    (void)state;
    sim_reset();
    raffia_resource *device = must_make_device("sim:0"), *arena;
    driver_stream streams[3];
    const raffia_arena_resource_options options = {.struct_size = sizeof options,
                                                   .arena_bytes = 3 * MIB + 100};
    assert_ok(raffia_arena_resource_create(raffia_ref(device), &options, &arena));
    raffia_resource_release(device);
    for (int i = 0; i < 3; i++) {
        void *block;
        assert_ok(sim_driver.stream_create(0, &streams[i]));
        assert_ok(raffia_allocate(raffia_ref(arena), streams[i], 100, 0, &block));
        assert_ok(sim_stream_delay(0, streams[i], 500));
        assert_ok(raffia_deallocate(raffia_ref(arena), streams[i], block, 100, 0));
        assert_ok(sim_driver.stream_retire(0, streams[i]));
        assert_ok(sim_driver.stream_destroy(0, streams[i]));
    }
    /* Each has a superblock, and nothing is left; all of it comes back for one request. */
    void *all;
    assert_ok(raffia_allocate(raffia_ref(arena), NULL, 3 * MIB, 0, &all));
    assert_false(has_room(arena, 1));
    assert_error_mentions("does not grow");
    assert_ok(raffia_deallocate(raffia_ref(arena), NULL, all, 3 * MIB, 0));
    raffia_resource_release(arena);
    assert_true(sim_is_idle());
    device = must_make_device("host");
    assert_status(
        RAFFIA_ERROR_INVALID_ARGUMENT,
        raffia_arena_resource_create(
            raffia_ref(device),
            &(raffia_arena_resource_options){.struct_size = sizeof options, .arena_bytes = MIB - 1},
            &arena));
    raffia_resource_release(device);
}

static void sizes_that_stand_for_none_are_refused_by_name(void **state)
{
    (void)state;
    raffia_resource *device = must_make_device("host"), *none = NULL;
    const raffia_arena_resource_options arena = {.struct_size = sizeof arena,
                                                 .arena_bytes = RAFFIA_NONE};
    const raffia_fixed_size_resource_options fixed = {.struct_size = sizeof fixed,
                                                      .block_bytes = RAFFIA_NONE};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_arena_resource_create(raffia_ref(device), &arena, &none));
    assert_error_mentions("arena_bytes is 18446744073709551615");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_fixed_size_resource_create(raffia_ref(device), &fixed, &none));
    assert_error_mentions("block_bytes is 18446744073709551615");
    assert_null(none);
    raffia_resource_release(device);
}

static void a10_what_a_driver_does_not_have_is_not_faked(void **state)
{
    (void)state;
    raffia_resource *resource = NULL;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, raffia_async_resource_create(NULL, &resource));
    assert_error_mentions("raffia_pool_resource_create");
    assert_null(resource);
    raffia_status status = raffia_pinned_host_resource_create(NULL, &resource);
    if (status) {
        assert_int_equal(status, RAFFIA_ERROR_UNSUPPORTED);
        assert_error_mentions("pinned");
    }
    raffia_resource_release(resource);
}

static void a10_host_memory_is_reached_by_the_device_only_if_it_is_the_host(void **state)
{
    (void)state;
    raffia_resource *resource;
    for (int i = 0; i < 2; i++) {
        assert_ok(raffia_host_resource_create(
            &(raffia_device_resource_options){.struct_size = sizeof(raffia_device_resource_options),
                                              .device = i ? "sim:0" : "host"},
            &resource));
        assert_int_equal(raffia_resource_properties_of(raffia_ref(resource)),
                         i ? RAFFIA_HOST_ACCESSIBLE
                           : RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE);
        raffia_resource_release(resource);
    }
}

static void a10_a_pool_grows_to_its_limit_and_blocks_grow_in_place(void **state)
{
    (void)state;
    raffia_resource *resource, *twin;
    raffia_pool *pool;
    raffia_pool_stats stats;
    assert_ok(raffia_pool_resource_create(
        &(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                               .device = "host",
                               .pages = RAFFIA_PAGES_OFF,
                               .initial_bytes = MIB,
                               .maximum_bytes = 4 * MIB,
                               .chunk_bytes = MIB},
        &resource));
    assert_ok(raffia_pool_resource_pool(raffia_ref(resource), &pool));
    assert_ok(raffia_pool_resource_from_pool(pool, &twin));
    assert_true(raffia_resource_is_equal(raffia_ref(resource), raffia_ref(twin)));
    void *block = get(resource, 512 * KIB);
    assert_ok(raffia_resize(raffia_ref(resource), NULL, block, 512 * KIB, MIB, 0));
    assert_false(has_room(resource, 4 * MIB));
    assert_true(has_room(resource, MIB));
    assert_ok(raffia_pool_query(pool, &stats));
    assert_true(stats.reserved_bytes > MIB);
    drop(twin, block, MIB);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_pool_resource_pool(users_ref(&users), &pool));
    raffia_resource_release(resource);
    raffia_resource_release(twin);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup(function, fresh)
    const struct CMUnitTest tests[] = {
        TEST(a10_limiting_counts_in_steps_of_256),
        TEST(a4_limiting_refuses_a_free_of_more_than_is_live),
        TEST(a10_limiting_gives_back_what_upstream_refused),
        TEST(a10_statistics_count_bytes_and_blocks),
        TEST(a10_statistics_are_pushed_and_popped),
        TEST(a10_a_pop_carries_the_peak_down),
        TEST(a10_a_refused_free_counts_for_nothing),
        TEST(a10_tracking_shows_leaks_with_their_stacks),
        TEST(a10_tracking_refuses_a_wrong_size),
        TEST(a4_tracking_tells_two_adaptors_over_one_upstream_apart),
        TEST(a10_logging_writes_rmms_columns),
        TEST(a10_logging_writes_no_row_for_a_refused_free),
        TEST(a10_logging_in_a_child_waits_for_no_thread_of_its_parent),
        TEST(a10_logging_writes_a_file),
        TEST(a10_aligned_asks_for_what_rmm_asks_for),
        TEST(a10_failure_callback_retries_out_of_memory_alone),
        TEST(a10_thread_safe_lets_one_thread_through),
        TEST(a10_binning_routes_by_size),
        TEST(a10_a_bin_added_later_leaves_live_blocks_their_way),
        TEST(a10_fixed_size_hands_out_the_oldest_block_first),
        TEST(a11_a_block_changes_streams_behind_its_last_use),
        TEST(a10_an_arena_gathers_what_streams_left_free),
        TEST(sizes_that_stand_for_none_are_refused_by_name),
        TEST(a10_what_a_driver_does_not_have_is_not_faked),
        TEST(a10_host_memory_is_reached_by_the_device_only_if_it_is_the_host),
        TEST(a10_a_pool_grows_to_its_limit_and_blocks_grow_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
