/* SPEC A7, A3: copies, on a simulated device whose memory the CPU cannot touch. */
#include "copy/copy.h"
#include "copy/copy_property.h"
#include "copy/kernel.h"
#include "core/memory.h"
#include "driver/sim/sim.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"

#include <raffia/adaptors.h>
#include <raffia/config.h>
#include <raffia/pinned.h>
#include <raffia/resources.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KIB  ((size_t)1 << 10)
#define MIB  ((size_t)1 << 20)
#define ROOM (256 * KIB)
#define SIM  "sim:0"

static const raffia_memory_resources none = {{0}, {0}};

/* A block of each kind of memory that there is. */
static unsigned char *on_device, *on_pinned, *on_pageable;
static raffia_resource *device, *pinned;

static int open_blocks(void **state)
{
    (void)state;
    const raffia_device_resource_options options = {.struct_size = sizeof options, .device = SIM};
    void *memory;
    assert_ok(sim_configure(0, &(struct sim_config){.cpu_inaccessible = true}));
    assert_ok(raffia_device_resource_create(&options, &device));
    assert_ok(raffia_pinned_host_resource_create(&options, &pinned));
    assert_ok(raffia_allocate(raffia_ref(device), NULL, ROOM, 0, &memory));
    on_device = memory;
    assert_ok(raffia_allocate(raffia_ref(pinned), NULL, ROOM, 0, &memory));
    on_pinned = memory;
    on_pageable = malloc(ROOM);
    for (size_t i = 0; i < ROOM; i++)
        on_pageable[i] = on_pinned[i] = (unsigned char)(i * 7 + i / 256);
    memset(sim_view(on_device), 0, ROOM);
    return 0;
}

static int close_blocks(void **state)
{
    (void)state;
    raffia_kernel_copy_threshold_set(0);
    raffia_copy_release_kernels();
    assert_ok(raffia_deallocate(raffia_ref(device), NULL, on_device, ROOM, 0));
    assert_ok(raffia_deallocate(raffia_ref(pinned), NULL, on_pinned, ROOM, 0));
    raffia_resource_release(device);
    raffia_resource_release(pinned);
    free(on_pageable);
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_string_equal(usage.first_misuse, "");
    assert_int_equal(usage.modules, 0);
    return 0;
}

static void wait_for_device(void)
{
    assert_ok(sim_driver.stream_wait(0, NULL));
}

struct calls {
    long launches, copies, batches;
};

static struct calls count_calls(void)
{
    return (struct calls){sim_calls("launch"), sim_calls("copy"), sim_calls("copy_batch")};
}

static void expect_calls(struct calls before, long launches, long copies, long batches)
{
    const struct calls now = count_calls();
    assert_int_equal(now.launches - before.launches, launches);
    assert_int_equal(now.copies - before.copies, copies);
    assert_int_equal(now.batches - before.batches, batches);
}

/* Copies of `bytes`, 2 * bytes apart, from a block to the device. */
static size_t spread(const unsigned char *from, size_t bytes, size_t count,
                     raffia_copy_element *copies)
{
    for (size_t i = 0; i < count; i++)
        copies[i] = (raffia_copy_element){on_device + 2 * i * bytes, from + 2 * i * bytes, bytes};
    return count;
}

static void expect_arrived(const raffia_copy_element *copies, size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(sim_view(copies[i].destination), copies[i].source, copies[i].bytes);
}

/* ---- which way ------------------------------------------------------------------------------- */

static void a7_small_copies_of_a_batch_are_one_kernel(void **state)
{
    (void)state;
    raffia_copy_element copies[100];
    const struct calls before = count_calls();
    raffia_kernel_copy_threshold_set(257);
    assert_ok(raffia_copy_batch(SIM, NULL, copies, spread(on_pinned, 256, 100, copies), none));
    wait_for_device();
    expect_arrived(copies, 100);
    expect_calls(before, 1, 0, 0);
}

static void a7_the_threshold_is_of_each_element_and_strict(void **state)
{
    (void)state;
    raffia_copy_element copies[90];
    spread(on_pinned, 512, 90, copies);
    for (size_t i = 0; i < 90; i++)
        copies[i].bytes = i % 3 == 0 ? 255 : i % 3 == 1 ? 256 : 257;
    const struct calls before = count_calls();
    raffia_kernel_copy_threshold_set(256);
    assert_ok(raffia_copy_batch(SIM, NULL, copies, 90, none));
    wait_for_device();
    expect_arrived(copies, 90);
    expect_calls(before, 1, 0, 1);
    struct copy_device on;
    size_t by_kernel;
    assert_ok(copy_device_open(SIM, &on));
    assert_ok(copy_batch_below(&on, NULL, copies, 90, 256, &none, &by_kernel));
    assert_int_equal(by_kernel, 30);
    wait_for_device();
}

static void a7_threshold_0_makes_no_kernel(void **state)
{
    (void)state;
    raffia_copy_element copies[10];
    const struct calls before = count_calls();
    const long loads = sim_calls("module_load");
    assert_int_equal(raffia_kernel_copy_threshold(), 0);
    assert_ok(raffia_copy_batch(SIM, NULL, copies, spread(on_pinned, 8, 10, copies), none));
    assert_ok(raffia_copy(SIM, NULL, on_device + KIB, on_pinned, 1));
    wait_for_device();
    expect_arrived(copies, 10);
    expect_calls(before, 0, 1, 1);
    assert_int_equal(sim_calls("module_load"), loads);
}

static void a7_pageable_memory_goes_through_the_driver(void **state)
{
    (void)state;
    raffia_copy_element copies[20];
    const struct calls before = count_calls();
    raffia_kernel_copy_threshold_set(MIB);
    assert_ok(raffia_copy_batch(SIM, NULL, copies, spread(on_pageable, 64, 20, copies), none));
    wait_for_device();
    expect_arrived(copies, 20);
    expect_calls(before, 0, 0, 1);
}

static void a7_copies_within_the_device_go_through_the_driver(void **state)
{
    (void)state;
    const struct calls before = count_calls();
    raffia_kernel_copy_threshold_set(MIB);
    assert_ok(raffia_copy(SIM, NULL, on_device, on_pinned, 100)); /* a kernel */
    assert_ok(raffia_copy(SIM, NULL, on_device + KIB, on_device, 100));
    assert_ok(raffia_copy(SIM, NULL, on_pageable, on_device + KIB, 100));
    wait_for_device();
    assert_memory_equal(on_pageable, on_pinned, 100);
    expect_calls(before, 1, 2, 0);
}

static void a7_one_copy_needs_no_table(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 4095, 4096, 4097, 100000};
    raffia_kernel_copy_threshold_set(MIB);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct calls before = count_calls();
        const long registered = sim_calls("host_register");
        memset(sim_view(on_device), 0, ROOM);
        assert_ok(raffia_copy(SIM, NULL, on_device + 3, on_pinned + 5, sizes[i]));
        wait_for_device();
        assert_memory_equal(sim_view(on_device + 3), on_pinned + 5, sizes[i]);
        assert_int_equal(*(unsigned char *)sim_view(on_device + 3 + sizes[i]), 0);
        expect_calls(before, 1, 0, 0);
        assert_int_equal(sim_calls("host_register"), registered);
    }
}

static void a7_copies_of_all_sizes_and_alignments_are_exact(void **state)
{
    (void)state;
    copy_property("a7_copies_of_all_sizes_and_alignments_are_exact", SIM, 60);
}

static void a7_a_stream_that_is_captured_gets_no_kernel(void **state)
{
    (void)state;
    raffia_copy_element copies[10];
    driver_stream stream;
    raffia_kernel_copy_threshold_set(MIB);
    assert_ok(sim_driver.stream_create(0, &stream));
    const struct calls before = count_calls();
    assert_ok(sim_stream_capture_begin(0, stream));
    assert_ok(raffia_copy_batch(SIM, stream, copies, spread(on_pinned, 64, 10, copies), none));
    assert_ok(sim_stream_capture_end(0, stream, true));
    assert_ok(sim_driver.stream_wait(0, stream));
    expect_arrived(copies, 10);
    expect_calls(before, 0, 0, 1);
    assert_ok(sim_driver.stream_destroy(0, stream));
}

static void a7_copies_are_in_the_order_of_their_stream(void **state)
{
    (void)state;
    raffia_copy_element up[10], down[10];
    driver_stream stream;
    raffia_kernel_copy_threshold_set(MIB);
    assert_ok(sim_driver.stream_create(0, &stream));
    assert_ok(sim_stream_delay(0, stream, 20000));
    spread(on_pinned, 64, 10, up);
    for (size_t i = 0; i < 10; i++)
        down[i] = (raffia_copy_element){on_pinned + ROOM / 2 + i * 64, up[i].destination, 64};
    assert_ok(sim_driver.fill(0, stream, on_device, 9, ROOM));
    assert_ok(raffia_copy_batch(SIM, stream, up, 10, none));
    assert_ok(raffia_copy_batch(SIM, stream, down, 10, none));
    assert_ok(sim_driver.stream_wait(0, stream));
    for (size_t i = 0; i < 10; i++)
        assert_memory_equal(down[i].destination, up[i].source, 64);
    assert_int_equal(*(unsigned char *)sim_view(on_device + 64), 9);
    assert_ok(raffia_stream_retire(SIM, stream));
    assert_ok(sim_driver.stream_destroy(0, stream));
}

static void a7_the_host_copies_with_memcpy(void **state)
{
    (void)state;
    char to[64] = "", from[64] = "sixty-four bytes";
    const raffia_copy_element copies[] = {{to, from, 5}, {to + 6, from + 6, 10}, {NULL, NULL, 0}};
    raffia_kernel_copy_threshold_set(MIB);
    assert_ok(raffia_copy_batch("host", NULL, copies, 3, none));
    assert_string_equal(to, "sixty");
    assert_string_equal(to + 6, "four bytes");
    assert_ok(raffia_copy("host", NULL, to, from, sizeof to));
    assert_string_equal(to, from);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_copy("host", to, to, from, 1));
}

/* ---- the table ------------------------------------------------------------------------------- */

/* A pinned resource of the process's own, in front of the one of this test, which counts. */
static raffia_resource *count_pinned(void)
{
    raffia_resource *counted;
    assert_ok(raffia_statistics_resource_create(raffia_ref(pinned), &counted));
    return counted;
}

static raffia_statistics statistics(raffia_resource *counted)
{
    raffia_statistics now;
    assert_ok(raffia_statistics_get(raffia_ref(counted), &now));
    return now;
}

static void a3_the_table_comes_from_the_temporary_resource(void **state)
{
    (void)state;
    raffia_copy_element copies[100];
    raffia_resource *counted = count_pinned();
    const struct calls before = count_calls();
    raffia_kernel_copy_threshold_set(5000);
    spread(on_pinned, 256, 100, copies);
    copies[99].bytes = 4097; /* two pieces */
    assert_ok(raffia_copy_batch(SIM, NULL, copies, 100, RAFFIA_MEMORY_RESOURCES(device, counted)));
    wait_for_device();
    expect_arrived(copies, 100);
    expect_calls(before, 1, 0, 0);
    assert_int_equal(statistics(counted).bytes.peak, 101 * sizeof(struct copy_piece));
    assert_int_equal(statistics(counted).bytes.value, 0);
    raffia_resource_release(counted);
}

/* Its memory the host cannot write, or streams of another device would be used on it. */
static void a3_a_temporary_resource_that_does_not_suit_is_passed_over(void **state)
{
    (void)state;
    raffia_copy_element copies[10];
    raffia_resource *elsewhere;
    const raffia_device_resource_options other = {.struct_size = sizeof other, .device = "sim:1"};
    assert_ok(raffia_pinned_host_resource_create(&other, &elsewhere));
    raffia_kernel_copy_threshold_set(MIB);
    raffia_resource *unfit[] = {device, elsewhere};
    for (int i = 0; i < 2; i++) {
        raffia_resource *counted;
        assert_ok(raffia_statistics_resource_create(raffia_ref(unfit[i]), &counted));
        assert_ok(raffia_copy_batch(SIM, NULL, copies, spread(on_pinned, 64, 10, copies),
                                    RAFFIA_MEMORY_RESOURCES(counted, counted)));
        wait_for_device();
        expect_arrived(copies, 10);
        assert_int_equal(statistics(counted).bytes.total, 0);
        raffia_resource_release(counted);
    }
    raffia_resource_release(elsewhere);
}

/* The pinned resource of the process is for sim:0. */
static void another_device_has_tables_of_its_own(void **state)
{
    (void)state;
    copy_property("another_device_has_tables_of_its_own", "sim:1", 10);
    struct sim_usage usage;
    sim_query(1, &usage);
    assert_int_equal(usage.modules, 1);
    assert_true(usage.registrations > 0); /* the tables' */
    raffia_copy_release_kernels();
    sim_query(1, &usage);
    assert_int_equal(usage.modules + usage.registrations + usage.misuses, 0);
}

static void without_memory_for_the_table_the_driver_copies(void **state)
{
    (void)state;
    raffia_copy_element copies[10];
    raffia_resource *limited;
    assert_ok(raffia_limiting_resource_create(raffia_ref(pinned), 1, &limited));
    const struct calls before = count_calls();
    raffia_kernel_copy_threshold_set(MIB);
    assert_ok(raffia_copy_batch(SIM, NULL, copies, spread(on_pinned, 64, 10, copies),
                                RAFFIA_MEMORY_RESOURCES(device, limited)));
    wait_for_device();
    expect_arrived(copies, 10);
    expect_calls(before, 0, 0, 1);
    raffia_resource_release(limited);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void the_kernel_is_loaded_once_and_given_back_on_request(void **state)
{
    (void)state;
    const long before = sim_calls("module_load");
    raffia_kernel_copy_threshold_set(MIB);
    for (int i = 0; i < 5; i++)
        assert_ok(raffia_copy(SIM, NULL, on_device, on_pinned, 8));
    wait_for_device();
    assert_int_equal(sim_calls("module_load") - before, 1);
    raffia_copy_release_kernels();
    raffia_copy_release_kernels();
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.modules, 0);
    assert_ok(raffia_copy(SIM, NULL, on_device, on_pinned, 8));
    wait_for_device();
    assert_int_equal(sim_calls("module_load") - before, 2);
}

static void a_kernel_that_is_refused_is_warned_of_once_and_done_without(void **state)
{
    (void)state;
    const struct calls before = count_calls();
    raffia_kernel_copy_threshold_set(MIB);
    sim_fail_next("module_load", RAFFIA_ERROR_UNSUPPORTED, RAFFIA_REASON_NONE);
    log_capture_start();
    for (int i = 0; i < 3; i++)
        assert_ok(raffia_copy(SIM, NULL, on_device, on_pinned, 80));
    log_capture_stop();
    wait_for_device();
    assert_memory_equal(sim_view(on_device), on_pinned, 80);
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_line(0), "make no use of a kernel"));
    expect_calls(before, 0, 3, 0);
}

static void *copy_much(void *argument)
{
    unsigned char *at = argument;
    raffia_copy_element copies[50];
    for (size_t i = 0; i < 50; i++)
        copies[i] = (raffia_copy_element){at + 32 * i, on_pinned + (at - on_device) + 32 * i, 30};
    for (int i = 0; i < 40; i++)
        if (raffia_copy_batch(SIM, NULL, copies, 50, none))
            return at;
    return NULL;
}

static void many_threads_copy_at_once(void **state)
{
    (void)state;
    pthread_t threads[4];
    raffia_kernel_copy_threshold_set(MIB);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, copy_much, on_device + i * 16 * KIB), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    wait_for_device();
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.modules, 1);
    for (size_t i = 0; i < 4; i++)
        assert_memory_equal(sim_view(on_device + i * 16 * KIB), on_pinned + i * 16 * KIB, 30);
}

/* ---- what can go wrong ----------------------------------------------------------------------- */

static void bad_arguments_are_found_before_anything_is_submitted(void **state)
{
    (void)state;
    raffia_copy_element copies[] = {
        {on_device, on_pinned, 8}, {on_device, NULL, 8}, {on_device, on_pinned, 8}};
    const struct calls before = count_calls();
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_copy_batch(SIM, NULL, copies, 3, none));
    assert_non_null(strstr(raffia_last_error(), "copy 1 of 8 bytes: its source"));
    copies[1] = (raffia_copy_element){NULL, on_pinned, 8};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_copy_batch(SIM, NULL, copies, 3, none));
    copies[1] = (raffia_copy_element){on_device, on_pinned, SIZE_MAX};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_copy_batch(SIM, NULL, copies, 3, none));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_copy_batch(SIM, NULL, NULL, 3, none));
    assert_status(RAFFIA_ERROR_NOT_FOUND, raffia_copy("sim:7", NULL, on_device, on_pinned, 8));
    assert_ok(raffia_copy_batch(SIM, NULL, NULL, 0, none));
    assert_ok(raffia_copy_batch(SIM, copies, NULL, 0, none)); /* is no stream */
    assert_ok(raffia_copy_batch("host", copies, NULL, 0, none));
    assert_ok(raffia_copy(SIM, NULL, NULL, NULL, 0));
    expect_calls(before, 0, 0, 0);
}

/* The blocks are the test's; what the scenario takes it gives back. */
static raffia_status copy_all_ways(void *context)
{
    (void)context;
    raffia_copy_element copies[12];
    spread(on_pinned, 256, 12, copies);
    copies[5].source = on_pageable;
    copies[6].bytes = 0;
    copies[7].bytes = 300;
    memset(sim_view(on_device), 0, ROOM);
    raffia_status status =
        raffia_copy_batch(SIM, NULL, copies, 12, RAFFIA_MEMORY_RESOURCES(device, pinned));
    raffia_status waited = sim_driver.stream_wait(0, NULL);
    if (waited)
        wait_for_device();
    if (!status)
        expect_arrived(copies, 12);
    raffia_copy_release_kernels();
    return status ? status : waited;
}

static void every_call_of_a_batch_may_fail(void **state)
{
    (void)state;
    raffia_kernel_copy_threshold_set(300);
    const raffia_log_level level = raffia_log_get_level();
    raffia_log_set_level(RAFFIA_LOG_OFF);
    raffia_resource_ref made_once;
    assert_ok(raffia_pinned_resource_get(&made_once));
    assert_true(fault_loop(copy_all_ways, NULL, 200) > 5);
    raffia_log_set_level(level);
}

/* ---- auto ------------------------------------------------------------------------------------ */

static void a7_auto_goes_by_a_measurement(void **state)
{
    (void)state;
    raffia_copy_thresholds found = {1, 1};
    raffia_copy_element copies[70];
    struct copy_device on;
    assert_ok(raffia_config_set("kernel_pinned_copy_threshold", "auto"));
    char text[16];
    assert_ok(raffia_config_get("kernel_pinned_copy_threshold", text, sizeof text));
    assert_string_equal(text, "auto");
    raffia_kernel_copy_threshold_set(RAFFIA_KERNEL_COPY_AUTO);
    assert_ok(raffia_copy_calibrate(SIM, &found));
    assert_true((found.bytes == 0) == (found.count == 0));
    assert_true(found.bytes <= 256 * KIB && found.count <= 64);
    assert_ok(copy_device_open(SIM, &on));
    assert_int_equal(copy_threshold(&on, NULL, 64), found.bytes);
    if (found.count > 1)
        assert_int_equal(copy_threshold(&on, NULL, found.count - 1), 0);
    /* Each number goes by the power of two that is not above it; none does worse than fewer. */
    for (size_t count = 1, last = 0; count <= 200; count++) {
        const size_t limit = copy_threshold(&on, NULL, count);
        const bool is_power = (count & (count - 1)) == 0 && count <= 64;
        assert_true(limit >= last && (is_power || limit == last));
        last = limit;
    }
    assert_ok(raffia_copy_batch(SIM, NULL, copies, spread(on_pinned, 64, 70, copies), none));
    wait_for_device();
    expect_arrived(copies, 70);
    assert_ok(raffia_config_set("kernel_pinned_copy_threshold", NULL));
    assert_status(RAFFIA_ERROR_UNSUPPORTED, raffia_copy_calibrate("host", &found));
}

/* sim:1 has not been measured yet. */
static void a7_auto_measures_when_it_is_first_needed(void **state)
{
    (void)state;
    struct copy_device on;
    driver_stream stream;
    raffia_kernel_copy_threshold_set(RAFFIA_KERNEL_COPY_AUTO);
    assert_ok(copy_device_open("sim:1", &on));
    assert_ok(sim_driver.stream_create(1, &stream));
    assert_ok(sim_stream_capture_begin(1, stream));
    const long launches = sim_calls("launch");
    assert_int_equal(copy_threshold(&on, stream, 64), 0); /* not now */
    assert_int_equal(sim_calls("launch"), launches);
    assert_ok(sim_stream_capture_end(1, stream, false));
    assert_ok(sim_driver.stream_destroy(1, stream));
    (void)copy_threshold(&on, NULL, 64);
    const long measured = sim_calls("copy_batch");
    (void)copy_threshold(&on, NULL, 64);
    assert_int_equal(sim_calls("copy_batch"), measured);
    struct sim_usage usage;
    sim_query(1, &usage);
    assert_int_equal(usage.blocks + usage.streams + usage.misuses, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_blocks, close_blocks)

int main(void)
{
    setenv("RAFFIA_DRIVER", "sim", 1);
    /* No pool: a failure would make it give idle memory back, which looks like a leak the wrong way
     * round. test_copy_cuda.c has one. */
    setenv("RAFFIA_PINNED_POOL_MAX_SIZE", "0", 1);
    const struct CMUnitTest tests[] = {
        TEST(a7_small_copies_of_a_batch_are_one_kernel),
        TEST(a7_the_threshold_is_of_each_element_and_strict),
        TEST(a7_threshold_0_makes_no_kernel),
        TEST(a7_pageable_memory_goes_through_the_driver),
        TEST(a7_copies_within_the_device_go_through_the_driver),
        TEST(a7_one_copy_needs_no_table),
        TEST(a7_copies_of_all_sizes_and_alignments_are_exact),
        TEST(a7_a_stream_that_is_captured_gets_no_kernel),
        TEST(a7_copies_are_in_the_order_of_their_stream),
        TEST(a7_the_host_copies_with_memcpy),
        TEST(a3_the_table_comes_from_the_temporary_resource),
        TEST(a3_a_temporary_resource_that_does_not_suit_is_passed_over),
        TEST(another_device_has_tables_of_its_own),
        TEST(without_memory_for_the_table_the_driver_copies),
        TEST(the_kernel_is_loaded_once_and_given_back_on_request),
        TEST(a_kernel_that_is_refused_is_warned_of_once_and_done_without),
        TEST(many_threads_copy_at_once),
        TEST(bad_arguments_are_found_before_anything_is_submitted),
        TEST(every_call_of_a_batch_may_fail),
        TEST(a7_auto_goes_by_a_measurement),
        TEST(a7_auto_measures_when_it_is_first_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
