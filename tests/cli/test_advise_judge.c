/* What is advised for models and machines that are not there. */
#include "cli/advise_judge.h"
#include "support/cmocka.h"

#include <string.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)
#define GB  ((size_t)1000 * 1000 * 1000)

#define NO_LIMIT ((struct host_limit){.limit = HOST_UNLIMITED})

static struct host_facts facts;
static struct advice advice;
static struct advise_question question;
static size_t weights[4];

/* A machine with 100 GiB free, pages of 1 GiB and 2 MiB and none of them set aside; and one model
 * that meets all that 1 GiB pages ask for. */
static int begin(void **state)
{
    facts = (struct host_facts){
        .base_page_size = 4096,
        .memory = {.total = 128 * GIB, .available = 100 * GIB, .cgroup = NO_LIMIT},
        .thp = {.present = true,
                .page_size = 2 * MIB,
                .anonymous = "madvise",
                .anonymous_path = "/thp/enabled"},
        .pool_count = 2,
        .pools = {{.page_size = GIB, .fault = NO_LIMIT, .reservation = NO_LIMIT},
                  {.page_size = 2 * MIB, .fault = NO_LIMIT, .reservation = NO_LIMIT}},
        .node_count = 1,
    };
    weights[0] = 10 * GB;
    question = (struct advise_question){
        .weights = weights, .count = 1, .rotate = true, .loads_given = true, .loads_per_day = 40};
    (void)state;
    return 0;
}

static void judge(void)
{
    assert_int_equal(advise_judge(&question, &facts, &advice), RAFFIA_OK);
}

static void b12_a_resident_model_wants_its_weights_times_1_2(void **state)
{
    question.rotate = false;
    question.loads_given = false;
    weights[0] = 100 * MIB;
    judge();
    assert_int_equal(advice.pool_bytes, 120 * MIB);
    assert_int_equal(advice.percent, 120);
    assert_non_null(strstr(advice.arithmetic, "100 MiB of weights x 1.2 = 120 MiB"));
    weights[0] = 100 * MIB + 1; /* whole pages */
    judge();
    assert_int_equal(advice.pool_bytes, 122 * MIB);
    (void)state;
}

static void b12_rotating_models_want_the_sum_times_1_3(void **state)
{
    weights[0] = 100 * MIB;
    weights[1] = 300 * MIB;
    question.count = 2;
    judge();
    assert_int_equal(advice.weight_bytes, 400 * MIB);
    assert_int_equal(advice.pool_bytes, 520 * MIB);
    assert_non_null(strstr(advice.arithmetic, "x 1.3"));
    (void)state;
}

static void b12_models_that_take_turns_want_the_largest_times_1_2(void **state)
{
    question.loads_given = false;
    weights[0] = 50 * GIB;
    judge();
    assert_int_equal(advice.turns_bytes, 0);
    weights[1] = 70 * GIB;
    question.count = 2;
    judge();
    assert_false(advice.fits);
    assert_int_equal(advice.turns_bytes, 84 * GIB);
    assert_non_null(strstr(advice.remarks[0], "84 GiB"));
    assert_non_null(strstr(advice.remarks[0], "there is room"));
    weights[1] = 90 * GIB; /* 108 GiB of 100 */
    judge();
    assert_null(strstr(advice.remarks[0], "there is room"));
    (void)state;
}

static void b12_b14_pages_of_1_gib_want_all_conditions_at_once(void **state)
{
    judge();
    assert_int_equal(advice.page_size, GIB);
    assert_int_equal(advice.pool_bytes, 13 * GIB); /* 13 GB in whole pages */
    assert_null(strstr(advice.page_why, ": no"));
    (void)state;
}

static void b12_weights_of_8_gb_stay_at_2_mib(void **state)
{
    weights[0] = 8 * GB;
    judge();
    assert_int_equal(advice.page_size, 2 * MIB);
    assert_non_null(strstr(advice.page_why, "7.45 GiB: no"));
    weights[0] = 8 * GB + 1;
    judge();
    assert_int_equal(advice.page_size, GIB);
    (void)state;
}

static void b12_few_loads_stay_at_2_mib(void **state)
{
    question.loads_per_day = 19;
    judge();
    assert_int_equal(advice.page_size, 2 * MIB);
    assert_non_null(strstr(advice.page_why, "here 19: no"));
    question.loads_per_day = 20;
    judge();
    assert_int_equal(advice.page_size, GIB);
    question.loads_given = false;
    judge();
    assert_int_equal(advice.page_size, 2 * MIB);
    assert_non_null(strstr(advice.page_why, "--loads-per-day"));
    (void)state;
}

static void b12_tight_memory_stays_at_2_mib(void **state)
{
    facts.memory.available = 26 * GIB;
    judge();
    assert_int_equal(advice.page_size, GIB);
    facts.memory.available = 26 * GIB - 2;
    judge();
    assert_int_equal(advice.page_size, 2 * MIB);
    facts.memory.available = 100 * GIB; /* a container may have less than the machine */
    facts.memory.cgroup.limit = 20 * GIB;
    judge();
    assert_int_equal(advice.page_size, 2 * MIB);
    (void)state;
}

static void b14_a_kernel_without_1_gib_pages_gets_none(void **state)
{
    facts.pools[0] = facts.pools[1];
    facts.pool_count = 1;
    judge();
    assert_int_equal(advice.page_size, 2 * MIB);
    (void)state;
}

static void b12_the_command_sets_aside_what_is_missing(void **state)
{
    question.loads_given = false;
    weights[0] = 100 * MIB; /* 65 pages */
    facts.pools[1].total = 50;
    facts.pools[1].free = 30;
    facts.pools[1].reserved = 10;
    judge();
    assert_true(advice.fits);
    assert_int_equal(advice.command_count, 1);
    assert_string_equal(advice.commands[0],
                        "echo 95 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/"
                        "nr_hugepages");
    facts.pools[1].total = facts.pools[1].free = 65;
    facts.pools[1].reserved = 0;
    judge();
    assert_int_equal(advice.command_count, 0);
    assert_non_null(strstr(advice.remarks[0], "nothing is to be set aside"));
    (void)state;
}

static void b14_the_command_for_1_gib_comes_with_the_way_to_boot(void **state)
{
    judge();
    assert_string_equal(advice.commands[0],
                        "echo 13 | sudo tee /sys/kernel/mm/hugepages/hugepages-1048576kB/"
                        "nr_hugepages");
    assert_non_null(strstr(advice.remarks[0], "hugepagesz=1G hugepages=13"));
    (void)state;
}

static void limits_of_the_control_group_come_with_their_command(void **state)
{
    facts.pools[0].fault = (struct host_limit){.limit = 12 * GIB, .path = "/cg/hugetlb.1GB.max"};
    judge();
    assert_int_equal(advice.command_count, 2);
    assert_string_equal(advice.commands[1], "echo max | sudo tee /cg/hugetlb.1GB.max");
    (void)state;
}

static void what_does_not_fit_gets_no_command(void **state)
{
    facts.memory.available = 12 * GIB;
    judge();
    assert_false(advice.fits);
    assert_int_equal(advice.command_count, 0);
    assert_non_null(strstr(advice.remarks[0], "12.11 GiB"));
    (void)state;
}

static void pages_set_aside_count_as_free(void **state)
{
    facts.memory.available = GIB;
    facts.pools[1].total = facts.pools[1].free = 12 * 512 + 200;
    judge();
    assert_true(advice.fits);
    (void)state;
}

static void without_hugetlb_pages_transparent_ones_are_switched_on(void **state)
{
    facts.pool_count = 0;
    judge();
    assert_int_equal(advice.command_count, 0);
    strcpy(facts.thp.anonymous, "never");
    judge();
    assert_string_equal(advice.commands[0], "echo madvise | sudo tee /thp/enabled");
    (void)state;
}

static const struct advise_expectation *expectation_with(const char *words)
{
    for (size_t i = 0; i < advice.expectation_count; i++)
        if (strstr(advice.expectations[i].text, words))
            return &advice.expectations[i];
    fail_msg("nothing says '%s'", words);
    return NULL;
}

static void b12_small_models_are_promised_little(void **state)
{
    weights[0] = 500 * 1000 * 1000;
    judge();
    assert_false(expectation_with("about 10 %")->applies);
    assert_true(expectation_with("2.2x")->applies);
    weights[0]--;
    judge();
    assert_true(expectation_with("about 10 %")->applies);
    assert_false(expectation_with("2.2x")->applies);
    assert_true(expectation_with("small repeated allocations")->applies);
    assert_true(expectation_with("256 MB")->applies);
    (void)state;
}

static void models_beyond_the_address_space_are_refused(void **state)
{
    weights[0] = SIZE_MAX / 2;
    weights[1] = SIZE_MAX / 2 + 2;
    question.count = 2;
    assert_int_equal(advise_judge(&question, &facts, &advice), RAFFIA_ERROR_OVERFLOW);
    question.count = 1;
    weights[0] = SIZE_MAX - 1;
    assert_int_equal(advise_judge(&question, &facts, &advice), RAFFIA_ERROR_OVERFLOW);
    (void)state;
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(b12_a_resident_model_wants_its_weights_times_1_2),
        TEST(b12_rotating_models_want_the_sum_times_1_3),
        TEST(b12_models_that_take_turns_want_the_largest_times_1_2),
        TEST(b12_b14_pages_of_1_gib_want_all_conditions_at_once),
        TEST(b12_weights_of_8_gb_stay_at_2_mib),
        TEST(b12_few_loads_stay_at_2_mib),
        TEST(b12_tight_memory_stays_at_2_mib),
        TEST(b14_a_kernel_without_1_gib_pages_gets_none),
        TEST(b12_the_command_sets_aside_what_is_missing),
        TEST(b14_the_command_for_1_gib_comes_with_the_way_to_boot),
        TEST(limits_of_the_control_group_come_with_their_command),
        TEST(what_does_not_fit_gets_no_command),
        TEST(pages_set_aside_count_as_free),
        TEST(without_hugetlb_pages_transparent_ones_are_switched_on),
        TEST(b12_small_models_are_promised_little),
        TEST(models_beyond_the_address_space_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
