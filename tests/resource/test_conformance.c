/*
 * SPEC A10 and A11: one suite over every resource, on the host and on a simulated device.
 */
#include "core/checked.h"
#include "core/memory.h"
#include "driver/sim/sim.h"
#include "resource/makers.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"
#include "support/random.h"

#include <raffia/current_resource.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Requests that no machine can serve are part of the test. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

struct subject {
    const struct maker *maker;
    const char *device;
    raffia_resource *resource; /* during a test */
    raffia_resource_ref ref;
};

static bool is_sim(const struct subject *subject)
{
    return strcmp(subject->device, "sim:0") == 0;
}

static int set_up(void **state)
{
    struct subject *subject = *state;
    log_capture_start();
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = 8 * GIB}));
    assert_ok(subject->maker->make(subject->device, &subject->resource));
    subject->ref = raffia_ref(subject->resource);
    return 0;
}

static int tear_down(void **state)
{
    struct subject *subject = *state;
    raffia_resource_release(subject->resource);
    subject->resource = NULL;
    log_capture_stop();
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_string_equal(usage.first_misuse, "");
    return 0;
}

/* Writes its own address into both ends, and reads it back before it is freed. */
static void mark(void *block, size_t bytes)
{
    if (bytes < 2 * sizeof block)
        return;
    memcpy(block, &block, sizeof block);
    memcpy((char *)block + bytes - sizeof block, &block, sizeof block);
}

static bool is_marked(void *block, size_t bytes)
{
    return bytes < 2 * sizeof block ||
           (memcmp(block, &block, sizeof block) == 0 &&
            memcmp((char *)block + bytes - sizeof block, &block, sizeof block) == 0);
}

static void *must_allocate(const struct subject *subject, size_t bytes, size_t alignment)
{
    void *block = NULL;
    assert_ok(raffia_allocate(subject->ref, NULL, bytes, alignment, &block));
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % (alignment ? alignment : 256), 0);
    return block;
}

static void must_free(const struct subject *subject, void *block, size_t bytes, size_t alignment)
{
    assert_ok(raffia_deallocate(subject->ref, NULL, block, bytes, alignment));
}

static void sizes_from_nothing_to_a_gibibyte(void **state)
{
    const struct subject *subject = *state;
    const size_t sizes[] = {1, 4, 255, 256, 257, KIB, MIB, 5 * MIB, 64 * MIB, GIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = NULL;
        raffia_status status = raffia_allocate(subject->ref, NULL, sizes[i], 0, &block);
        if (sizes[i] > subject->maker->largest && status) {
            assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
            continue;
        }
        assert_ok(status);
        mark(block, sizes[i]);
        assert_true(is_marked(block, sizes[i]));
        must_free(subject, block, sizes[i], 0);
    }
    void *nothing = &nothing;
    assert_ok(raffia_allocate(subject->ref, NULL, 0, 0, &nothing));
    if (!(subject->maker->traits & ZERO_IS_BLOCK))
        assert_null(nothing);
    must_free(subject, nothing, 0, 0);
    must_free(subject, NULL, 0, 0);
}

static void a_pebibyte_is_refused_and_changes_nothing(void **state)
{
    const struct subject *subject = *state;
    const size_t sizes[] = {PIB, SIZE_MAX / 2, SIZE_MAX - 300, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *block = NULL;
        raffia_status status = raffia_allocate(subject->ref, NULL, sizes[i], 0, &block);
        if (i == 0)
            assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
        assert_true(status == RAFFIA_ERROR_OUT_OF_MEMORY || status == RAFFIA_ERROR_OVERFLOW);
        assert_null(block);
        assert_true(strlen(raffia_last_error()) > 0);
    }
    must_free(subject, must_allocate(subject, KIB, 0), KIB, 0);
}

static void alignments_are_honoured_or_refused(void **state)
{
    const struct subject *subject = *state;
    for (size_t alignment = 1; alignment <= 2 * MIB; alignment *= 2) {
        void *block = NULL;
        raffia_status status = raffia_allocate(subject->ref, NULL, 100, alignment, &block);
        if (status) {
            assert_true(alignment > subject->maker->largest_align);
            assert_true(status == RAFFIA_ERROR_INVALID_ARGUMENT ||
                        status == RAFFIA_ERROR_UNSUPPORTED);
            assert_null(block);
            continue;
        }
        assert_int_equal((uintptr_t)block % alignment, 0);
        must_free(subject, block, 100, alignment);
    }
    void *block;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_allocate(subject->ref, NULL, 100, 3, &block));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_allocate(subject->ref, NULL, 100, 0, NULL));
}

/* ---- sequences ------------------------------------------------------------------------------ */

enum { RANDOM_BLOCKS = 100, MIXED_STEPS = 600, MIXED_MAX = 24, THREADS = 4 };

struct held {
    void *block;
    size_t bytes;
};

static bool free_one(const struct subject *subject, struct held *held)
{
    return is_marked(held->block, held->bytes) &&
           !raffia_deallocate(subject->ref, NULL, held->block, held->bytes, 0);
}

static void random_sizes_do_not_overlap(void **state)
{
    const struct subject *subject = *state;
    struct test_random random = test_random_seeded(subject->maker->name);
    struct held held[RANDOM_BLOCKS];
    size_t count = 0, largest = 5 * MIB < subject->maker->largest ? 5 * MIB : 512 * KIB;
    if (strstr(subject->maker->name, "pool"))
        largest = 512 * KIB;
    for (; count < RANDOM_BLOCKS; count++) {
        held[count].bytes = test_random_size(&random, largest);
        held[count].block = must_allocate(subject, held[count].bytes, 0);
        mark(held[count].block, held[count].bytes);
    }
    while (count > 0)
        assert_true(free_one(subject, &held[--count]));
}

/* 53 allocations to 47 frees. False if anything was not as it should be. */
static bool mix(const struct subject *subject, struct test_random *random)
{
    struct held held[MIXED_MAX];
    size_t count = 0;
    bool good = true;
    for (int i = 0; i < MIXED_STEPS && good; i++) {
        const bool allocates = count < MIXED_MAX && test_random_below(random, 100) < 53;
        if (allocates || count == 0) {
            held[count].bytes = test_random_size(random, 128 * KIB);
            good = !raffia_allocate(subject->ref, NULL, held[count].bytes, 0, &held[count].block);
            if (good)
                mark(held[count].block, held[count].bytes);
            count += good;
        } else {
            const size_t victim = test_random_below(random, count);
            good = free_one(subject, &held[victim]);
            held[victim] = held[--count];
        }
    }
    while (count > 0)
        good &= free_one(subject, &held[--count]);
    return good;
}

static void mixed_sequences(void **state)
{
    const struct subject *subject = *state;
    struct test_random random = test_random_seeded(subject->maker->name);
    assert_true(mix(subject, &random));
}

struct worker {
    const struct subject *subject;
    struct test_random random;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    return mix(worker->subject, &worker->random) ? NULL : "a step failed";
}

static void a11_threads_allocate_and_free_at_once(void **state)
{
    const struct subject *subject = *state;
    struct test_random random = test_random_seeded(subject->maker->name);
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){subject, {test_random_next(&random)}};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
}

struct handover {
    const struct subject *subject;
    struct held held[RANDOM_BLOCKS];
};

static void *free_all(void *argument)
{
    struct handover *handover = argument;
    for (int i = 0; i < RANDOM_BLOCKS; i++)
        if (!free_one(handover->subject, &handover->held[i]))
            return "a free failed";
    return NULL;
}

static void a11_one_thread_allocates_and_another_frees(void **state)
{
    struct handover handover = {.subject = *state};
    for (int i = 0; i < RANDOM_BLOCKS; i++) {
        struct held *held = &handover.held[i];
        held->bytes = KIB * (size_t)(i + 1);
        held->block = must_allocate(*state, held->bytes, 0);
        mark(held->block, held->bytes);
    }
    pthread_t thread;
    void *wrong;
    assert_int_equal(pthread_create(&thread, NULL, free_all, &handover), 0);
    pthread_join(thread, &wrong);
    assert_null(wrong);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void a11_blocks_move_between_streams(void **state)
{
    const struct subject *subject = *state;
    driver_stream streams[2];
    char source[4 * KIB];
    memset(source, 7, sizeof source);
    if (!is_sim(subject) || subject->maker->traits & NO_STREAMS) {
        void *block;
        int not_a_stream;
        if (!is_sim(subject) && strcmp(subject->maker->name, "program's own") != 0 &&
            strstr(subject->maker->name, "callback") == NULL &&
            !(subject->maker->traits & NO_STREAMS) && subject->maker->traits & FINDS)
            assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                          raffia_allocate(subject->ref, &not_a_stream, KIB, 0, &block));
        return;
    }
    for (int i = 0; i < 2; i++)
        assert_ok(sim_driver.stream_create(0, &streams[i]));
    for (int i = 0; i < 20; i++) {
        driver_stream first = streams[i % 2], second = streams[(i / 2) % 2];
        void *block;
        assert_ok(raffia_allocate(subject->ref, first, sizeof source, 0, &block));
        assert_ok(sim_stream_delay(0, first, 200));
        if (subject->maker->traits & FINDS && strcmp(subject->maker->name, "host") != 0)
            assert_ok(sim_driver.copy(0, first, block, source, sizeof source));
        if (second != first) {
            driver_event event; /* the caller's part of using a block on another stream */
            assert_ok(sim_driver.event_create(0, &event));
            assert_ok(sim_driver.event_record(0, event, first));
            assert_ok(sim_driver.stream_wait_event(0, second, event));
            assert_ok(sim_driver.event_destroy(0, event));
        }
        assert_ok(raffia_deallocate(subject->ref, second, block, sizeof source, 0));
    }
    for (int i = 0; i < 2; i++) {
        assert_ok(sim_driver.stream_wait(0, streams[i]));
        assert_ok(raffia_stream_retire("sim:0", streams[i]));
        assert_ok(sim_driver.stream_destroy(0, streams[i]));
    }
    /* A block that was freed on a stream that is gone can be had again. */
    must_free(subject, must_allocate(subject, sizeof source, 0), sizeof source, 0);
}

/* ---- owners and frees ----------------------------------------------------------------------- */

static void a4_a_live_block_keeps_its_owner_alive(void **state)
{
    struct subject *subject = *state;
    void *block = must_allocate(subject, 64 * KIB, 0);
    memset(block, 1, 64 * KIB);
    raffia_resource_release(subject->resource);
    subject->resource = NULL;
    memset(block, 2, 64 * KIB);
    must_free(subject, block, 64 * KIB, 0);
}

static void a4_frees_through_the_wrong_resource_are_refused(void **state)
{
    const struct subject *subject = *state;
    if (!(subject->maker->traits & CHECKS_FREES))
        return;
    static char foreign[KIB] __attribute__((aligned(256)));
    char *block = must_allocate(subject, 4 * KIB, 0);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_deallocate(subject->ref, NULL, foreign, KIB, 0));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(subject->ref, NULL, block + 256, 4 * KIB, 0));
    must_free(subject, block, 4 * KIB, 0);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(subject->ref, NULL, block, 4 * KIB, 0));
    /* And the other way about: a block of another kind of resource. */
    struct users_resource users = {.properties = RAFFIA_HOST_ACCESSIBLE};
    void *theirs;
    assert_ok(raffia_allocate(users_ref(&users), NULL, 4 * KIB, 0, &theirs));
    assert_false(raffia_resource_is_equal(subject->ref, users_ref(&users)));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_deallocate(subject->ref, NULL, theirs, 4 * KIB, 0));
    assert_ok(raffia_deallocate(users_ref(&users), NULL, theirs, 4 * KIB, 0));
    assert_int_equal(users.live, 0);
}

/* One status and one sentence, and nothing changes. */
static void refuse_size(const struct subject *subject, void *block, size_t bytes, size_t alignment,
                        size_t wrong)
{
    char address[32], given[64], has[64];
    snprintf(address, sizeof address, "%p", block);
    snprintf(given, sizeof given, wrong ? "as a block of %zu bytes" : "of %zu", wrong);
    snprintf(has, sizeof has, " has %zu", bytes);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  raffia_deallocate(subject->ref, NULL, block, wrong, alignment));
    assert_error_mentions(address);
    assert_error_mentions(given);
    assert_error_mentions("stays as it is");
    if (alignment <= 256) /* else it may be said with the room for its alignment */
        assert_error_mentions(has);
    assert_true(is_marked(block, bytes));
}

static void frees_with_another_size_are_refused(void **state)
{
    const struct subject *subject = *state;
    const size_t sizes[] = {16, 1000, 5000, 70000}, alignments[] = {0, 64, 256, 4096};
    if (!(subject->maker->traits & CHECKS_FREES))
        return;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
            const size_t bytes = sizes[i], alignment = alignments[a];
            const size_t wrong[] = {0,         1,        bytes - 1, bytes + 1, 2 * bytes,
                                    128 * KIB, 64 * MIB, PIB,       SIZE_MAX};
            void *block;
            if (alignment > subject->maker->largest_align)
                continue;
            block = must_allocate(subject, bytes, alignment);
            mark(block, bytes);
            for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
                refuse_size(subject, block, bytes, alignment, wrong[w]);
            must_free(subject, block, bytes, alignment);
            assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                          raffia_deallocate(subject->ref, NULL, block, bytes, alignment));
        }
}

/* 1160 bytes with the room to align them to 4096 take as much as 5000 that need none. */
static void no_alignment_makes_a_wrong_size_right(void **state)
{
    const struct subject *subject = *state;
    if (!(subject->maker->traits & CHECKS_FREES) || subject->maker->largest_align < 4096)
        return;
    void *block = must_allocate(subject, 5000, 0);
    mark(block, 5000);
    refuse_size(subject, block, 5000, 4096, 5000 - (4096 - 256));
    refuse_size(subject, block, 5000, 8192, (size_t)5000 - (8192 - 256));
    must_free(subject, block, 5000, 0);
}

/* As resource.h says who looks at it. Either the block is freed, or it is as before. */
static void another_alignment_is_refused_where_it_takes_room(void **state)
{
    const struct subject *subject = *state;
    const size_t pairs[][2] = {{0, 4096}, {4096, 0}, {1024, 4096}, {16, 0}, {0, 1}};
    if (!(subject->maker->traits & CHECKS_FREES))
        return;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const size_t asked = pairs[i][0], given = pairs[i][1];
        const bool matters =
            subject->maker->traits & ALIGNMENT_TAKES_ROOM && core_max(asked, given) > 256;
        if (core_max(asked, given) > subject->maker->largest_align)
            continue;
        void *block = must_allocate(subject, 5000, asked);
        mark(block, 5000);
        raffia_status status = raffia_deallocate(subject->ref, NULL, block, 5000, given);
        assert_status(matters ? RAFFIA_ERROR_INVALID_ARGUMENT : RAFFIA_OK, status);
        if (status) {
            assert_error_mentions("stays as it is");
            assert_true(is_marked(block, 5000));
            must_free(subject, block, 5000, asked);
        }
        assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                      raffia_deallocate(subject->ref, NULL, block, 5000, asked));
    }
}

static bool count_block(void *context, const raffia_block *block)
{
    assert_true(block->live);
    (*(size_t *)context)++;
    return true;
}

static void blocks_are_found_by_address(void **state)
{
    const struct subject *subject = *state;
    if (!(subject->maker->traits & FINDS))
        return;
    char *block = must_allocate(subject, 4 * KIB, 0);
    raffia_block found;
    size_t bytes, count = 0;
    assert_ok(raffia_resource_find(subject->ref, block + 100, &found));
    assert_ptr_equal(found.address, block);
    assert_true(found.bytes >= 4 * KIB);
    assert_ok(raffia_resource_usable_size(subject->ref, block, &bytes));
    assert_true(bytes >= 4 * KIB);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  raffia_resource_usable_size(subject->ref, block + 1, &bytes));
    raffia_status status = raffia_resource_walk(subject->ref, count_block, &count);
    assert_true(status ? status == RAFFIA_ERROR_UNSUPPORTED : count >= 1);
    must_free(subject, block, 4 * KIB, 0);
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, raffia_resource_find(subject->ref, block, &found));
}

static void a_block_that_is_found_has_the_size_asked_for(void **state)
{
    const struct subject *subject = *state;
    const size_t alignments[] = {0, 256, 1024, 4096};
    if (!(subject->maker->traits & FINDS))
        return;
    for (size_t a = 0; a < sizeof alignments / sizeof *alignments; a++) {
        raffia_block found;
        char *block = must_allocate(subject, 3000, alignments[a]);
        assert_ok(raffia_resource_find(subject->ref, block + 2999, &found));
        assert_ptr_equal(found.address, block);
        assert_int_equal(found.requested_bytes, 3000);
        must_free(subject, block, found.requested_bytes, alignments[a]);
    }
}

static void a10_it_says_what_it_is(void **state)
{
    const struct subject *subject = *state;
    char line[RAFFIA_RESOURCE_TEXT_MAX] = "", stack[4096] = "", short_text[8];
    assert_true(strlen(raffia_resource_describe(subject->ref, line, sizeof line)) > 0);
    const size_t needed = raffia_resource_print_stack(subject->ref, stack, sizeof stack);
    assert_int_equal(needed, strlen(stack) + 1);
    assert_int_equal(strncmp(stack, line, strlen(line)), 0);
    assert_int_equal(raffia_resource_print_stack(subject->ref, short_text, sizeof short_text),
                     needed);
    assert_int_equal(strlen(short_text), sizeof short_text - 1);
    assert_int_equal(raffia_resource_print_stack(subject->ref, NULL, 0), needed);
    assert_true(raffia_resource_is_equal(subject->ref, subject->ref));
    assert_true(raffia_resource_properties_of(subject->ref) & RAFFIA_HOST_ACCESSIBLE);
}

/* ---- failures and forks --------------------------------------------------------------------- */

static raffia_status live(void *context)
{
    const struct subject *subject = context;
    raffia_resource *resource;
    raffia_status status = subject->maker->make(subject->device, &resource);
    if (status)
        return status;
    const raffia_resource_ref ref = raffia_ref(resource);
    const size_t sizes[] = {100, 8 * KIB, 3 * MIB};
    void *blocks[3] = {0};
    for (size_t i = 0; i < 3 && !status; i++)
        status = raffia_allocate(ref, NULL, sizes[i], i == 1 ? 256 : 0, &blocks[i]);
    raffia_resource_release(resource);
    for (size_t i = 0; i < 3; i++)
        if (blocks[i]) {
            /* A free may need the device, which may fail then; the second try must not. */
            raffia_status freed =
                raffia_deallocate(ref, NULL, blocks[i], sizes[i], i == 1 ? 256 : 0);
            if (freed) {
                status = freed;
                assert_ok(raffia_deallocate(ref, NULL, blocks[i], sizes[i], i == 1 ? 256 : 0));
            }
        }
    return status;
}

static void any_call_may_fail_and_nothing_is_lost(void **state)
{
    struct subject *subject = *state;
    /* It would give memory back to help the ones of the loop. */
    raffia_resource_release(subject->resource);
    subject->resource = NULL;
    assert_true(fault_loop(live, subject, 3000) > 0);
}

static int be_a_child(const struct subject *subject, void *block)
{
    void *none = NULL;
    const bool users = strcmp(subject->maker->name, "program's own") == 0;
    if (raffia_allocate(subject->ref, NULL, KIB, 0, &none) != RAFFIA_ERROR_FORKED || none)
        return 1;
    if (!users && !strstr(raffia_last_error(), "parent"))
        return 2;
    if (raffia_deallocate(subject->ref, NULL, block, 4 * KIB, 0))
        return 3;
    /* Questions are answered or refused, and nobody waits for a lock that is held by a thread that
     * is not there. */
    char stack[4096];
    raffia_block found;
    size_t bytes = 0;
    (void)raffia_resource_print_stack(subject->ref, stack, sizeof stack);
    (void)raffia_resource_properties_of(subject->ref);
    (void)!raffia_resource_find(subject->ref, block, &found);
    (void)!raffia_resource_usable_size(subject->ref, block, &bytes);
    (void)!raffia_resource_walk(subject->ref, count_block, &bytes);
    raffia_resource_release(subject->resource);
    raffia_resource *own;
    void *mine;
    if (subject->maker->make("host", &own) ||
        raffia_allocate(raffia_ref(own), NULL, KIB, 0, &mine) ||
        raffia_deallocate(raffia_ref(own), NULL, mine, KIB, 0))
        return 4;
    raffia_resource_release(own);
    return 0;
}

static atomic_bool stop;

static void *keep_busy(void *argument)
{
    const struct subject *subject = argument;
    char stack[4096];
    while (!atomic_load(&stop)) {
        void *block;
        if (raffia_allocate(subject->ref, NULL, KIB, 0, &block) ||
            raffia_deallocate(subject->ref, NULL, block, KIB, 0))
            return "failed";
        (void)raffia_resource_print_stack(subject->ref, stack, sizeof stack);
    }
    return NULL;
}

static void a_child_neither_uses_nor_ends_its_parents(void **state)
{
    struct subject *subject = *state;
    pthread_t thread;
    void *wrong;
    if (is_sim(subject))
        return; /* its threads are not the child's */
    void *block = must_allocate(subject, 4 * KIB, 0);
    mark(block, 4 * KIB);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_busy, subject), 0);
    for (int i = 0; i < 10; i++) {
        const pid_t child = fork(); /* maybe while the other thread holds a lock */
        assert_true(child >= 0);
        if (child == 0) {
            alarm(60);
            _exit(be_a_child(subject, block));
        }
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, &wrong);
    assert_null(wrong);
    assert_true(is_marked(block, 4 * KIB));
    must_free(subject, block, 4 * KIB, 0);
}

/* ---- all of it over all of them ------------------------------------------------------------- */

static const struct check {
    const char *name;
    CMUnitTestFunction run;
} checks[] = {
#define CHECK(function)                                                                            \
    {                                                                                              \
#function, function                                                                        \
    }
    CHECK(sizes_from_nothing_to_a_gibibyte),
    CHECK(a_pebibyte_is_refused_and_changes_nothing),
    CHECK(alignments_are_honoured_or_refused),
    CHECK(random_sizes_do_not_overlap),
    CHECK(mixed_sequences),
    CHECK(a11_threads_allocate_and_free_at_once),
    CHECK(a11_one_thread_allocates_and_another_frees),
    CHECK(a11_blocks_move_between_streams),
    CHECK(a4_a_live_block_keeps_its_owner_alive),
    CHECK(a4_frees_through_the_wrong_resource_are_refused),
    CHECK(frees_with_another_size_are_refused),
    CHECK(no_alignment_makes_a_wrong_size_right),
    CHECK(another_alignment_is_refused_where_it_takes_room),
    CHECK(blocks_are_found_by_address),
    CHECK(a_block_that_is_found_has_the_size_asked_for),
    CHECK(a10_it_says_what_it_is),
    CHECK(any_call_may_fail_and_nothing_is_lost),
    CHECK(a_child_neither_uses_nor_ends_its_parents),
};

int main(void)
{
    static const char *const devices[] = {"host", "sim:0"};
    const size_t check_count = sizeof checks / sizeof *checks;
    static struct subject subjects[2][32];
    static struct CMUnitTest tests[2 * 32 * (sizeof checks / sizeof *checks)];
    static char names[sizeof tests / sizeof *tests][128];
    size_t count = 0;
    for (size_t d = 0; d < 2; d++)
        for (size_t m = 0; m < maker_count; m++) {
            if (d == 0 && makers[m].traits & STREAMS_ONLY)
                continue;
            subjects[d][m] = (struct subject){.maker = &makers[m], .device = devices[d]};
            for (size_t c = 0; c < check_count; c++, count++) {
                snprintf(names[count], sizeof names[count], "%s on %s: %s", makers[m].name,
                         devices[d], checks[c].name);
                tests[count] = (struct CMUnitTest){names[count], checks[c].run, set_up, tear_down,
                                                   &subjects[d][m]};
            }
        }
    return _cmocka_run_group_tests("every resource", tests, count, NULL, NULL);
}
