/* The ladder: which pages are tried, in which order. */
#include "policy/ladder.h"
#include "support/cmocka.h"

#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static const raffia_device_info x86_host = {
    .name = "host",
    .page_count = 4,
    .pages = {{RAFFIA_PAGE_HUGETLB, GIB},
              {RAFFIA_PAGE_HUGETLB, 2 * MIB},
              {RAFFIA_PAGE_TRANSPARENT, 2 * MIB},
              {RAFFIA_PAGE_REGULAR, 4 * KIB}},
};

static void expect(raffia_pages_mode mode, size_t page_size, const raffia_device_info *device,
                   size_t count, const raffia_page_offer *rungs)
{
    struct policy_ladder ladder;
    assert_ok(policy_ladder_make(mode, page_size, device, &ladder));
    assert_int_equal(ladder.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(ladder.rungs[i].kind, rungs[i].kind);
        assert_int_equal(ladder.rungs[i].size, rungs[i].size);
    }
}

static void off_means_regular_pages(void **state)
{
    (void)state;
    expect(RAFFIA_PAGES_OFF, 2 * MIB, &x86_host, 1, &x86_host.pages[3]);
}

static void try_steps_down_to_regular_pages(void **state)
{
    (void)state;
    expect(RAFFIA_PAGES_TRY, 2 * MIB, &x86_host, 3, &x86_host.pages[1]);
}

static void one_gib_pages_are_an_opt_in(void **state)
{
    (void)state;
    expect(RAFFIA_PAGES_TRY, GIB, &x86_host, 4, &x86_host.pages[0]);
}

static void on_never_ends_in_regular_pages(void **state)
{
    (void)state;
    expect(RAFFIA_PAGES_ON, 2 * MIB, &x86_host, 2, &x86_host.pages[1]);
}

static void on_is_refused_where_nothing_huge_is_offered(void **state)
{
    (void)state;
    raffia_device_info small = {
        .name = "tiny", .page_count = 1, .pages = {{RAFFIA_PAGE_REGULAR, 4 * KIB}}};
    struct policy_ladder ladder;
    assert_status(RAFFIA_ERROR_NO_HUGE_PAGES,
                  policy_ladder_make(RAFFIA_PAGES_ON, 2 * MIB, &small, &ladder));
    assert_error_mentions("'tiny'");
    expect(RAFFIA_PAGES_TRY, 2 * MIB, &small, 1, small.pages);
}

static void a_machine_with_64_kib_pages_uses_the_sizes_it_has(void **state)
{
    (void)state;
    raffia_device_info arm = {
        .name = "host",
        .page_count = 4,
        .pages = {{RAFFIA_PAGE_HUGETLB, 512 * MIB},
                  {RAFFIA_PAGE_TRANSPARENT, 512 * MIB},
                  {RAFFIA_PAGE_HUGETLB, 2 * MIB},
                  {RAFFIA_PAGE_REGULAR, 64 * KIB}},
    };
    expect(RAFFIA_PAGES_TRY, 2 * MIB, &arm, 2, &arm.pages[2]);
    expect(RAFFIA_PAGES_TRY, GIB, &arm, 4, &arm.pages[0]);
}

static void a_device_with_large_pages_only_serves_off_with_its_smallest(void **state)
{
    (void)state;
    raffia_device_info gpu = {
        .name = "gpu", .page_count = 1, .pages = {{RAFFIA_PAGE_DEVICE, 2 * MIB}}};
    expect(RAFFIA_PAGES_OFF, 2 * MIB, &gpu, 1, gpu.pages);
    raffia_device_info nothing = {.name = "void"};
    struct policy_ladder ladder;
    assert_status(RAFFIA_ERROR_UNSUPPORTED,
                  policy_ladder_make(RAFFIA_PAGES_TRY, 2 * MIB, &nothing, &ladder));
}

static void a_page_size_must_be_a_power_of_two(void **state)
{
    (void)state;
    struct policy_ladder ladder;
    static const size_t bad[] = {0, 3, 3 * MIB, SIZE_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                      policy_ladder_make(RAFFIA_PAGES_TRY, bad[i], &x86_host, &ladder));
}

static void only_failures_about_pages_step_down(void **state)
{
    (void)state;
    assert_false(policy_reason_allows_fallback(RAFFIA_REASON_NONE));
    assert_false(policy_reason_allows_fallback(RAFFIA_REASON_MEMORY));
    assert_true(policy_reason_allows_fallback(RAFFIA_REASON_POOL_EMPTY));
    assert_true(policy_reason_allows_fallback(RAFFIA_REASON_CGROUP));
    assert_true(policy_reason_allows_fallback(RAFFIA_REASON_DISABLED));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_means_regular_pages),
        cmocka_unit_test(try_steps_down_to_regular_pages),
        cmocka_unit_test(one_gib_pages_are_an_opt_in),
        cmocka_unit_test(on_never_ends_in_regular_pages),
        cmocka_unit_test(on_is_refused_where_nothing_huge_is_offered),
        cmocka_unit_test(a_machine_with_64_kib_pages_uses_the_sizes_it_has),
        cmocka_unit_test(a_device_with_large_pages_only_serves_off_with_its_smallest),
        cmocka_unit_test(a_page_size_must_be_a_power_of_two),
        cmocka_unit_test(only_failures_about_pages_step_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
