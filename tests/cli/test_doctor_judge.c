/* What the doctor makes of machines that are not there. */
#include "cli/doctor.h"
#include "support/cmocka.h"

#include <errno.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define NO_LIMIT ((struct host_limit){.limit = HOST_UNLIMITED})

static const struct doctor_features all_features = {.populate = true};

/* A machine on which all is well. */
static struct host_facts good_machine(void)
{
    struct host_facts facts = {
        .kernel_release = "6.12.0",
        .base_page_size = 4096,
        .memory = {.total = 64 * GIB, .available = 60 * GIB, .cgroup = NO_LIMIT},
        .thp = {.present = true,
                .page_size = 2 * MIB,
                .anonymous = "madvise",
                .anonymous_path = "/thp/enabled",
                .shared = "advise",
                .defrag = "madvise"},
        .pool_count = 1,
        .pools = {{.page_size = 2 * MIB,
                   .total = 100,
                   .free = 100,
                   .fault = NO_LIMIT,
                   .reservation = NO_LIMIT}},
        .node_count = 1,
        .pagemap_scan = true,
        .huge_blocks_bytes = 50 * GIB,
        .locked_memory_limit = HOST_UNLIMITED,
        .open_files_limit = 1024,
    };
    return facts;
}

static struct doctor_findings judge(const struct host_facts *facts)
{
    static struct doctor_findings findings;
    doctor_judge(facts, &all_features, &findings);
    return findings;
}

static size_t count_of(const struct doctor_findings *findings, enum doctor_level level)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++)
        count += findings->items[i].level == level;
    return count;
}

/* The only finding that is not ok; it must have a reason and a fix. */
static const struct doctor_finding *only_complaint(const struct doctor_findings *findings,
                                                   enum doctor_level level)
{
    const struct doctor_finding *found = NULL;
    for (size_t i = 0; i < findings->count; i++) {
        const struct doctor_finding *finding = &findings->items[i];
        if (finding->level == DOCTOR_OK)
            continue;
        if (found)
            fail_msg("one complaint too many: %s: %s", finding->topic, finding->what);
        found = finding;
    }
    assert_non_null(found);
    assert_int_equal(found->level, level);
    assert_true(found->why[0] && found->fix[0]);
    return found;
}

static void a_good_machine_has_no_complaints(void **state)
{
    struct host_facts facts = good_machine();
    struct doctor_findings findings = judge(&facts);
    assert_true(count_of(&findings, DOCTOR_OK) == findings.count);
    assert_true(findings.count > 5);
    (void)state;
}

static void memory_that_is_not_known_is_not_called_none(void **state)
{
    struct host_facts facts = good_machine();
    facts.memory.total = facts.memory.available = HOST_UNLIMITED;
    struct doctor_findings findings = judge(&facts);
    assert_string_equal(findings.items[0].topic, "memory");
    assert_non_null(strstr(findings.items[0].what, "/proc/meminfo"));
    (void)state;
}

static void an_empty_pool_comes_with_the_command_that_fills_it(void **state)
{
    struct host_facts facts = good_machine();
    facts.pools[0].total = facts.pools[0].free = 0;
    struct doctor_findings findings = judge(&facts);
    const struct doctor_finding *finding = only_complaint(&findings, DOCTOR_PROBLEM);
    /* 8 % of 64 GiB in pages of 2 MiB. */
    assert_string_equal(finding->fix, "echo 2621 | sudo tee "
                                      "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    assert_non_null(strstr(finding->why, "the 0 pages there are and 2621 more: 8 % of the memory"));
    (void)state;
}

static void a_pool_in_use_is_made_larger_and_the_sum_explained(void **state)
{
    struct host_facts facts = good_machine();
    facts.pools[0].total = 10;
    facts.pools[0].free = 0;
    facts.memory.total = HOST_UNLIMITED;
    struct doctor_findings findings = judge(&facts);
    const struct doctor_finding *finding = only_complaint(&findings, DOCTOR_PROBLEM);
    /* 8 % of 2 GiB in pages of 2 MiB. */
    assert_non_null(strstr(finding->fix, "echo 91 |"));
    assert_non_null(strstr(finding->why, "the 10 pages there are and 81 more: 8 % of 2 GiB, as the "
                                         "memory is unknown"));
    (void)state;
}

static void promised_pages_do_not_count_as_free(void **state)
{
    struct host_facts facts = good_machine();
    facts.pools[0].reserved = 100;
    struct doctor_findings findings = judge(&facts);
    assert_non_null(strstr(only_complaint(&findings, DOCTOR_PROBLEM)->why, "promised"));
    facts.pools[0].overcommit = 1;
    findings = judge(&facts);
    assert_int_equal(count_of(&findings, DOCTOR_PROBLEM), 0);
    (void)state;
}

static void no_gigantic_pages_is_no_problem(void **state)
{
    struct host_facts facts = good_machine();
    facts.pools[facts.pool_count++] =
        (struct host_hugetlb_pool){.page_size = GIB, .fault = NO_LIMIT, .reservation = NO_LIMIT};
    struct doctor_findings findings = judge(&facts);
    assert_true(count_of(&findings, DOCTOR_OK) == findings.count);
    (void)state;
}

static void a_control_group_without_pages_is_named(void **state)
{
    struct host_facts facts = good_machine();
    facts.pools[0].fault = (struct host_limit){.limit = 0, .path = "/cg/hugetlb.2MB.max"};
    struct doctor_findings findings = judge(&facts);
    const struct doctor_finding *finding = only_complaint(&findings, DOCTOR_PROBLEM);
    assert_string_equal(finding->fix, "echo max | sudo tee /cg/hugetlb.2MB.max");
    (void)state;
}

static void a_limit_on_touching_alone_is_a_trap(void **state)
{
    struct host_facts facts = good_machine();
    facts.pools[0].fault = (struct host_limit){.limit = 8 * MIB, .path = "/cg/max"};
    struct doctor_findings findings = judge(&facts);
    assert_non_null(strstr(only_complaint(&findings, DOCTOR_WARNING)->why, "SIGBUS"));
    facts.pools[0].reservation = facts.pools[0].fault;
    findings = judge(&facts);
    assert_int_equal(count_of(&findings, DOCTOR_WARNING), 0);
    (void)state;
}

static void a_node_without_pages_is_named(void **state)
{
    struct host_facts facts = good_machine();
    facts.pools[0].node_count = 2;
    facts.pools[0].nodes[0] = (struct host_node_pages){.node = 0, .total = 100, .free = 100};
    facts.pools[0].nodes[1] = (struct host_node_pages){.node = 1};
    struct doctor_findings findings = judge(&facts);
    const struct doctor_finding *finding = only_complaint(&findings, DOCTOR_WARNING);
    assert_non_null(strstr(finding->fix, "/node1/hugepages/hugepages-2048kB/nr_hugepages"));
    (void)state;
}

static void transparent_pages_that_are_off_are_a_problem(void **state)
{
    struct host_facts facts = good_machine();
    strcpy(facts.thp.anonymous, "never");
    struct doctor_findings findings = judge(&facts);
    assert_string_equal(only_complaint(&findings, DOCTOR_PROBLEM)->fix,
                        "echo madvise | sudo tee /thp/enabled");
    facts = good_machine();
    facts.thp.process_disabled = true;
    findings = judge(&facts);
    assert_non_null(strstr(only_complaint(&findings, DOCTOR_PROBLEM)->what, "PR_SET_THP_DISABLE"));
    (void)state;
}

static void memory_in_pieces_is_noticed(void **state)
{
    struct host_facts facts = good_machine();
    facts.huge_blocks_bytes = GIB;
    struct doctor_findings findings = judge(&facts);
    assert_string_equal(only_complaint(&findings, DOCTOR_WARNING)->topic, "fragmentation");
    (void)state;
}

static void a_tight_memory_limit_is_named(void **state)
{
    struct host_facts facts = good_machine();
    facts.memory.cgroup =
        (struct host_limit){.limit = 4 * GIB, .usage = GIB, .path = "/cg/memory.max"};
    struct doctor_findings findings = judge(&facts);
    assert_string_equal(only_complaint(&findings, DOCTOR_WARNING)->fix,
                        "echo max | sudo tee /cg/memory.max");
    (void)state;
}

static void an_old_kernel_is_told_what_it_lacks(void **state)
{
    struct host_facts facts = good_machine();
    struct doctor_features none = {.cachestat_error = ENOSYS};
    struct doctor_findings findings;
    facts.pagemap_scan = false;
    doctor_judge(&facts, &none, &findings);
    assert_int_equal(count_of(&findings, DOCTOR_WARNING), 3);
    (void)state;
}

static void a_call_that_is_refused_is_not_called_missing(void **state)
{
    (void)state;
    const struct host_facts facts = good_machine();
    struct doctor_features features = all_features;
    struct doctor_findings findings;
    features.cachestat_error = EPERM;
    doctor_judge(&facts, &features, &findings);
    const struct doctor_finding *finding = only_complaint(&findings, DOCTOR_WARNING);
    assert_non_null(strstr(finding->fix, "refused"));
    assert_null(strstr(finding->fix, "Linux"));
}

static void the_longest_paths_fit(void **state)
{
    struct host_facts facts = good_machine();
    struct host_limit *limits[] = {&facts.memory.cgroup, &facts.pools[0].fault};
    for (size_t i = 0; i < 2; i++) {
        limits[i]->limit = 0;
        memset(limits[i]->path, 'x', HOST_PATH_MAX - 1);
        limits[i]->path[HOST_PATH_MAX - 1] = '\0';
    }
    struct doctor_findings findings = judge(&facts);
    size_t whole = 0;
    for (size_t i = 0; i < findings.count; i++)
        whole += strstr(findings.items[i].fix, limits[0]->path) != NULL;
    assert_int_equal(whole, 2);
    (void)state;
}

static void nothing_known_is_nothing_to_complain_of_but_pages(void **state)
{
    struct host_facts facts = {
        .memory = {.total = HOST_UNLIMITED, .available = HOST_UNLIMITED, .cgroup = NO_LIMIT},
        .node_count = 1,
        .pagemap_scan = true,
        .locked_memory_limit = HOST_UNLIMITED,
    };
    struct doctor_findings findings = judge(&facts);
    assert_int_equal(count_of(&findings, DOCTOR_WARNING), 2); /* no hugetlb, no transparent */
    assert_int_equal(count_of(&findings, DOCTOR_PROBLEM), 0);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_machine_has_no_complaints),
        cmocka_unit_test(memory_that_is_not_known_is_not_called_none),
        cmocka_unit_test(an_empty_pool_comes_with_the_command_that_fills_it),
        cmocka_unit_test(a_pool_in_use_is_made_larger_and_the_sum_explained),
        cmocka_unit_test(promised_pages_do_not_count_as_free),
        cmocka_unit_test(no_gigantic_pages_is_no_problem),
        cmocka_unit_test(a_control_group_without_pages_is_named),
        cmocka_unit_test(a_limit_on_touching_alone_is_a_trap),
        cmocka_unit_test(a_node_without_pages_is_named),
        cmocka_unit_test(transparent_pages_that_are_off_are_a_problem),
        cmocka_unit_test(memory_in_pieces_is_noticed),
        cmocka_unit_test(a_tight_memory_limit_is_named),
        cmocka_unit_test(an_old_kernel_is_told_what_it_lacks),
        cmocka_unit_test(a_call_that_is_refused_is_not_called_missing),
        cmocka_unit_test(the_longest_paths_fit),
        cmocka_unit_test(nothing_known_is_nothing_to_complain_of_but_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
