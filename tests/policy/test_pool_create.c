/* raffia_pool_create(): options, defaults and the walk down the ladder, on the simulated device. */
#include "core/settings.h"
#include "driver/sim/sim.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"

#include <raffia/pool.h>

#include <pthread.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static int reset(void **state)
{
    (void)state;
    sim_reset();
    return raffia_config_set("pages", NULL);
}

/* A device like the host: four kinds of pages, of which some can be refused. */
static void use_host_like_device(const struct sim_page_limit *limits, size_t count)
{
    struct sim_config config = {
        .capacity_bytes = 4 * GIB,
        .page_count = 4,
        .pages = {{RAFFIA_PAGE_HUGETLB, GIB},
                  {RAFFIA_PAGE_HUGETLB, 2 * MIB},
                  {RAFFIA_PAGE_TRANSPARENT, 2 * MIB},
                  {RAFFIA_PAGE_REGULAR, 4 * KIB}},
        .synchronous = true,
        .commits_at_map = true,
    };
    if (count > 0)
        memcpy(config.limits, limits, count * sizeof *limits);
    assert_ok(sim_configure(0, &config));
}

static raffia_pool_options small_pool(void)
{
    return (raffia_pool_options){
        .struct_size = sizeof(raffia_pool_options),
        .device = "sim:0",
        .initial_bytes = 8 * MIB,
        .maximum_bytes = 32 * MIB,
    };
}

/* Creates the pool, takes its statistics and lets it go. */
static raffia_pool_stats stats_of(const raffia_pool_options *options)
{
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(options, &pool));
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(pool, &stats));
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
    return stats;
}

static void the_first_rung_that_holds_it_all_wins(void **state)
{
    (void)state;
    use_host_like_device(NULL, 0);
    raffia_pool_options options = small_pool();
    raffia_pool_stats stats = stats_of(&options);
    assert_int_equal(stats.pages.asked_kind, RAFFIA_PAGE_HUGETLB);
    assert_int_equal(stats.pages.got_kind, RAFFIA_PAGE_HUGETLB);
    assert_int_equal(stats.pages.got_size, 2 * MIB);
    assert_int_equal(stats.pages.reason, RAFFIA_REASON_NONE);
    assert_int_equal(stats.reserved_bytes, 8 * MIB);
    assert_int_equal(stats.maximum_bytes, 32 * MIB);
    assert_int_equal(stats.granule, 256);
}

static uint64_t count_of(raffia_page_kind from, raffia_page_kind to, raffia_fallback_reason reason)
{
    raffia_fallback_count rows[64];
    size_t count = raffia_fallbacks(rows, 64);
    for (size_t i = 0; i < count; i++)
        if (rows[i].from_kind == from && rows[i].to_kind == to && rows[i].reason == reason)
            return rows[i].count;
    return 0;
}

static void each_step_down_is_counted_and_warned_of_once(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 4 * MIB, RAFFIA_REASON_POOL_EMPTY},
        {RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 0, RAFFIA_REASON_DISABLED},
    };
    use_host_like_device(limits, 2);
    raffia_pool_options options = small_pool();
    uint64_t before =
        count_of(RAFFIA_PAGE_HUGETLB, RAFFIA_PAGE_TRANSPARENT, RAFFIA_REASON_POOL_EMPTY);
    log_capture_start();
    raffia_pool_stats stats = stats_of(&options);
    stats_of(&options);
    log_capture_stop();
    assert_int_equal(stats.pages.got_kind, RAFFIA_PAGE_REGULAR);
    assert_int_equal(stats.pages.asked_kind, RAFFIA_PAGE_HUGETLB);
    assert_int_equal(stats.pages.reason, RAFFIA_REASON_POOL_EMPTY);
    assert_int_equal(
        count_of(RAFFIA_PAGE_HUGETLB, RAFFIA_PAGE_TRANSPARENT, RAFFIA_REASON_POOL_EMPTY),
        before + 2);
    assert_true(count_of(RAFFIA_PAGE_TRANSPARENT, RAFFIA_PAGE_REGULAR, RAFFIA_REASON_DISABLED) > 0);
    assert_int_equal(log_capture_count(), 2);
}

/* ---- pools that are made without pages ------------------------------------------------------ */

static raffia_pool *make_empty_pool(raffia_pages_mode mode)
{
    raffia_pool_options options = small_pool();
    options.initial_bytes = RAFFIA_NONE;
    options.chunk_bytes = 4 * MIB;
    options.pages = mode;
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(&options, &pool));
    return pool;
}

static raffia_pool_stats query(raffia_pool *pool)
{
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(pool, &stats));
    assert_ok(raffia_pool_check(pool));
    return stats;
}

static void b2_a_pool_made_without_pages_steps_down_when_it_first_grows(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 2 * MIB, RAFFIA_REASON_POOL_EMPTY},
        {RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 0, RAFFIA_REASON_DISABLED},
    };
    use_host_like_device(limits, 2);
    const uint64_t empty = count_of(RAFFIA_PAGE_HUGETLB, RAFFIA_PAGE_TRANSPARENT,
                                    RAFFIA_REASON_POOL_EMPTY),
                   disabled = count_of(RAFFIA_PAGE_TRANSPARENT, RAFFIA_PAGE_REGULAR,
                                       RAFFIA_REASON_DISABLED);
    raffia_pool *pool = make_empty_pool(RAFFIA_PAGES_TRY);
    assert_int_equal(query(pool).pages.got_kind, RAFFIA_PAGE_HUGETLB);
    assert_int_equal(query(pool).pages.reason, RAFFIA_REASON_NONE);
    void *block;
    log_capture_start();
    assert_ok(raffia_pool_alloc(pool, 3 * MIB, 0, &block));
    log_capture_stop();
    memset(block, 1, 3 * MIB);
    const raffia_pool_stats stats = query(pool);
    assert_int_equal(stats.pages.asked_kind, RAFFIA_PAGE_HUGETLB);
    assert_int_equal(stats.pages.got_kind, RAFFIA_PAGE_REGULAR);
    assert_int_equal(stats.pages.got_size, 4 * KIB);
    assert_int_equal(stats.pages.reason, RAFFIA_REASON_POOL_EMPTY);
    assert_int_equal(stats.reserved_bytes, 4 * MIB);
    assert_int_equal(
        count_of(RAFFIA_PAGE_HUGETLB, RAFFIA_PAGE_TRANSPARENT, RAFFIA_REASON_POOL_EMPTY),
        empty + 1);
    assert_int_equal(count_of(RAFFIA_PAGE_TRANSPARENT, RAFFIA_PAGE_REGULAR, RAFFIA_REASON_DISABLED),
                     disabled + 1);
    assert_ok(raffia_pool_free(pool, block));
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
}

static void b10_a_pool_that_held_a_page_keeps_to_its_size(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 4 * MIB, RAFFIA_REASON_POOL_EMPTY}};
    use_host_like_device(limits, 1);
    raffia_pool *pool = make_empty_pool(RAFFIA_PAGES_TRY);
    void *block, *more;
    assert_ok(raffia_pool_alloc(pool, 4 * MIB, 0, &block));
    assert_int_equal(query(pool).pages.got_kind, RAFFIA_PAGE_HUGETLB);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 4 * MIB, 0, &more));
    assert_ok(raffia_pool_free(pool, block));
    assert_ok(raffia_pool_trim(pool, 0, NULL));
    assert_int_equal(query(pool).reserved_bytes, 0);
    /* Nor when it has given all of them back. */
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, 8 * MIB, 0, &more));
    assert_int_equal(query(pool).pages.got_kind, RAFFIA_PAGE_HUGETLB);
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
}

static void b2_on_never_steps_down_to_regular_pages_at_the_first_growth(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 0, RAFFIA_REASON_CGROUP},
        {RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 0, RAFFIA_REASON_DISABLED},
    };
    use_host_like_device(limits, 2);
    raffia_pool *pool = make_empty_pool(RAFFIA_PAGES_ON);
    void *block;
    log_capture_start();
    assert_int_not_equal(raffia_pool_alloc(pool, MIB, 0, &block), RAFFIA_OK);
    log_capture_stop();
    assert_int_equal(query(pool).pages.got_kind, RAFFIA_PAGE_TRANSPARENT);
    assert_int_equal(query(pool).reserved_bytes, 0);
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
}

static void a_shortage_of_memory_is_no_reason_to_step_down_at_the_first_growth(void **state)
{
    (void)state;
    use_host_like_device(NULL, 0);
    raffia_pool *pool = make_empty_pool(RAFFIA_PAGES_TRY);
    void *block;
    sim_fail_next("chunk_map", RAFFIA_ERROR_OUT_OF_MEMORY, RAFFIA_REASON_MEMORY);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_alloc(pool, MIB, 0, &block));
    assert_int_equal(query(pool).pages.got_kind, RAFFIA_PAGE_HUGETLB);
    assert_ok(raffia_pool_alloc(pool, MIB, 0, &block));
    assert_int_equal(query(pool).pages.got_kind, RAFFIA_PAGE_HUGETLB);
    assert_ok(raffia_pool_free(pool, block));
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
}

/* Whatever this machine has, also without a reserved page. */
static void b2_a_pool_made_without_pages_grows_on_the_host(void **state)
{
    (void)state;
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = "host",
        .pages = RAFFIA_PAGES_TRY,
        .initial_bytes = RAFFIA_NONE,
        .maximum_bytes = 8 * MIB,
        .chunk_bytes = 2 * MIB,
    };
    raffia_pool *pool = NULL;
    void *block;
    log_capture_start();
    assert_ok(raffia_pool_create(&options, &pool));
    assert_int_equal(query(pool).reserved_bytes, 0);
    assert_ok(raffia_pool_alloc(pool, 3 * MIB, 0, &block));
    log_capture_stop();
    memset(block, 1, 3 * MIB);
    const raffia_page_report report = query(pool).pages;
    if (report.reason == RAFFIA_REASON_NONE)
        assert_int_equal(report.got_kind, report.asked_kind);
    else
        assert_int_not_equal(report.got_kind, report.asked_kind);
    assert_ok(raffia_pool_free(pool, block));
    raffia_pool_release(pool);
}

static raffia_status grow_first(void *context)
{
    (void)context;
    raffia_pool_options options = small_pool();
    options.initial_bytes = RAFFIA_NONE;
    raffia_pool *pool = NULL;
    raffia_status status = raffia_pool_create(&options, &pool);
    if (status)
        return status;
    void *block;
    status = raffia_pool_alloc(pool, MIB, 0, &block);
    assert_ok(raffia_pool_check(pool));
    if (!status)
        assert_ok(raffia_pool_free(pool, block));
    raffia_pool_release(pool);
    assert_true(sim_is_idle());
    return status;
}

static void every_call_may_fail_on_the_way_down_at_the_first_growth(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 0, RAFFIA_REASON_POOL_EMPTY},
        {RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 0, RAFFIA_REASON_DISABLED},
    };
    use_host_like_device(limits, 2);
    log_capture_start();
    assert_true(fault_loop(grow_first, NULL, 500) > 10);
    log_capture_stop();
}

static void *alloc_and_free(void *context)
{
    for (int i = 0; i < 50; i++) {
        void *block;
        if (raffia_pool_alloc(context, MIB, 0, &block) || raffia_pool_free(context, block))
            return "a request failed";
    }
    return NULL;
}

static void threads_that_grow_a_pool_first_agree_on_its_pages(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 0, RAFFIA_REASON_POOL_EMPTY}};
    use_host_like_device(limits, 1);
    log_capture_start();
    for (int round = 0; round < 10; round++) {
        raffia_pool *pool = make_empty_pool(RAFFIA_PAGES_TRY);
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_free, pool), 0);
        for (int i = 0; i < 20; i++)
            (void)query(pool);
        for (int i = 0; i < THREADS; i++) {
            void *complaint;
            assert_int_equal(pthread_join(threads[i], &complaint), 0);
            assert_null(complaint);
        }
        assert_int_equal(query(pool).pages.got_kind, RAFFIA_PAGE_TRANSPARENT);
        raffia_pool_release(pool);
    }
    log_capture_stop();
    assert_true(sim_is_idle());
}

static void on_gives_the_reason_instead_of_falling_back(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 0, RAFFIA_REASON_CGROUP},
        {RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 0, RAFFIA_REASON_DISABLED},
    };
    use_host_like_device(limits, 2);
    raffia_pool_options options = small_pool();
    options.pages = RAFFIA_PAGES_ON;
    raffia_pool *pool = NULL;
    log_capture_start();
    assert_status(RAFFIA_ERROR_NO_HUGE_PAGES, raffia_pool_create(&options, &pool));
    log_capture_stop();
    assert_null(pool);
    assert_error_mentions("pages=on");
    assert_true(sim_is_idle());
    assert_true(count_of(RAFFIA_PAGE_TRANSPARENT, RAFFIA_PAGE_NONE, RAFFIA_REASON_DISABLED) > 0);
}

static void one_gib_pages_step_down_to_two_mib(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, GIB, 0, RAFFIA_REASON_POOL_EMPTY}};
    use_host_like_device(limits, 1);
    raffia_pool_options options = small_pool();
    options.page_size = GIB;
    log_capture_start();
    raffia_pool_stats stats = stats_of(&options);
    log_capture_stop();
    assert_int_equal(stats.pages.asked_size, GIB);
    assert_int_equal(stats.pages.got_size, 2 * MIB);
    assert_int_equal(stats.reserved_bytes, 8 * MIB);
}

static void running_out_of_memory_is_not_blamed_on_pages(void **state)
{
    (void)state;
    struct sim_config config = {.capacity_bytes = 4 * MIB, .synchronous = true};
    assert_ok(sim_configure(0, &config));
    raffia_pool_options options = small_pool();
    raffia_pool *pool = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, raffia_pool_create(&options, &pool));
    assert_true(sim_is_idle());
}

static void the_mode_is_try_unless_the_process_says_otherwise(void **state)
{
    (void)state;
    use_host_like_device(NULL, 0);
    raffia_pool_options options = small_pool();
    assert_int_equal(stats_of(&options).pages.got_kind, RAFFIA_PAGE_HUGETLB);
    assert_ok(raffia_config_set("pages", "off"));
    assert_int_equal(stats_of(&options).pages.got_kind, RAFFIA_PAGE_REGULAR);
    options.pages = RAFFIA_PAGES_ON;
    assert_int_equal(stats_of(&options).pages.got_kind, RAFFIA_PAGE_HUGETLB);
}

static void sizes_default_to_a_share_of_the_device(void **state)
{
    (void)state;
    use_host_like_device(NULL, 0); /* 4 GiB: 8 % are 327 MiB and a bit */
    raffia_pool_options options = {.struct_size = sizeof options, .device = "sim:0"};
    raffia_pool_stats stats = stats_of(&options);
    assert_int_equal(stats.maximum_bytes, 326 * MIB);
    assert_int_equal(stats.reserved_bytes, 326 * MIB);

    options.initial_bytes = RAFFIA_NONE;
    stats = stats_of(&options);
    assert_int_equal(stats.maximum_bytes, 326 * MIB);
    assert_int_equal(stats.reserved_bytes, 0);

    options.initial_bytes = 3 * MIB; /* rounded up at the door */
    options.flags = RAFFIA_POOL_FIXED;
    stats = stats_of(&options);
    assert_int_equal(stats.reserved_bytes, 4 * MIB);
    assert_int_equal(stats.maximum_bytes, 4 * MIB);

    options = small_pool();
    options.initial_bytes = 0;
    options.chunk_bytes = 5 * MIB;
    stats = stats_of(&options);
    assert_int_equal(stats.chunk_bytes, 6 * MIB);
    assert_int_equal(stats.reserved_bytes, 6 * MIB);
}

static void a_page_wide_granule_survives_the_fall_to_small_pages(void **state)
{
    (void)state;
    use_host_like_device(NULL, 0);
    raffia_pool_options options = small_pool();
    options.pages = RAFFIA_PAGES_OFF;
    options.granule = RAFFIA_NONE;
    options.maximum_bytes = 9 * MIB;
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(&options, &pool));
    void *a, *b;
    assert_ok(raffia_pool_alloc(pool, 1, 0, &a));
    assert_ok(raffia_pool_alloc(pool, 1, 0, &b));
    assert_int_equal((uintptr_t)a % (2 * MIB), 0);
    assert_int_equal((uintptr_t)b % (2 * MIB), 0);
    assert_ok(raffia_pool_free(pool, a));
    assert_ok(raffia_pool_free(pool, b));
    raffia_pool_release(pool);
}

static void refused(raffia_status expected, const raffia_pool_options *options, const char *mention)
{
    raffia_pool *pool = NULL;
    assert_status(expected, raffia_pool_create(options, &pool));
    assert_null(pool);
    assert_error_mentions(mention);
}

static void bad_options_are_refused_by_name(void **state)
{
    (void)state;
    raffia_pool_options options = small_pool();
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_pool_create(&options, NULL));

    options.pages = (raffia_pages_mode)7;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "mode 7");
    options = small_pool();
    options.flags = 1u << 20;
    refused(RAFFIA_ERROR_UNSUPPORTED, &options, "0x100000");
    options = small_pool();
    options.granule = 3000;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "3000");
    options.granule = 128;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "128");
    options.granule = GIB;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "granule");
    options = small_pool();
    options.page_size = 3 * MIB;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "power of two");
    options.page_size = 3;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "page size 3 ");
    options = small_pool();
    options.initial_bytes = 64 * MIB;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "exceeds its maximum");
    options = small_pool();
    options.maximum_bytes = SIZE_MAX - 5;
    refused(RAFFIA_ERROR_OVERFLOW, &options, "the maximum of a pool, 18446744073709551610 bytes");
    assert_error_mentions("address space");
    options.maximum_bytes = RAFFIA_NONE;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "maximum_bytes of a pool is 184467440737095");
    options = small_pool();
    options.chunk_bytes = RAFFIA_NONE;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "chunk_bytes of a pool is 18446744073709551");
    options = small_pool();
    options.flags = RAFFIA_POOL_REMAPPABLE;
    options.address_bytes = RAFFIA_NONE;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "address_bytes of a pool is 184467440737095");
    options = small_pool();
    options.initial_bytes = SIZE_MAX - 1;
    refused(RAFFIA_ERROR_OVERFLOW, &options, "the initial size of a pool, 18446744073709551614");
    options.maximum_bytes = 0;
    refused(RAFFIA_ERROR_OVERFLOW, &options, "the initial size of a pool, 18446744073709551614");
    char name[5000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    options = small_pool();
    options.name = name;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "has 4999");
    name[RAFFIA_POOL_NAME_MAX] = '\0';
    assert_int_equal(stats_of(&options).reserved_bytes, 8 * MIB);
    options = small_pool();
    options.numa_node_plus_one = -3;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "NUMA");
    options = small_pool();
    options.device = "abacus";
    refused(RAFFIA_ERROR_NOT_FOUND, &options, "abacus");
    options.device = "sim:77";
    refused(RAFFIA_ERROR_NOT_FOUND, &options, "sim:77");
    options.device = "sim:x";
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "sim:x");
    options.device = "cuda:0";
    refused(RAFFIA_ERROR_UNSUPPORTED, &options, "cuda");
    options = small_pool();
    options.struct_size = 0;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "struct_size");
}

static void a_fixed_pool_has_one_size(void **state)
{
    (void)state;
    use_host_like_device(NULL, 0);
    raffia_pool_options options = small_pool();
    options.flags = RAFFIA_POOL_FIXED;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "a fixed pool does not grow");
    options.initial_bytes = RAFFIA_NONE;
    refused(RAFFIA_ERROR_INVALID_ARGUMENT, &options, "a fixed pool without initial bytes");
    options.initial_bytes = 0;
    assert_int_equal(stats_of(&options).reserved_bytes, 32 * MIB);
    options.initial_bytes = 32 * MIB - 1; /* the same in whole pages */
    assert_int_equal(stats_of(&options).reserved_bytes, 32 * MIB);
    options.maximum_bytes = 0;
    assert_int_equal(stats_of(&options).maximum_bytes, 32 * MIB);
}

static void a_node_that_is_not_there_is_named_at_once(void **state)
{
    (void)state;
    raffia_pool_options options = small_pool();
    options.device = "host";
    options.numa_node_plus_one = 1000;
    raffia_fallback_count rows[64];
    uint64_t before = 0, after = 0;
    for (size_t i = raffia_fallbacks(rows, 64); i-- > 0;)
        before += rows[i].count;
    log_capture_start();
    refused(RAFFIA_ERROR_NOT_FOUND, &options, "there is no NUMA node 999: this machine's are");
    log_capture_stop();
    assert_int_equal(log_capture_count(), 0);
    for (size_t i = raffia_fallbacks(rows, 64); i-- > 0;)
        after += rows[i].count;
    assert_int_equal(after, before);
}

static void devices_are_described_by_name(void **state)
{
    (void)state;
    raffia_device_info info;
    assert_ok(raffia_device_query("host", &info));
    assert_string_equal(info.name, "host");
    assert_true(info.total_bytes >= info.free_bytes);
    assert_true(info.page_count > 0);
    assert_ok(raffia_config_set("driver", "sim"));
    assert_ok(raffia_device_query(NULL, &info));
    assert_string_equal(info.name, "sim:0");
    assert_ok(raffia_config_set("driver", "cuda"));
    assert_status(RAFFIA_ERROR_UNSUPPORTED, raffia_device_query(NULL, &info));
    assert_ok(raffia_config_set("driver", NULL));
    assert_ok(raffia_device_query("", &info));
    assert_string_equal(info.name, "host");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_device_query("host", NULL));
}

static raffia_pool *make(raffia_pages_mode mode, size_t bytes)
{
    raffia_pool_options options = small_pool();
    options.pages = mode;
    options.initial_bytes = options.maximum_bytes = bytes;
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(&options, &pool));
    return pool;
}

static size_t reserved(raffia_pool *pool)
{
    raffia_pool_stats stats;
    assert_ok(raffia_pool_query(pool, &stats));
    return stats.reserved_bytes;
}

static void b4_a_new_pool_takes_what_others_hold_idle_before_it_fails(void **state)
{
    (void)state;
    struct sim_config config = {.capacity_bytes = 64 * MIB};
    assert_ok(sim_configure(0, &config));
    raffia_pool *old = make(RAFFIA_PAGES_TRY, 48 * MIB);
    raffia_pool *new = make(RAFFIA_PAGES_TRY, 32 * MIB);
    assert_true(reserved(old) <= 32 * MIB);
    raffia_pool_release(old);
    raffia_pool_release(new);
    assert_true(sim_is_idle());
}

static void b4_a_step_down_the_ladder_comes_before_taking_from_others(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 16 * MIB, RAFFIA_REASON_POOL_EMPTY},
        {RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 16 * MIB, RAFFIA_REASON_FAULT},
    };
    use_host_like_device(limits, 2);
    log_capture_start();
    raffia_pool *hugetlb = make(RAFFIA_PAGES_TRY, 16 * MIB);
    raffia_pool *transparent = make(RAFFIA_PAGES_TRY, 16 * MIB);
    assert_int_equal(reserved(hugetlb), 16 * MIB);
    /* With `on` this is the last rung. */
    raffia_pool *new = make(RAFFIA_PAGES_ON, 16 * MIB);
    log_capture_stop();
    assert_int_equal(reserved(hugetlb), 16 * MIB);
    assert_int_equal(reserved(transparent), 0);
    assert_int_equal(reserved(new), 16 * MIB);
    raffia_pool_release(hugetlb);
    raffia_pool_release(transparent);
    raffia_pool_release(new);
    assert_true(sim_is_idle());
}

static raffia_status create_use_and_release(void *context)
{
    raffia_pool *pool = NULL;
    raffia_status status = raffia_pool_create(context, &pool);
    if (status)
        return status;
    void *block;
    status = raffia_pool_alloc(pool, MIB, 0, &block);
    if (!status)
        status = raffia_pool_free(pool, block);
    raffia_pool_release(pool);
    return status;
}

static void every_call_may_fail_on_the_way_down(void **state)
{
    (void)state;
    const struct sim_page_limit limits[] = {
        {RAFFIA_PAGE_HUGETLB, 2 * MIB, 4 * MIB, RAFFIA_REASON_POOL_EMPTY}};
    use_host_like_device(limits, 1);
    raffia_pool_options options = small_pool();
    options.chunk_bytes = 2 * MIB;
    log_capture_start();
    assert_true(fault_loop(create_use_and_release, &options, 1000) > 10);
    log_capture_stop();
    assert_true(sim_is_idle());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_first_rung_that_holds_it_all_wins, reset),
        cmocka_unit_test_setup(each_step_down_is_counted_and_warned_of_once, reset),
        cmocka_unit_test_setup(b2_a_pool_made_without_pages_steps_down_when_it_first_grows, reset),
        cmocka_unit_test_setup(b10_a_pool_that_held_a_page_keeps_to_its_size, reset),
        cmocka_unit_test_setup(b2_on_never_steps_down_to_regular_pages_at_the_first_growth, reset),
        cmocka_unit_test_setup(a_shortage_of_memory_is_no_reason_to_step_down_at_the_first_growth,
                               reset),
        cmocka_unit_test_setup(b2_a_pool_made_without_pages_grows_on_the_host, reset),
        cmocka_unit_test_setup(every_call_may_fail_on_the_way_down_at_the_first_growth, reset),
        cmocka_unit_test_setup(threads_that_grow_a_pool_first_agree_on_its_pages, reset),
        cmocka_unit_test_setup(on_gives_the_reason_instead_of_falling_back, reset),
        cmocka_unit_test_setup(one_gib_pages_step_down_to_two_mib, reset),
        cmocka_unit_test_setup(running_out_of_memory_is_not_blamed_on_pages, reset),
        cmocka_unit_test_setup(the_mode_is_try_unless_the_process_says_otherwise, reset),
        cmocka_unit_test_setup(sizes_default_to_a_share_of_the_device, reset),
        cmocka_unit_test_setup(a_page_wide_granule_survives_the_fall_to_small_pages, reset),
        cmocka_unit_test_setup(bad_options_are_refused_by_name, reset),
        cmocka_unit_test_setup(a_fixed_pool_has_one_size, reset),
        cmocka_unit_test_setup(a_node_that_is_not_there_is_named_at_once, reset),
        cmocka_unit_test_setup(devices_are_described_by_name, reset),
        cmocka_unit_test_setup(b4_a_new_pool_takes_what_others_hold_idle_before_it_fails, reset),
        cmocka_unit_test_setup(b4_a_step_down_the_ladder_comes_before_taking_from_others, reset),
        cmocka_unit_test_setup(every_call_may_fail_on_the_way_down, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
