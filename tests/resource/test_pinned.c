/* SPEC A5, A6, A8, A9: the pinned resource and its settings. Each test is a process of its own,
 * since the default resource is built once. */
#include "core/checked.h"
#include "driver/driver.h"
#include "driver/fake_cuda/fake_cuda.h"
#include "driver/sim/sim.h"
#include "resource/makers.h"
#include "resource/pinned_default.h"
#include "space/space.h"
#include "support/huge_requests.h"
#include "support/log_capture.h"

#include <raffia/config.h>
#include <raffia/pinned.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const variables[] = {
    "RAFFIA_PINNED_POOL_SIZE",
    "RAFFIA_PINNED_POOL_MAX_SIZE",
    "RAFFIA_KERNEL_PINNED_COPY_THRESHOLD",
    "RAFFIA_ALLOCATE_HOST_AS_PINNED_THRESHOLD",
    "LIBCUDF_PINNED_POOL_SIZE",
    "LIBCUDF_PINNED_POOL_MAX_SIZE",
    "LIBCUDF_KERNEL_PINNED_COPY_THRESHOLD",
    "LIBCUDF_ALLOCATE_HOST_AS_PINNED_THRESHOLD",
};

/* Ends the child with the line that did not hold. */
#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #what, raffia_last_error());           \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* Runs the scenario in a child with fresh settings, and on the host. */
static void in_a_child(void (*scenario)(void))
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
            unsetenv(variables[i]);
        setenv("RAFFIA_DRIVER", "host", 1);
        log_capture_start_at(RAFFIA_LOG_INFO);
        scenario();
        _exit(0);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static raffia_pinned_info query(void)
{
    raffia_pinned_info info;
    EXPECT(!raffia_pinned_query(&info));
    return info;
}

static bool logged(const char *text)
{
    for (size_t i = 0; i < LOG_CAPTURE_LINES; i++)
        if (strstr(log_capture_line(i), text))
            return true;
    return false;
}

static bool configure(size_t pool_size)
{
    bool configured = false;
    EXPECT(!raffia_pinned_config_default(
        &(raffia_pinned_options){.struct_size = sizeof(raffia_pinned_options),
                                 .pool_size = pool_size},
        &configured));
    return configured;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void default_sizes(void)
{
    raffia_device_info device;
    EXPECT(!raffia_device_query(NULL, &device));
    const size_t share = device.total_bytes / 200;
    const size_t initial = ((share < 64 * MIB ? share : 64 * MIB) + 255) / 256 * 256;
    EXPECT(configure(0));
    EXPECT(query().initial_bytes == initial);
    EXPECT(query().maximum_bytes == ((share < 64 * MIB ? share : 64 * MIB) * 16 + 255) / 256 * 256);
    EXPECT(logged("default pinned resource"));
}

/* Looked at, not taken. */
static void large_sizes(void)
{
    struct pinned_sizes sizes;
    struct space *space;
    setenv("RAFFIA_PINNED_POOL_SIZE", "100GiB", 1);
    EXPECT(!pinned_sizes_find(0, &sizes));
    EXPECT(sizes.initial == 100 * GIB && sizes.maximum >= 1000 * GIB);
    const struct space_options options = {
        .range_bytes = core_align_up_unchecked(sizes.maximum, GIB), .granule = 256};
    EXPECT(!space_create(&options, &space));
    space_destroy(space);
}

static void option_sizes(void)
{
    EXPECT(configure(3 * MIB + 1));
    EXPECT(query().initial_bytes == 3 * MIB + 256);
    EXPECT(query().maximum_bytes == (3 * MIB + 1) * 16 + 240); /* of the size before rounding */
    EXPECT(!configure(5 * MIB));
    EXPECT(query().initial_bytes == 3 * MIB + 256);
}

static void environment_beats_option(void)
{
    setenv("LIBCUDF_PINNED_POOL_SIZE", "2097152", 1);
    setenv("LIBCUDF_PINNED_POOL_MAX_SIZE", "4MiB", 1);
    EXPECT(configure(32 * MIB)); /* built by this call, though not of its size */
    EXPECT(query().initial_bytes == 2 * MIB);
    EXPECT(query().maximum_bytes == 4 * MIB);
}

static void our_name_beats_libcudfs(void)
{
    setenv("LIBCUDF_PINNED_POOL_SIZE", "2MiB", 1);
    setenv("RAFFIA_PINNED_POOL_SIZE", "6MiB", 1);
    EXPECT(query().initial_bytes == 6 * MIB);
    EXPECT(query().maximum_bytes == 96 * MIB);
}

static void a_bad_value_is_warned_of(void)
{
    setenv("LIBCUDF_PINNED_POOL_SIZE", "lots", 1); /* libcudf: 0, and the pool is disabled */
    EXPECT(configure(8 * MIB));
    EXPECT(query().initial_bytes == 8 * MIB);
    EXPECT(logged("LIBCUDF_PINNED_POOL_SIZE is ignored"));
}

static void a_negative_value_is_warned_of(void)
{
    setenv("RAFFIA_PINNED_POOL_SIZE", "-1", 1); /* libcudf: wraps, and the pool is disabled */
    EXPECT(configure(8 * MIB));
    EXPECT(query().initial_bytes == 8 * MIB);
    EXPECT(logged("RAFFIA_PINNED_POOL_SIZE is ignored"));
}

static void a_limit_below_the_size_is_warned_of(void)
{
    setenv("RAFFIA_PINNED_POOL_MAX_SIZE", "1MiB", 1); /* libcudf: throws */
    EXPECT(configure(2 * MIB));
    EXPECT(query().maximum_bytes == 32 * MIB);
    EXPECT(logged("pinned_pool_max_size is ignored"));
}

static void a5_default_sizes_are_libcudfs(void **state)
{
    (void)state;
    in_a_child(default_sizes);
    in_a_child(large_sizes);
    in_a_child(option_sizes);
}

static void a9_the_environment_beats_the_option_here(void **state)
{
    (void)state;
    in_a_child(environment_beats_option);
    in_a_child(our_name_beats_libcudfs);
}

static void a9_bad_values_are_warned_of_and_never_a_silent_0(void **state)
{
    (void)state;
    in_a_child(a_bad_value_is_warned_of);
    in_a_child(a_negative_value_is_warned_of);
    in_a_child(a_limit_below_the_size_is_warned_of);
}

/* ---- get, set, who built it ----------------------------------------------------------------- */

static void set_forces_the_default(void)
{
    raffia_resource *device = must_make_device("host"), *previous, *again;
    raffia_resource_ref ref;
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    EXPECT(!raffia_pinned_resource_set(device, &previous));
    EXPECT(strstr(raffia_resource_describe(raffia_ref(previous), line, sizeof line), "pinned=no"));
    EXPECT(!configure(MIB)); /* too late */
    EXPECT(!raffia_pinned_resource_get(&ref));
    EXPECT(ref.context == raffia_ref(device).context);
    EXPECT(!raffia_pinned_resource_set(previous, &again));
    EXPECT(again == device);
    EXPECT(!raffia_pinned_resource_get(&ref));
    EXPECT(ref.context == raffia_ref(previous).context);
    raffia_resource_release(again);
    raffia_resource_release(previous);
    raffia_resource_release(device);
}

static void set_refuses(void)
{
    raffia_resource *host;
    const raffia_device_resource_options options = {.struct_size = sizeof options,
                                                    .device = "sim:0"};
    EXPECT(!raffia_host_resource_create(&options, &host)); /* not reached by that device */
    EXPECT(raffia_pinned_resource_set(host, NULL) == RAFFIA_ERROR_INVALID_ARGUMENT);
    EXPECT(strstr(raffia_last_error(), "both"));
    EXPECT(raffia_pinned_resource_set(NULL, NULL) == RAFFIA_ERROR_INVALID_ARGUMENT);
    raffia_resource_release(host);
    EXPECT(configure(MIB)); /* a refused call built nothing */
    const raffia_pinned_info info = query();
    EXPECT(!info.pinned && strcmp(info.device, "host") == 0);
}

static atomic_int builders;

static void *touch_first(void *argument)
{
    (void)argument;
    raffia_resource_ref ref;
    void *block;
    if (configure(4 * MIB + 100))
        atomic_fetch_add(&builders, 1);
    EXPECT(!raffia_pinned_resource_get(&ref));
    EXPECT(!raffia_allocate(ref, NULL, 1000, 0, &block));
    memset(block, 1, 1000);
    EXPECT(!raffia_deallocate(ref, NULL, block, 1000, 0));
    return NULL;
}

static void many_touch_first(void)
{
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        EXPECT(!pthread_create(&threads[i], NULL, touch_first, NULL));
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    EXPECT(builders == 1);
}

static void failed_then_tried_again(void)
{
    /* 16 times that are more addresses than there are, so that not a page of it is taken. */
    setenv("RAFFIA_PINNED_POOL_SIZE", "10TiB", 1);
    raffia_resource_ref ref;
    EXPECT(raffia_pinned_resource_get(&ref));
    unsetenv("RAFFIA_PINNED_POOL_SIZE");
    EXPECT(configure(2 * MIB));
}

static void a5_set_returns_the_previous_one_and_checks(void **state)
{
    (void)state;
    in_a_child(set_forces_the_default);
    in_a_child(set_refuses);
}

static void a5_only_one_of_many_first_calls_built_it(void **state)
{
    (void)state;
    in_a_child(many_touch_first);
    in_a_child(failed_then_tried_again);
}

/* ---- pinning --------------------------------------------------------------------------------- */

static raffia_resource *make_pinned(const char *device)
{
    raffia_resource *resource;
    EXPECT(!raffia_pinned_host_resource_create(
        &(raffia_device_resource_options){.struct_size = sizeof(raffia_device_resource_options),
                                          .device = device},
        &resource));
    return resource;
}

static size_t pinned_bytes(const char *device)
{
    raffia_pinned_usage usage;
    EXPECT(!raffia_device_query_pinned(device, &usage));
    return usage.registered_bytes + usage.driver_allocated_bytes;
}

/* The default resource and those that are asked for pin, for the default device or a named one. */
static void check_pinned_for(const char *first, const char *second)
{
    char name[RAFFIA_DEVICE_NAME_MAX], expected[RAFFIA_DEVICE_NAME_MAX];
    raffia_resource_ref ref;
    void *block;
    EXPECT(configure(2 * MIB));
    snprintf(expected, sizeof expected, "pinned:%s", first);
    const raffia_pinned_info info = query();
    EXPECT(info.pinned && strcmp(info.device, expected) == 0);
    EXPECT(logged("pinned=yes"));
    EXPECT(pinned_bytes(first) >= 2 * MIB);
    EXPECT(!raffia_pinned_resource_get(&ref));
    EXPECT(!raffia_allocate(ref, NULL, MIB, 0, &block));
    memset(block, 1, MIB);
    EXPECT(!raffia_deallocate(ref, NULL, block, MIB, 0));
    const char *const names[] = {NULL, first, expected, second};
    for (int i = 0; i < 4; i++) {
        raffia_resource *resource = make_pinned(names[i]);
        snprintf(expected, sizeof expected, "pinned:%s", i == 3 ? second : first);
        EXPECT(!raffia_resource_device(raffia_ref(resource), name) && !strcmp(name, expected));
        const size_t before = pinned_bytes(expected);
        EXPECT(!raffia_allocate(raffia_ref(resource), NULL, MIB, 0, &block));
        memset(block, 1, MIB);
        EXPECT(pinned_bytes(expected) >= before + MIB);
        EXPECT(!raffia_deallocate(raffia_ref(resource), NULL, block, MIB, 0));
        EXPECT(pinned_bytes(expected) == before);
        raffia_resource_release(resource);
        snprintf(expected, sizeof expected, "pinned:%s", first);
    }
}

static void pinned_for_sim(void)
{
    setenv("RAFFIA_DRIVER", "sim", 1);
    check_pinned_for("sim:0", "sim:1");
    struct sim_usage usage;
    sim_query(0, &usage);
    EXPECT(usage.registered_bytes + usage.host_block_bytes >= 2 * MIB && usage.misuses == 0);
}

static void pinned_for_cuda(void)
{
    setenv("RAFFIA_DRIVER", "cuda", 1);
    setenv("RAFFIA_CUDA_LIBRARY", FAKE_CUDA_LIBRARY, 1);
    fake_cuda_reset(&(struct fake_cuda_config){.devices = 2});
    check_pinned_for("cuda:0", "cuda:1");
}

/* Where no GPU is, that is said. */
static void pinned_for_nobody(void)
{
    raffia_resource *resource;
    EXPECT(raffia_pinned_host_resource_create(NULL, &resource) == RAFFIA_ERROR_UNSUPPORTED);
    EXPECT(strstr(raffia_last_error(), "'host'"));
}

static void a5_pinned_memory_is_pinned_for_the_default_device(void **state)
{
    (void)state;
    in_a_child(pinned_for_sim);
    in_a_child(pinned_for_cuda);
    in_a_child(pinned_for_nobody);
}

/* ---- exhaustion ----------------------------------------------------------------------------- */

static void exhaust(void)
{
    raffia_resource_ref ref;
    void *blocks[8];
    setenv("RAFFIA_PINNED_POOL_MAX_SIZE", "4MiB", 1);
    EXPECT(configure(2 * MIB));
    EXPECT(!raffia_pinned_resource_get(&ref));
    for (int i = 0; i < 8; i++) {
        EXPECT(!raffia_allocate(ref, NULL, MIB, 0, &blocks[i]));
        memset(blocks[i], i, MIB);
    }
    EXPECT(query().fallbacks == 4);
    EXPECT(logged("so that a block is made for it"));
    for (int i = 0; i < 8; i++)
        EXPECT(((char *)blocks[i])[MIB - 1] == i);
    /* In the order that mixes both kinds, and each only once. */
    for (int i = 0; i < 8; i++) {
        void *block = blocks[(i * 3) % 8];
        EXPECT(!raffia_deallocate(ref, NULL, block, MIB, 0));
        EXPECT(raffia_deallocate(ref, NULL, block, MIB, 0) == RAFFIA_ERROR_BAD_ADDRESS);
    }
    /* What is beyond the whole pool, and beyond everything. */
    EXPECT(!raffia_allocate(ref, NULL, 16 * MIB, 0, &blocks[0]));
    EXPECT(!raffia_deallocate(ref, NULL, blocks[0], 16 * MIB, 0));
    EXPECT(raffia_allocate(ref, NULL, PIB, 0, &blocks[0]) == RAFFIA_ERROR_OUT_OF_MEMORY);
    EXPECT(!raffia_allocate(ref, NULL, 0, 0, &blocks[0]) && !blocks[0]);
}

static void fragment(void)
{
    raffia_resource_ref ref;
    void *blocks[16];
    setenv("RAFFIA_PINNED_POOL_MAX_SIZE", "4MiB", 1);
    EXPECT(configure(4 * MIB));
    EXPECT(!raffia_pinned_resource_get(&ref));
    for (int i = 0; i < 16; i++)
        EXPECT(!raffia_allocate(ref, NULL, 256 * KIB, 0, &blocks[i]));
    for (int i = 0; i < 16; i += 2)
        EXPECT(!raffia_deallocate(ref, NULL, blocks[i], 256 * KIB, 0));
    const uint64_t before = query().fallbacks;
    EXPECT(!raffia_allocate(ref, NULL, MIB, 0, &blocks[0])); /* half is free, not in one piece */
    EXPECT(query().fallbacks == before + 1);
    EXPECT(!raffia_deallocate(ref, NULL, blocks[0], MIB, 0));
    for (int i = 1; i < 16; i += 2)
        EXPECT(!raffia_deallocate(ref, NULL, blocks[i], 256 * KIB, 0));
}

static void without_a_pool(void)
{
    raffia_resource_ref ref;
    void *block;
    setenv("LIBCUDF_PINNED_POOL_SIZE", "0", 1); /* 16 times 0 is no pool */
    EXPECT(!raffia_pinned_resource_get(&ref));
    EXPECT(query().maximum_bytes == 0);
    EXPECT(!raffia_allocate(ref, NULL, MIB, 0, &block));
    EXPECT(!raffia_deallocate(ref, NULL, block, MIB, 0));
    EXPECT(query().fallbacks == 0 && !logged("made for it")); /* nothing was tried in vain */
}

static void a_limit_of_0_alone(void)
{
    setenv("RAFFIA_PINNED_POOL_MAX_SIZE", "0", 1);
    EXPECT(configure(MIB));
    EXPECT(query().maximum_bytes == 0);
}

static void a6_exhaustion_falls_back_and_frees_find_their_way(void **state)
{
    (void)state;
    in_a_child(exhaust);
    in_a_child(fragment);
}

static void a6_a_limit_of_0_disables_the_pool(void **state)
{
    (void)state;
    in_a_child(without_a_pool);
    in_a_child(a_limit_of_0_alone);
}

static void *hammer(void *argument)
{
    for (int i = 0; i < 300; i++) {
        const size_t bytes = (size_t)(i % 7 + 1) * 200 * KIB;
        void *block;
        EXPECT(!raffia_allocate(*(raffia_resource_ref *)argument, NULL, bytes, 0, &block));
        memset(block, i, 64);
        EXPECT(!raffia_deallocate(*(raffia_resource_ref *)argument, NULL, block, bytes, 0));
    }
    return NULL;
}

static void threads_on_the_default(void)
{
    raffia_resource_ref ref;
    pthread_t threads[4];
    setenv("RAFFIA_PINNED_POOL_MAX_SIZE", "2MiB", 1);
    EXPECT(configure(2 * MIB));
    EXPECT(!raffia_pinned_resource_get(&ref));
    for (int i = 0; i < 4; i++)
        EXPECT(!pthread_create(&threads[i], NULL, hammer, &ref));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void a6_threads_share_the_default_resource(void **state)
{
    (void)state;
    in_a_child(threads_on_the_default);
}

/* ---- thresholds ----------------------------------------------------------------------------- */

static void thresholds_get_and_set(void)
{
    EXPECT(raffia_kernel_copy_threshold() == 0 && raffia_host_as_pinned_threshold() == 0);
    EXPECT(!raffia_config_set("kernel_pinned_copy_threshold", "4KiB"));
    EXPECT(raffia_kernel_copy_threshold() == 4096);
    raffia_kernel_copy_threshold_set(12345);
    raffia_host_as_pinned_threshold_set(SIZE_MAX);
    EXPECT(!raffia_config_set("kernel_pinned_copy_threshold", "1KiB"));
    EXPECT(raffia_kernel_copy_threshold() == 12345);
    EXPECT(raffia_host_as_pinned_threshold() == SIZE_MAX);
    raffia_kernel_copy_threshold_set(0);
    EXPECT(raffia_kernel_copy_threshold() == 0);
}

static void thresholds_from_the_environment(void)
{
    setenv("LIBCUDF_KERNEL_PINNED_COPY_THRESHOLD", "4294967296", 1); /* libcudf: saturates */
    setenv("RAFFIA_ALLOCATE_HOST_AS_PINNED_THRESHOLD", "8k", 1);     /* libcudf: 8 */
    setenv("LIBCUDF_ALLOCATE_HOST_AS_PINNED_THRESHOLD", "16", 1);
    EXPECT(raffia_kernel_copy_threshold() == (size_t)1 << 32);
    EXPECT(raffia_host_as_pinned_threshold() == 0);
    EXPECT(logged("RAFFIA_ALLOCATE_HOST_AS_PINNED_THRESHOLD is ignored"));
}

static bool gives_pinned(size_t bytes)
{
    raffia_resource *resource;
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    EXPECT(!raffia_host_resource_for(bytes, &resource));
    raffia_resource_describe(raffia_ref(resource), line, sizeof line);
    raffia_resource_release(resource);
    return strstr(line, "default pinned") != NULL;
}

static void up_to_the_threshold(void)
{
    EXPECT(configure(MIB));
    EXPECT(gives_pinned(0) && !gives_pinned(1));
    raffia_host_as_pinned_threshold_set(7);
    EXPECT(gives_pinned(4) && gives_pinned(7) && !gives_pinned(8));
}

static void a7_a8_thresholds_are_read_and_set(void **state)
{
    (void)state;
    in_a_child(thresholds_get_and_set);
    in_a_child(thresholds_from_the_environment);
}

static void a8_host_allocations_of_at_most_the_threshold_are_pinned(void **state)
{
    (void)state;
    in_a_child(up_to_the_threshold);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a5_default_sizes_are_libcudfs),
        cmocka_unit_test(a5_set_returns_the_previous_one_and_checks),
        cmocka_unit_test(a5_only_one_of_many_first_calls_built_it),
        cmocka_unit_test(a5_pinned_memory_is_pinned_for_the_default_device),
        cmocka_unit_test(a6_exhaustion_falls_back_and_frees_find_their_way),
        cmocka_unit_test(a6_a_limit_of_0_disables_the_pool),
        cmocka_unit_test(a6_threads_share_the_default_resource),
        cmocka_unit_test(a7_a8_thresholds_are_read_and_set),
        cmocka_unit_test(a8_host_allocations_of_at_most_the_threshold_are_pinned),
        cmocka_unit_test(a9_the_environment_beats_the_option_here),
        cmocka_unit_test(a9_bad_values_are_warned_of_and_never_a_silent_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
