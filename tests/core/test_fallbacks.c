/* Steps down the ladder: counted always, warned of once. */
#include "core/fallbacks.h"
#include "support/cmocka.h"
#include "support/log_capture.h"

#include <pthread.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

enum { ROOM = 256 };

static uint64_t count_of(raffia_page_kind from, size_t from_size, raffia_page_kind to,
                         size_t to_size, raffia_fallback_reason reason)
{
    static raffia_fallback_count rows[ROOM];
    size_t count = raffia_fallbacks(rows, ROOM);
    uint64_t found = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].from_kind == from && rows[i].from_size == from_size && rows[i].to_kind == to &&
            rows[i].to_size == to_size && rows[i].reason == reason)
            found += rows[i].count;
    return found;
}

/* Must be the first test. */
static void the_table_is_empty_at_first(void **state)
{
    (void)state;
    assert_int_equal(raffia_fallbacks(NULL, 0), 0);
}

static void a_step_is_warned_of_the_first_time(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_INFO);
    log_capture_start();
    for (int i = 0; i < 3; i++)
        core_fallback(RAFFIA_PAGE_HUGETLB, 2 * MIB, RAFFIA_PAGE_TRANSPARENT, 2 * MIB,
                      RAFFIA_REASON_POOL_EMPTY, "0 of 64 pages are free");
    log_capture_stop();
    assert_int_equal(log_capture_count(), 3);
    assert_int_equal(log_capture_level(0), RAFFIA_LOG_WARN);
    assert_int_equal(log_capture_level(1), RAFFIA_LOG_INFO);
    assert_int_equal(log_capture_level(2), RAFFIA_LOG_INFO);
    assert_string_equal(log_capture_line(0),
                        "no 2 MiB hugetlb pages (pool_empty: 0 of 64 pages are free); "
                        "using 2 MiB transparent");
    assert_int_equal(count_of(RAFFIA_PAGE_HUGETLB, 2 * MIB, RAFFIA_PAGE_TRANSPARENT, 2 * MIB,
                              RAFFIA_REASON_POOL_EMPTY),
                     3);
}

static void another_reason_or_size_is_another_step(void **state)
{
    (void)state;
    size_t before = raffia_fallbacks(NULL, 0);
    log_capture_start();
    core_fallback(RAFFIA_PAGE_HUGETLB, 2 * MIB, RAFFIA_PAGE_TRANSPARENT, 2 * MIB,
                  RAFFIA_REASON_CGROUP, "a limit");
    core_fallback(RAFFIA_PAGE_HUGETLB, GIB, RAFFIA_PAGE_TRANSPARENT, 2 * MIB,
                  RAFFIA_REASON_POOL_EMPTY, "none");
    core_fallback(RAFFIA_PAGE_HUGETLB, 2 * MIB, RAFFIA_PAGE_REGULAR, 4096, RAFFIA_REASON_POOL_EMPTY,
                  "none");
    log_capture_stop();
    assert_int_equal(raffia_fallbacks(NULL, 0), before + 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(log_capture_level(i), RAFFIA_LOG_WARN);
    assert_non_null(strstr(log_capture_line(1), "no 1 GiB hugetlb pages"));
    assert_non_null(strstr(log_capture_line(2), "using 4 KiB regular"));
}

static void the_last_step_says_that_nothing_is_left(void **state)
{
    (void)state;
    log_capture_start();
    core_fallback(RAFFIA_PAGE_DEVICE, 2 * MIB, RAFFIA_PAGE_NONE, 0, RAFFIA_REASON_MEMORY, "full");
    log_capture_stop();
    assert_string_equal(log_capture_line(0),
                        "no 2 MiB device pages (memory: full); nothing left to try");
}

static void as_many_rows_are_copied_as_there_is_room_for(void **state)
{
    (void)state;
    raffia_fallback_count rows[3];
    memset(rows, 0xee, sizeof rows);
    size_t all = raffia_fallbacks(rows, 2);
    assert_true(all > 2);
    assert_int_equal(rows[0].from_kind, RAFFIA_PAGE_HUGETLB);
    assert_int_equal(rows[0].count, 3);
    assert_int_equal(((unsigned char *)&rows[2])[0], 0xee);
}

static void *fall_back(void *unused)
{
    for (int i = 0; i < 100; i++)
        core_fallback(RAFFIA_PAGE_HUGETLB, 8 * MIB, RAFFIA_PAGE_REGULAR, 4096, RAFFIA_REASON_FAULT,
                      "short");
    return unused;
}

static void threads_count_together_and_warn_once(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    raffia_log_set_level(RAFFIA_LOG_WARN);
    log_capture_start();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fall_back, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    log_capture_stop();
    assert_int_equal(log_capture_count(), 1);
    assert_int_equal(
        count_of(RAFFIA_PAGE_HUGETLB, 8 * MIB, RAFFIA_PAGE_REGULAR, 4096, RAFFIA_REASON_FAULT),
        THREADS * 100);
}

/* SPEC B11: memory pinned in another way is as good; only pageable memory is worth a warning. */
static void steps_in_pinning_are_counted_under_their_own_reason(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_WARN);
    log_capture_start();
    for (int i = 0; i < 2; i++) {
        core_fallback_pin(RAFFIA_PAGE_TRANSPARENT, 64 * MIB, RAFFIA_PAGE_TRANSPARENT, 8 * MIB,
                          "trying smaller pieces", "refused");
        core_fallback_pin(RAFFIA_PAGE_TRANSPARENT, 8 * MIB, RAFFIA_PAGE_NONE, 0,
                          "it stays pageable", "refused");
    }
    log_capture_stop();
    assert_int_equal(log_capture_count(), 1);
    assert_int_equal(count_of(RAFFIA_PAGE_TRANSPARENT, 64 * MIB, RAFFIA_PAGE_TRANSPARENT, 8 * MIB,
                              RAFFIA_REASON_PIN),
                     2);
    assert_int_equal(
        count_of(RAFFIA_PAGE_TRANSPARENT, 8 * MIB, RAFFIA_PAGE_NONE, 0, RAFFIA_REASON_PIN), 2);
    assert_string_equal(raffia_fallback_reason_name(RAFFIA_REASON_PIN), "pin");
}

/* Must be the last test: the table stays full. */
static void a_full_table_loses_no_count(void **state)
{
    (void)state;
    static raffia_fallback_count rows[ROOM];
    raffia_log_set_level(RAFFIA_LOG_OFF);
    uint64_t before = 0, after = 0;
    size_t count = raffia_fallbacks(rows, ROOM);
    for (size_t i = 0; i < count; i++)
        before += rows[i].count;
    for (size_t i = 0; i < 200; i++)
        core_fallback(RAFFIA_PAGE_REGULAR, (i + 1) * 4096, RAFFIA_PAGE_NONE, 0,
                      RAFFIA_REASON_MEMORY, "full");
    count = raffia_fallbacks(rows, ROOM);
    assert_true(count < 200);
    for (size_t i = 0; i < count; i++)
        after += rows[i].count;
    assert_int_equal(after, before + 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_empty_at_first),
        cmocka_unit_test(a_step_is_warned_of_the_first_time),
        cmocka_unit_test(another_reason_or_size_is_another_step),
        cmocka_unit_test(the_last_step_says_that_nothing_is_left),
        cmocka_unit_test(as_many_rows_are_copied_as_there_is_room_for),
        cmocka_unit_test(threads_count_together_and_warn_once),
        cmocka_unit_test(steps_in_pinning_are_counted_under_their_own_reason),
        cmocka_unit_test(a_full_table_loses_no_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
