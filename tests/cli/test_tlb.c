/* The probe's places, and which counters are tried on which processor. */
#include "cli/tlb_counters.h"
#include "cli/tlb_probe.h"
#include "support/cmocka.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define PAGES 1000

static unsigned char *memory;

static int make_memory(void **state)
{
    (void)state;
    memory = aligned_alloc(PROBE_PAGE, PAGES * PROBE_PAGE);
    if (!memory)
        return -1;
    memset(memory, 0, PAGES * PROBE_PAGE);
    return 0;
}

static int free_memory(void **state)
{
    (void)state;
    free(memory);
    return 0;
}

static void b11_the_line_of_a_page_varies_and_stays_inside(void **state)
{
    bool seen[64] = {false};
    for (size_t page = 0; page < PAGES; page++) {
        size_t offset = probe_offset(page);
        assert_int_equal(offset / PROBE_PAGE, page);
        assert_int_equal(offset % 64, 0);
        seen[offset % PROBE_PAGE / 64] = true;
    }
    for (size_t line = 0; line < 64; line++)
        assert_true(seen[line]);
    (void)state;
}

static void b11_the_ring_goes_through_every_page_once(void **state)
{
    static uint32_t order[PAGES];
    static const size_t counts[] = {1, 2, 3, PAGES};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        bool seen[PAGES] = {false};
        size_t count = counts[i], offset = probe_offset(0);
        probe_chain_make(memory, count, order);
        for (size_t step = 0; step < count; step++) {
            size_t page = offset / PROBE_PAGE;
            assert_true(page < count && !seen[page]);
            seen[page] = true;
            probe_chase(memory, &offset, 1, 1);
        }
        assert_int_equal(offset, probe_offset(0));
        probe_chase(memory, &offset, 1, 3 * count);
        assert_int_equal(offset, probe_offset(0));
    }
    (void)state;
}

static void b11_independent_reads_reach_most_pages(void **state)
{
    for (size_t page = 0; page < PAGES; page++) {
        void *at = memory + probe_offset(page);
        *(uint64_t *)at = 1;
    }
    /* Each read finds the word of its page. */
    assert_int_equal(probe_read(memory, PAGES, 5000, 1), 5000);
    size_t reached = 0;
    for (size_t page = 0; page < PAGES; page++) {
        void *at = memory + probe_offset(page);
        *(uint64_t *)at = 0;
        reached += probe_read(memory, PAGES, 5000, 1) < 5000;
        *(uint64_t *)at = 1;
    }
    assert_true(reached > PAGES * 95 / 100);
    (void)state;
}

static void b11_chains_side_by_side_go_where_each_would_alone(void **state)
{
    static uint32_t order[PAGES];
    probe_chain_make(memory, PAGES, order);
    for (unsigned count = 1; count <= PROBE_CHAINS_MAX; count *= 2) {
        size_t places[PROBE_CHAINS_MAX], alone[PROBE_CHAINS_MAX];
        probe_chain_starts(order, PAGES, places, count);
        memcpy(alone, places, sizeof places);
        /* So many steps from one start to the next: they are spread along the ring. */
        for (unsigned chain = 0; chain + 1 < count; chain++) {
            size_t place = places[chain];
            probe_chase(memory, &place, 1,
                        PAGES * (chain + 1) / count - (size_t)PAGES * chain / count);
            assert_int_equal(place, places[chain + 1]);
        }
        probe_chase(memory, places, count, 77);
        for (unsigned chain = 0; chain < count; chain++) {
            probe_chase(memory, &alone[chain], 1, 77);
            assert_int_equal(places[chain], alone[chain]);
        }
    }
    (void)state;
}

static void b11_the_spread_has_a_page_of_each_part_and_reads_them_in_turn(void **state)
{
    static const size_t counts[] = {1, 2, 7, PAGES / 3, PAGES};
    static uint32_t chosen[PAGES];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const size_t count = counts[i];
        bool seen[PAGES] = {false};
        uint64_t sum = 0;
        probe_spread_make(chosen, count, PAGES);
        for (size_t page = 0; page < PAGES; page++)
            *(uint64_t *)(void *)(memory + probe_offset(page)) = page;
        for (size_t j = 0; j < count; j++) {
            size_t part = 0;
            while (PAGES * (part + 1) / count <= chosen[j])
                part++;
            assert_true(part < count && !seen[part]);
            seen[part] = true;
            sum += chosen[j];
        }
        assert_int_equal(probe_read_chosen(memory, chosen, count, 3 * count), 3 * sum);
    }
    (void)state;
}

static size_t events_of(const char *vendor, unsigned family, unsigned model,
                        struct tlb_event events[TLB_COUNTERS_MAX])
{
    struct tlb_processor processor = {.family = family, .model = model};
    strncpy(processor.vendor, vendor, sizeof processor.vendor - 1);
    return tlb_events(&processor, events);
}

static void b11_events_are_those_of_the_processor(void **state)
{
    struct tlb_event events[TLB_COUNTERS_MAX];
    assert_int_equal(events_of("", 0, 0, events), 1);
    assert_int_equal(events[0].type, PERF_TYPE_HW_CACHE);
    assert_int_equal(events[0].config,
                     PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
    assert_int_equal(events_of("AuthenticAMD", 0x17, 0x31, events), 3);
    assert_int_equal(events[1].config, 0xff45);
    assert_int_equal(events[2].config, 0xf045);
    assert_true(events[2].walks && !events[1].walks);
    assert_int_equal(events_of("AuthenticAMD", 0x15, 1, events), 1);
    assert_int_equal(events_of("GenuineIntel", 6, 0x55, events), 2); /* Skylake server */
    assert_int_equal(events[1].config, 0x0e08);
    assert_int_equal(events_of("GenuineIntel", 6, 0x8f, events), 2); /* Sapphire Rapids */
    assert_int_equal(events[1].config, 0x0e12);
    assert_int_equal(events_of("GenuineIntel", 6, 0x5c, events), 1); /* a small core */
    (void)state;
}

static void b11_a_missing_counter_and_a_forbidden_one_are_told_apart(void **state)
{
    char why[TLB_WHY_MAX];
    assert_non_null(strstr(tlb_counters_why(ENOENT, why), "virtual machine"));
    assert_null(strstr(why, "perf_event_paranoid"));
    assert_non_null(strstr(tlb_counters_why(EACCES, why), "perf_event_paranoid"));
    assert_non_null(strstr(tlb_counters_why(EPERM, why), "seccomp"));
    assert_non_null(strstr(tlb_counters_why(EMFILE, why), strerror(EMFILE)));
    (void)state;
}

static void b11_there_are_counters_or_a_reason_why_not(void **state)
{
    struct tlb_counters counters;
    double counts[TLB_COUNTERS_MAX];
    tlb_counters_open(&counters);
    assert_true(counters.count > 0 || counters.why[0]);
    tlb_counters_start(&counters);
    tlb_counters_stop(&counters, counts);
    for (size_t i = 0; i < TLB_COUNTERS_MAX; i++)
        assert_true(counts[i] >= 0 && (i < counters.count || counts[i] <= 0));
    tlb_counters_close(&counters);
    assert_int_equal(counters.count, 0);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(b11_the_line_of_a_page_varies_and_stays_inside),
        cmocka_unit_test(b11_the_ring_goes_through_every_page_once),
        cmocka_unit_test(b11_independent_reads_reach_most_pages),
        cmocka_unit_test(b11_chains_side_by_side_go_where_each_would_alone),
        cmocka_unit_test(b11_the_spread_has_a_page_of_each_part_and_reads_them_in_turn),
        cmocka_unit_test(b11_events_are_those_of_the_processor),
        cmocka_unit_test(b11_a_missing_counter_and_a_forbidden_one_are_told_apart),
        cmocka_unit_test(b11_there_are_counters_or_a_reason_why_not),
    };
    return cmocka_run_group_tests(tests, make_memory, free_memory);
}
