/* The generated loads: that they are the ones that other allocators were measured with. */
#include "cli/workload.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

/* Of operations in order, each as its block and its size, 0 for a free: FNV-1a over 64-bit words.
 * The expected ones were computed by another generator of the same loads. */
static uint64_t fingerprint(const struct trace *trace)
{
    uint64_t print = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < trace->count; i++) {
        const uint64_t words[] = {trace->ops[i].block,
                                  trace->ops[i].frees ? 0 : trace->ops[i].bytes};
        for (size_t word = 0; word < 2; word++)
            print = (print ^ words[word]) * UINT64_C(0x100000001b3);
    }
    return print;
}

static const struct expected {
    const char *name;
    unsigned thread;
    size_t count;
    uint32_t blocks;
    uint64_t fingerprint;
} loads[] = {
    {"pairs", 0, 20000, 10000, UINT64_C(0x271817b889a74265)},
    {"lifo1", 0, 2000000, 1000000, UINT64_C(0xf99a05d386070025)},
    {"lifo64", 0, 2000000, 1000000, UINT64_C(0x8892594b05c67f25)},
    {"mix80", 0, 1000000, 500327, UINT64_C(0xe46d7191c27d0393)},
    {"small80", 0, 1000000, 515847, UINT64_C(0x642cacc70e83756b)},
    {"tiny80", 0, 1000000, 513374, UINT64_C(0x4db038d5b7cb0c8d)},
    {"mt1", 0, 500000, 254569, UINT64_C(0x51caf56c492f8732)},
    {"mt2", 0, 500000, 252373, UINT64_C(0x9a4aa9d330d1382d)},
    {"mt2", 1, 500000, 252246, UINT64_C(0xdd4c9f3eb87ba27b)},
};

static void the_loads_are_the_known_ones(void **state)
{
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++) {
        struct trace trace;
        assert_non_null(workload_find(loads[i].name));
        assert_ok(workload_make(workload_find(loads[i].name), loads[i].thread, &trace));
        assert_int_equal(trace.count, loads[i].count);
        assert_int_equal(trace.blocks, loads[i].blocks);
        assert_true(fingerprint(&trace) == loads[i].fingerprint);
        trace_clear(&trace);
    }
    assert_null(workload_find("pair"));
    (void)state;
}

/* What the maker says of a trace is what its operations say. */
static void their_summaries_agree_with_their_operations(void **state)
{
    for (size_t i = 0; i < workload_count; i++) {
        struct trace trace;
        uint64_t live = 0, peak = 0, asked = 0;
        size_t blocks = 0, most = 0;
        assert_ok(workload_make(&workloads[i], 0, &trace));
        for (size_t op = 0; op < trace.count; op++) {
            const struct trace_op *at = &trace.ops[op];
            live = at->frees ? live - at->bytes : live + at->bytes;
            asked += at->frees ? 0 : at->bytes;
            blocks = at->frees ? blocks - 1 : blocks + 1;
            most = blocks > most ? blocks : most;
            if (live > peak)
                peak = live;
        }
        assert_int_equal(trace.peak_bytes, peak);
        assert_int_equal(trace.asked_bytes, asked);
        assert_int_equal(trace.live_max, most);
        assert_int_equal(trace.live_end, blocks);
        assert_true(peak <= WORKLOAD_RANGE_BYTES);
        trace_clear(&trace);
    }
    (void)state;
}

static void loads_with_threads_come_last(void **state)
{
    for (size_t i = 1; i < workload_count; i++)
        assert_true(workloads[i - 1].threads <= workloads[i].threads);
    (void)state;
}

static raffia_status make_and_clear(void *context)
{
    struct trace trace;
    raffia_status status = workload_make(context, 0, &trace);
    if (!status)
        trace_clear(&trace);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    struct workload pairs = *workload_find("pairs"), mix = *workload_find("mt1");
    assert_int_equal(fault_loop(make_and_clear, &pairs, 10), 1);
    assert_int_equal(fault_loop(make_and_clear, &mix, 10), 2);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loads_are_the_known_ones),
        cmocka_unit_test(their_summaries_agree_with_their_operations),
        cmocka_unit_test(loads_with_threads_come_last),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
