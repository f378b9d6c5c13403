/* The page store: its limit, its chunks, and what it does when the driver fails. */
#include "core/memory.h"
#include "driver/sim/sim.h"
#include "pages/page_store.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <pthread.h>
#include <string.h>

#define PAGE        ((size_t)65536)
#define CHUNK       (4 * PAGE)
#define RANGE       (16 * CHUNK)
#define RANGE_ALIGN ((size_t)2 << 20)

static char *range;

static void configure(struct sim_config config)
{
    sim_reset();
    config.page_count = 2;
    config.pages[0] = (raffia_page_offer){RAFFIA_PAGE_DEVICE, PAGE};
    config.pages[1] = (raffia_page_offer){RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE};
    assert_ok(sim_configure(0, &config));
    void *base;
    assert_ok(sim_driver.range_reserve(0, RANGE, RANGE_ALIGN, &base));
    range = base;
}

static int set_up(void **state)
{
    (void)state;
    configure((struct sim_config){0});
    return 0;
}

/* The store must have left nothing but the range of the test. */
static int tear_down(void **state)
{
    (void)state;
    assert_ok(sim_driver.range_release(0, range, RANGE));
    assert_true(sim_is_idle());
    return 0;
}

static struct page_store_options options_for(size_t limit)
{
    return (struct page_store_options){
        .device = {&sim_driver, 0},
        .kind = RAFFIA_PAGE_DEVICE,
        .page_size = PAGE,
        .limit_bytes = limit,
        .numa_node = -1,
        .threads = 1,
    };
}

static struct page_store *make_store(size_t limit, bool remappable)
{
    struct page_store_options options = options_for(limit);
    struct page_store *store;
    options.remappable = remappable;
    assert_ok(page_store_create(&options, &store));
    return store;
}

static struct page_store_stats stats_of(struct page_store *store)
{
    struct page_store_stats stats;
    page_store_query(store, &stats);
    return stats;
}

static struct page_loan borrow(struct page_store *store, size_t place, size_t bytes)
{
    struct page_loan loan = {0};
    raffia_fallback_reason reason;
    assert_ok(page_store_borrow(store, range + place * CHUNK, bytes, bytes, &loan, &reason));
    assert_ptr_equal(loan.at, range + place * CHUNK);
    assert_int_equal(loan.bytes, bytes);
    return loan;
}

static raffia_status try_borrow(struct page_store *store, size_t place, size_t bytes,
                                raffia_fallback_reason *reason)
{
    struct page_loan loan = {0};
    raffia_status status =
        page_store_borrow(store, range + place * CHUNK, bytes, bytes, &loan, reason);
    if (status)
        assert_null(loan.record);
    return status;
}

static void a_chunk_is_lent_verified_and_taken_back(void **state)
{
    (void)state;
    struct page_store *store = make_store(4 * CHUNK, false);
    struct page_loan loan = borrow(store, 0, CHUNK);
    assert_true(loan.evidence.verified);
    assert_int_equal(loan.evidence.smallest, PAGE);
    assert_int_equal(loan.evidence.conforming, CHUNK);
    memset(loan.at, 1, loan.bytes);
    struct page_store_stats stats = stats_of(store);
    assert_int_equal(stats.lent_bytes, CHUNK);
    assert_int_equal(stats.chunks, 1);
    assert_int_equal(stats.limit_bytes, 4 * CHUNK);
    assert_int_equal(stats.driver_calls, 2);

    assert_ok(page_store_return(store, &loan));
    assert_null(loan.record);
    stats = stats_of(store);
    assert_int_equal(stats.lent_bytes + stats.kept_bytes, 0);
    assert_int_equal(stats.chunks, 0);
    assert_int_equal(stats.peak_bytes, CHUNK);
    assert_int_equal(stats.driver_calls, 4);
    page_store_destroy(store);
}

static void the_limit_is_kept_and_named(void **state)
{
    (void)state;
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    struct page_store *store = make_store(2 * CHUNK, false);
    struct page_loan one = borrow(store, 0, CHUNK);
    const long creates = sim_calls("chunk_create");
    assert_status(RAFFIA_ERROR_LIMIT, try_borrow(store, 1, 2 * CHUNK, &reason));
    assert_int_equal(reason, RAFFIA_REASON_LIMIT);
    assert_error_mentions("limit of 512 KiB");
    assert_error_mentions("256 KiB are lent");
    assert_int_equal(sim_calls("chunk_create"), creates);
    struct page_loan two = borrow(store, 1, CHUNK);

    page_store_set_limit(store, CHUNK);
    assert_int_equal(stats_of(store).lent_bytes, 2 * CHUNK);
    assert_ok(page_store_return(store, &two));
    assert_status(RAFFIA_ERROR_LIMIT, try_borrow(store, 1, CHUNK, &reason));
    page_store_set_limit(store, RAFFIA_NONE);
    two = borrow(store, 1, CHUNK);
    assert_ok(page_store_return(store, &one));
    assert_ok(page_store_return(store, &two));
    page_store_destroy(store);
}

static void remappable_chunks_are_kept_for_the_next_borrower(void **state)
{
    (void)state;
    struct page_store *store = make_store(4 * CHUNK, true);
    struct page_loan loan = borrow(store, 0, CHUNK);
    assert_ok(page_store_return(store, &loan));
    assert_int_equal(stats_of(store).kept_bytes, CHUNK);
    const long creates = sim_calls("chunk_create");
    loan = borrow(store, 3, CHUNK);
    assert_int_equal(sim_calls("chunk_create"), creates);
    struct page_loan other = borrow(store, 4, 2 * CHUNK);
    assert_int_equal(sim_calls("chunk_create"), creates + 1);
    assert_ok(page_store_return(store, &loan));
    assert_ok(page_store_return(store, &other));
    assert_int_equal(stats_of(store).kept_bytes, 3 * CHUNK);

    size_t released;
    assert_ok(page_store_trim(store, 2 * CHUNK, &released));
    assert_true(released >= CHUNK);
    assert_true(stats_of(store).kept_bytes <= 2 * CHUNK);
    assert_ok(page_store_trim(store, 0, NULL));
    assert_int_equal(stats_of(store).kept_bytes, 0);
    assert_int_equal(stats_of(store).chunks, 0);
    page_store_destroy(store);
}

static void kept_chunks_of_other_sizes_make_way(void **state)
{
    (void)state;
    struct page_store *store = make_store(2 * CHUNK, true);
    struct page_loan one = borrow(store, 0, CHUNK), two = borrow(store, 1, CHUNK);
    assert_ok(page_store_return(store, &one));
    assert_ok(page_store_return(store, &two));
    one = borrow(store, 0, 2 * CHUNK); /* the limit wants both to go */
    assert_int_equal(stats_of(store).kept_bytes, 0);
    assert_ok(page_store_return(store, &one));
    page_store_destroy(store);
}

static void kept_chunks_are_given_back_before_the_device_refuses(void **state)
{
    (void)state;
    for (int at_map = 0; at_map < 2; at_map++) {
        tear_down(NULL);
        configure((struct sim_config){.capacity_bytes = 3 * CHUNK, .commits_at_map = at_map == 1});
        raffia_fallback_reason reason = RAFFIA_REASON_NONE;
        struct page_store *store = make_store(16 * CHUNK, true);
        struct page_loan one = borrow(store, 0, CHUNK), two = borrow(store, 1, CHUNK);
        assert_ok(page_store_return(store, &one));
        one = borrow(store, 4, 2 * CHUNK);
        assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, try_borrow(store, 8, CHUNK, &reason));
        assert_int_equal(reason, RAFFIA_REASON_MEMORY);
        assert_ok(page_store_return(store, &one));
        assert_ok(page_store_return(store, &two));
        page_store_destroy(store);
    }
}

static void smaller_pages_are_refused(void **state)
{
    (void)state;
    tear_down(NULL);
    configure((struct sim_config){.smaller_pages = 2});
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    struct page_store *store = make_store(4 * CHUNK, false);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, try_borrow(store, 0, CHUNK, &reason));
    assert_int_equal(reason, RAFFIA_REASON_SMALLER);
    assert_error_mentions("64 KiB");
    assert_error_mentions("4 KiB");
    assert_int_equal(stats_of(store).lent_bytes, 0);
    struct page_loan loan = borrow(store, 0, CHUNK); /* the next ones are as asked */
    assert_ok(page_store_return(store, &loan));
    page_store_destroy(store);
}

static void regular_pages_need_no_reading_back(void **state)
{
    (void)state;
    struct page_store_options options = options_for(4 * CHUNK);
    struct page_store *store;
    options.kind = RAFFIA_PAGE_REGULAR;
    options.page_size = SIM_BASE_PAGE;
    assert_ok(page_store_create(&options, &store));
    struct page_loan loan = borrow(store, 0, CHUNK);
    assert_int_equal(sim_calls("page_size_of"), 0);
    assert_int_equal(loan.evidence.smallest, SIM_BASE_PAGE);
    assert_string_equal(loan.evidence.source, "by construction");
    assert_ok(page_store_return(store, &loan));
    page_store_destroy(store);
}

static void pages_that_cannot_be_read_back_are_lent_as_unverified(void **state)
{
    (void)state;
    tear_down(NULL);
    configure((struct sim_config){.hides_page_sizes = true, .smaller_pages = 1});
    struct page_store *store = make_store(4 * CHUNK, false);
    struct page_loan loan = borrow(store, 0, CHUNK);
    assert_false(loan.evidence.verified);
    assert_ok(page_store_return(store, &loan));
    page_store_destroy(store);
}

static void what_a_driver_cannot_do_is_refused_at_creation(void **state)
{
    (void)state;
    struct driver plain = sim_driver;
    plain.capabilities &= ~(unsigned)(DRIVER_CAN_REMAP | DRIVER_CAN_EXPORT);
    struct page_store_options options = options_for(CHUNK);
    struct page_store *store = NULL;
    options.device.driver = &plain;
    options.remappable = true;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, page_store_create(&options, &store));
    assert_error_mentions("remappable");
    options.remappable = false;
    options.handle = DRIVER_HANDLE_FD;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, page_store_create(&options, &store));
    assert_error_mentions("shareable");
    assert_null(store);
}

static void a_chunk_that_cannot_be_unmapped_stays_lent(void **state)
{
    (void)state;
    struct page_store *store = make_store(4 * CHUNK, false);
    struct page_loan loan = borrow(store, 0, CHUNK);
    const struct page_loan before = loan;
    memset(loan.at, 7, loan.bytes);
    sim_fail_next("chunk_unmap", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, page_store_return(store, &loan));
    assert_ptr_equal(loan.record, before.record);
    assert_int_equal(((char *)loan.at)[loan.bytes - 1], 7);
    assert_int_equal(stats_of(store).lent_bytes, CHUNK);
    assert_ok(page_store_return(store, &loan));
    page_store_destroy(store);
}

static void a_chunk_that_cannot_be_destroyed_is_kept_until_it_can(void **state)
{
    (void)state;
    struct page_store *store = make_store(CHUNK, false);
    struct page_loan loan = borrow(store, 0, CHUNK);
    sim_fail_next("chunk_destroy", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_ok(page_store_return(store, &loan));
    assert_int_equal(stats_of(store).lent_bytes, 0);
    assert_int_equal(stats_of(store).kept_bytes, CHUNK);
    sim_fail_next("chunk_destroy", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_DRIVER, page_store_trim(store, 0, NULL));
    assert_int_equal(stats_of(store).kept_bytes, CHUNK);
    /* It is not lent again, but goes when its room is wanted. */
    const long creates = sim_calls("chunk_create");
    loan = borrow(store, 1, CHUNK);
    assert_int_equal(sim_calls("chunk_create"), creates + 1);
    sim_fail_next("chunk_destroy", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_ok(page_store_return(store, &loan));
    sim_fail_next("chunk_destroy", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    page_store_destroy(store); /* which tries again */
}

static void a_map_that_cannot_be_undone_is_not_forgotten(void **state)
{
    (void)state;
    tear_down(NULL);
    configure((struct sim_config){.smaller_pages = 1});
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    struct page_store *store = make_store(4 * CHUNK, true);
    sim_fail_next("chunk_unmap", RAFFIA_ERROR_DRIVER, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, try_borrow(store, 0, CHUNK, &reason));
    assert_int_equal(reason, RAFFIA_REASON_SMALLER);
    assert_error_mentions("read");
    assert_int_equal(stats_of(store).lent_bytes, 0);
    page_store_destroy(store);
}

/* Borrows two chunks, returns them, borrows one at another place, trims: every way a chunk goes. */
static raffia_status life_of_chunks(void *context)
{
    struct page_store_options options = options_for(4 * CHUNK);
    struct page_store *store;
    struct page_loan loans[3] = {{0}};
    raffia_fallback_reason reason;
    options.remappable = *(bool *)context;
    raffia_status status = page_store_create(&options, &store);
    if (status)
        return status;
    status = page_store_borrow(store, range, CHUNK, CHUNK, &loans[0], &reason);
    if (!status)
        status = page_store_borrow(store, range + CHUNK, 2 * CHUNK, 2 * CHUNK, &loans[1], &reason);
    if (!status)
        status = page_store_return(store, &loans[0]);
    if (!status)
        status = page_store_borrow(store, range + 4 * CHUNK, CHUNK, CHUNK, &loans[2], &reason);
    for (int i = 0; i < 3; i++)
        if (loans[i].record)
            assert_ok(page_store_return(store, &loans[i]));
    assert_int_equal(stats_of(store).lent_bytes, 0);
    assert_ok(page_store_trim(store, 0, NULL));
    assert_int_equal(stats_of(store).chunks, 0);
    page_store_destroy(store);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.chunks, 0);
    assert_int_equal(usage.misuses, 0);
    return status;
}

static void every_call_may_fail(void **state)
{
    (void)state;
    for (int remappable = 0; remappable < 2; remappable++) {
        bool flag = remappable == 1;
        assert_true(fault_loop(life_of_chunks, &flag, 200) > 8);
    }
}

#define BORROWERS        4
#define BORROWS_PER_HEAD 100

struct borrower {
    struct page_store *store;
    size_t place;
    size_t refused;
};

static void *borrow_again_and_again(void *argument)
{
    struct borrower *borrower = argument;
    for (int i = 0; i < BORROWS_PER_HEAD; i++) {
        struct page_loan loan;
        raffia_fallback_reason reason;
        if (page_store_borrow(borrower->store, range + borrower->place * CHUNK, CHUNK, CHUNK, &loan,
                              &reason)) {
            borrower->refused++;
            continue;
        }
        *(volatile char *)loan.at = 1;
        if (page_store_return(borrower->store, &loan))
            borrower->refused += BORROWS_PER_HEAD;
    }
    return NULL;
}

static void borrowers_at_once_do_not_overrun_the_limit(void **state)
{
    (void)state;
    for (int remappable = 0; remappable < 2; remappable++) {
        struct page_store *store = make_store(2 * CHUNK, remappable == 1);
        struct borrower borrowers[BORROWERS];
        pthread_t threads[BORROWERS];
        for (size_t i = 0; i < BORROWERS; i++) {
            borrowers[i] = (struct borrower){store, i, 0};
            assert_int_equal(
                pthread_create(&threads[i], NULL, borrow_again_and_again, &borrowers[i]), 0);
        }
        for (size_t i = 0; i < BORROWERS; i++) {
            pthread_join(threads[i], NULL);
            assert_true(borrowers[i].refused <= BORROWS_PER_HEAD);
        }
        assert_true(stats_of(store).peak_bytes <= 2 * CHUNK);
        assert_int_equal(stats_of(store).lent_bytes, 0);
        page_store_destroy(store);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_chunk_is_lent_verified_and_taken_back),
        TEST(the_limit_is_kept_and_named),
        TEST(remappable_chunks_are_kept_for_the_next_borrower),
        TEST(kept_chunks_of_other_sizes_make_way),
        TEST(kept_chunks_are_given_back_before_the_device_refuses),
        TEST(smaller_pages_are_refused),
        TEST(regular_pages_need_no_reading_back),
        TEST(pages_that_cannot_be_read_back_are_lent_as_unverified),
        TEST(what_a_driver_cannot_do_is_refused_at_creation),
        TEST(a_chunk_that_cannot_be_unmapped_stays_lent),
        TEST(a_chunk_that_cannot_be_destroyed_is_kept_until_it_can),
        TEST(a_map_that_cannot_be_undone_is_not_forgotten),
        TEST(every_call_may_fail),
        TEST(borrowers_at_once_do_not_overrun_the_limit),
    };
    return cmocka_run_group_tests_name("page store", tests, NULL, NULL);
}
