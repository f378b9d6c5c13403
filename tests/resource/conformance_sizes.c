/* Sizes, alignments, and long sequences of blocks of every size, by one thread and by several. */
#include "resource/conformance.h"
#include "support/random.h"

#include <pthread.h>
#include <string.h>

void sizes_from_nothing_to_a_gibibyte(void **state)
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
        assert_true(mark(subject, block, sizes[i]));
        assert_true(is_marked(subject, block, sizes[i]));
        must_free(subject, block, sizes[i], 0);
    }
    void *nothing = &nothing;
    assert_ok(raffia_allocate(subject->ref, NULL, 0, 0, &nothing));
    if (!(subject->maker->traits & ZERO_IS_BLOCK))
        assert_null(nothing);
    must_free(subject, nothing, 0, 0);
    must_free(subject, NULL, 0, 0);
}

void a_pebibyte_is_refused_and_changes_nothing(void **state)
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

void alignments_are_honoured_or_refused(void **state)
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
    return is_marked(subject, held->block, held->bytes) &&
           !raffia_deallocate(subject->ref, NULL, held->block, held->bytes, 0);
}

void random_sizes_do_not_overlap(void **state)
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
        assert_true(mark(subject, held[count].block, held[count].bytes));
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
            if (good) {
                good = mark(subject, held[count].block, held[count].bytes);
                count++;
            }
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

void mixed_sequences(void **state)
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

void a11_threads_allocate_and_free_at_once(void **state)
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

void a11_one_thread_allocates_and_another_frees(void **state)
{
    struct handover handover = {.subject = *state};
    for (int i = 0; i < RANDOM_BLOCKS; i++) {
        struct held *held = &handover.held[i];
        held->bytes = KIB * (size_t)(i + 1);
        held->block = must_allocate(*state, held->bytes, 0);
        assert_true(mark(*state, held->block, held->bytes));
    }
    pthread_t thread;
    void *wrong;
    assert_int_equal(pthread_create(&thread, NULL, free_all, &handover), 0);
    pthread_join(thread, &wrong);
    assert_null(wrong);
}
