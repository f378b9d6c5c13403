/* The suite itself: its subjects, and what the parts share. */
#include "resource/conformance.h"

#include "resource/resource.h"
#include "support/huge_requests.h"
#include "support/log_capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set_up(void **state)
{
    struct subject *subject = *state;
    log_capture_start();
    if (subject->device->set_up)
        subject->device->set_up();
    assert_ok(subject->maker->make(subject->device->name, &subject->resource));
    subject->ref = raffia_ref(subject->resource);
    return 0;
}

static int tear_down(void **state)
{
    struct subject *subject = *state;
    raffia_resource_release(subject->resource);
    subject->resource = NULL;
    log_capture_stop();
    if (subject->device->misuse)
        assert_string_equal(subject->device->misuse(), "");
    return 0;
}

/* ---- what the parts share ------------------------------------------------------------------- */

bool subject_orders(const struct subject *subject)
{
    struct driver_device device;
    if (!(subject->driver->capabilities & DRIVER_IS_ASYNCHRONOUS) ||
        !(subject->maker->traits & FINDS) || resource_find_device(subject->ref, &device))
        return false;
    device = driver_stream_owner(device);
    return device.driver == subject->driver && device.index == subject->index;
}

void *must_allocate(const struct subject *subject, size_t bytes, size_t alignment)
{
    void *block = NULL;
    assert_ok(raffia_allocate(subject->ref, NULL, bytes, alignment, &block));
    assert_non_null(block);
    assert_int_equal((uintptr_t)block % (alignment ? alignment : 256), 0);
    return block;
}

void must_free(const struct subject *subject, void *block, size_t bytes, size_t alignment)
{
    assert_ok(raffia_deallocate(subject->ref, NULL, block, bytes, alignment));
}

bool subject_copy(const struct subject *subject, const struct driver_copy *copies, size_t count)
{
    raffia_status status = RAFFIA_OK;
    if (subject->cpu_sees) {
        for (size_t i = 0; i < count; i++)
            memcpy(copies[i].destination, copies[i].source, copies[i].bytes);
        return true;
    }
    for (size_t i = 0; i < count && !status; i++)
        status = subject->driver->copy(subject->index, NULL, copies[i].destination,
                                       copies[i].source, copies[i].bytes);
    /* Even if one was refused: the others are under way. */
    return !subject->driver->stream_wait(subject->index, NULL) && !status;
}

static void *last_word(void *block, size_t bytes)
{
    return (char *)block + bytes - sizeof block;
}

bool mark(const struct subject *subject, void *block, size_t bytes)
{
    const struct driver_copy copies[] = {{block, &block, sizeof block},
                                         {last_word(block, bytes), &block, sizeof block}};
    return bytes < 2 * sizeof block || subject_copy(subject, copies, 2);
}

bool is_marked(const struct subject *subject, void *block, size_t bytes)
{
    void *first = NULL, *last = NULL;
    const struct driver_copy copies[] = {{&first, block, sizeof block},
                                         {&last, last_word(block, bytes), sizeof block}};
    return bytes < 2 * sizeof block ||
           (subject_copy(subject, copies, 2) && first == block && last == block);
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

enum { CHECKS = sizeof checks / sizeof *checks, DEVICES_MAX = 4, MAKERS_MAX = 32 };

static struct subject subjects[DEVICES_MAX * MAKERS_MAX];
static struct CMUnitTest tests[DEVICES_MAX * MAKERS_MAX * CHECKS];
static char names[DEVICES_MAX * MAKERS_MAX * CHECKS][128];

static struct subject make_subject(const struct maker *maker,
                                   const struct conformance_device *device)
{
    struct driver_device opened;
    if (driver_open(device->name, &opened)) {
        fprintf(stderr, "%s\n", raffia_last_error());
        exit(1);
    }
    return (struct subject){.maker = maker,
                            .device = device,
                            .driver = opened.driver,
                            .index = opened.index,
                            .cpu_sees = !device->hidden || maker->traits & HOST_MEMORY};
}

/* Asked of the driver: a resource that says UNSUPPORTED where it has them is to be noticed. */
static bool has_pools(const struct subject *subject)
{
    const struct driver_pool_spec spec = {.release_threshold = SIZE_MAX};
    driver_pool pool;
    const raffia_status status = subject->driver->pool_create(subject->index, &spec, &pool);
    if (status == RAFFIA_ERROR_UNSUPPORTED) {
        printf("left out: %s on %s: %s\n", subject->maker->name, subject->device->name,
               raffia_last_error());
        return false;
    }
    return status || !subject->driver->pool_destroy(subject->index, pool);
}

static size_t add_checks(struct subject *subject, size_t count)
{
    for (size_t c = 0; c < CHECKS; c++, count++) {
        snprintf(names[count], sizeof names[count], "%s on %s%s: %s", subject->maker->name,
                 subject->device->hidden ? "hidden " : "", subject->device->name, checks[c].name);
        tests[count] = (struct CMUnitTest){names[count], checks[c].run, set_up, tear_down, subject};
    }
    return count;
}

int conformance_run(const char *name, const struct conformance_device *devices, size_t count)
{
    size_t subject_count = 0, test_count = 0;
    if (count > DEVICES_MAX || maker_count > MAKERS_MAX) {
        fprintf(stderr, "the suite has no room for %zu devices and %zu makers\n", count,
                maker_count);
        exit(1);
    }
    for (size_t d = 0; d < count; d++)
        for (size_t m = 0; m < maker_count; m++) {
            struct subject *subject = &subjects[subject_count];
            *subject = make_subject(&makers[m], &devices[d]);
            if (makers[m].traits & STREAMS_ONLY && !has_pools(subject))
                continue;
            subject_count++;
            test_count = add_checks(subject, test_count);
        }
    return _cmocka_run_group_tests(name, tests, test_count, NULL, NULL);
}
