/*
 * How the CUDA driver is found, or is not. What it finds is remembered for good, so each case is a
 * child process that has asked for nothing before.
 */
#include "core/fault.h"
#include "driver/cuda_test.h"
#include "driver/fake_root.h"
#include "life/child.h"
#include "support/log_capture.h"

#include <raffia/config.h>
#include <raffia/pool.h>
#include <raffia/umd.h>

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a process finds: a library, how the fake is set up, and what must come of it. */
struct start {
    const char *library;
    struct fake_cuda_config fake;
    raffia_status status; /* of opening "cuda:0" */
    const char *mentions; /* in its sentence */
    const char *native;
    size_t warnings; /* for a program that names no device */
};

static int look(const struct start *start)
{
    struct driver_device device;
    EXPECT(driver_open("cuda:0", &device) == start->status);
    EXPECT(strstr(raffia_last_error(), start->mentions));
    EXPECT(strstr(raffia_last_error(), "cuda:0"));
    EXPECT(!strcmp(raffia_last_native_error(), start->native));
    raffia_device_info info;
    EXPECT(raffia_config_set("driver", "cuda") == RAFFIA_OK);
    EXPECT(raffia_device_query(NULL, &info) == start->status);
    EXPECT(strstr(raffia_last_error(), start->mentions));
    EXPECT(umd_huge_page_pool_init(0, MIB) == start->status);
    EXPECT(raffia_config_set("driver", NULL) == RAFFIA_OK);
    return 0;
}

static int start_without_gpu(void *context)
{
    const struct start *start = context;
    setenv("RAFFIA_CUDA_LIBRARY", start->library, 1);
    fake_cuda_reset(&start->fake);
    log_capture_start();
    /* Programs that name no device do not notice, but for one warning. */
    raffia_device_info info;
    for (int i = 0; i < 3; i++) {
        EXPECT(raffia_device_query(NULL, &info) == RAFFIA_OK);
        EXPECT(!strcmp(info.name, "host"));
        EXPECT(!*raffia_last_error());
    }
    EXPECT(log_capture_count() == start->warnings);
    if (start->warnings)
        EXPECT(strstr(log_capture_line(0), start->mentions));
    EXPECT(look(start) == 0);
    EXPECT(raffia_device_query("", &info) == RAFFIA_OK && !strcmp(info.name, "host"));
    EXPECT(log_capture_count() == start->warnings);
    log_capture_stop();
    return 0;
}

static void a_machine_without_a_usable_gpu_uses_the_host(void **state)
{
    (void)state;
    const struct start starts[] = {
        {"none", {0}, RAFFIA_ERROR_UNSUPPORTED, "RAFFIA_CUDA_LIBRARY=none", "", 0},
        {"libraffia-has-no-such-library.so",
         {0},
         RAFFIA_ERROR_UNSUPPORTED,
         "no CUDA driver",
         "",
         0},
        {"/dev/null", {0}, RAFFIA_ERROR_UNSUPPORTED, "no CUDA driver", "", 0},
        {FAKE_CUDA_LIBRARY, {.devices = -1}, RAFFIA_ERROR_NOT_FOUND, "has 0 devices", "", 0},
        {FAKE_CUDA_LIBRARY,
         {.init_result = CUDA_ERROR_NO_DEVICE},
         RAFFIA_ERROR_NOT_FOUND,
         "has 0 devices",
         "",
         0},
        {FAKE_CUDA_LIBRARY,
         {.version = 11080},
         RAFFIA_ERROR_UNSUPPORTED,
         "too old: it is for CUDA 11.8",
         "",
         1},
        {FAKE_CUDA_ANCIENT_LIBRARY, {0}, RAFFIA_ERROR_UNSUPPORTED, "cuStreamGetId", "", 1},
        {FAKE_CUDA_LIBRARY,
         {.init_result = CUDA_ERROR_UNKNOWN},
         RAFFIA_ERROR_DRIVER,
         "does not start",
         "CUDA_ERROR_UNKNOWN",
         1},
        {FAKE_CUDA_LIBRARY,
         {.init_result = CUDA_ERROR_OPERATING_SYSTEM},
         RAFFIA_ERROR_PERMISSION,
         "/dev/nvidiactl",
         "CUDA_ERROR_OPERATING_SYSTEM",
         1},
        {FAKE_CUDA_LIBRARY,
         {.init_result = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH},
         RAFFIA_ERROR_UNSUPPORTED,
         "different versions",
         "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
         1},
        {FAKE_CUDA_LIBRARY,
         {.init_result = CUDA_ERROR_STUB_LIBRARY},
         RAFFIA_ERROR_UNSUPPORTED,
         "LD_LIBRARY_PATH",
         "CUDA_ERROR_STUB_LIBRARY",
         1},
    };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        struct start start = starts[i];
        if (child_run(start_without_gpu, &start))
            fail_msg("case %zu, '%s'", i, start.mentions);
    }
}

static void use_library(const char *library, const struct fake_cuda_config *config)
{
    setenv("RAFFIA_CUDA_LIBRARY", library, 1);
    fake_cuda_reset(config);
}

/* Copies there and back; the number of bytes is the test's. */
static int copy_around(void)
{
    enum { PIECES = 40 };
    static char from[PIECES], to[PIECES];
    struct driver_copy copies[PIECES];
    driver_stream stream;
    void *block;
    EXPECT(cuda_driver.mem_alloc(0, PIECES, &block) == RAFFIA_OK);
    EXPECT(cuda_driver.stream_create(0, &stream) == RAFFIA_OK);
    for (size_t i = 0; i < PIECES; i++) {
        from[i] = (char)i;
        copies[i] = (struct driver_copy){(char *)block + i, from + i, 1};
    }
    EXPECT(cuda_driver.copy_batch(0, stream, copies, PIECES) == RAFFIA_OK);
    EXPECT(cuda_driver.copy(0, stream, to, block, PIECES) == RAFFIA_OK);
    EXPECT(cuda_driver.stream_wait(0, stream) == RAFFIA_OK);
    EXPECT(!memcmp(from, to, PIECES));
    EXPECT(cuda_driver.stream_destroy(0, stream) == RAFFIA_OK);
    EXPECT(cuda_driver.mem_free(0, block, PIECES) == RAFFIA_OK);
    return 0;
}

static int use_old_driver(void *context)
{
    (void)context;
    use_library(FAKE_CUDA_OLD_LIBRARY, NULL);
    return copy_around();
}

static void a_driver_without_the_newest_calls_serves(void **state)
{
    (void)state;
    assert_int_equal(child_run(use_old_driver, NULL), 0);
}

static int use_named_device(void *context)
{
    (void)context;
    const struct fake_cuda_config config = {.devices = 3};
    use_library(FAKE_CUDA_LIBRARY, &config);
    struct driver_device device;
    raffia_device_info info;
    struct fake_cuda_usage usage;
    char name[RAFFIA_DEVICE_NAME_MAX];
    EXPECT(driver_open("cuda:1", &device) == RAFFIA_OK);
    EXPECT(!strcmp(driver_device_name(device, name), "cuda:1"));
    EXPECT(driver_open("cuda:3", &device) == RAFFIA_ERROR_NOT_FOUND);
    EXPECT(driver_open_index(2, &device) == RAFFIA_OK && device.driver == &cuda_driver);
    fake_cuda_query(&usage);
    EXPECT(usage.retained[0] + usage.retained[1] + usage.retained[2] == 0);
    EXPECT(raffia_device_query("cuda:1", &info) == RAFFIA_OK);
    EXPECT(!strcmp(info.model, "Fake GPU 1"));
    fake_cuda_query(&usage);
    EXPECT(usage.retained[0] == 0 && usage.retained[1] == 1 && usage.retained[2] == 0);
    EXPECT(cuda_driver.context_state(1) == RAFFIA_OK);
    fake_cuda_query(&usage);
    EXPECT(usage.retained[1] == 1); /* once for good */
    return 0;
}

static void only_the_device_named_is_touched(void **state)
{
    (void)state;
    assert_int_equal(child_run(use_named_device, NULL), 0);
}

static int choose_by_setting(void *context)
{
    (void)context;
    use_library(FAKE_CUDA_LIBRARY, NULL);
    raffia_device_info info;
    setenv("RAFFIA_DRIVER", "host", 1);
    EXPECT(raffia_device_query(NULL, &info) == RAFFIA_OK && !strcmp(info.name, "host"));
    EXPECT(fake_cuda_calls("cuInit") == 0); /* nobody asked for a GPU */
    setenv("RAFFIA_DRIVER", "auto", 1);
    EXPECT(raffia_device_query(NULL, &info) == RAFFIA_OK && !strcmp(info.name, "cuda:0"));
    EXPECT(fake_cuda_calls("cuInit") == 1);
    setenv("RAFFIA_DRIVER", "cuda", 1);
    EXPECT(raffia_device_query(NULL, &info) == RAFFIA_OK && !strcmp(info.name, "cuda:0"));
    EXPECT(raffia_device_query("cuda", &info) == RAFFIA_OK);
    EXPECT(raffia_device_query("cuda:", &info) == RAFFIA_ERROR_INVALID_ARGUMENT);
    EXPECT(fake_cuda_calls("cuInit") == 1);
    return 0;
}

static void the_setting_chooses_and_auto_takes_a_gpu(void **state)
{
    (void)state;
    assert_int_equal(child_run(choose_by_setting, NULL), 0);
}

static int grandchild(raffia_status expected)
{
    void *block;
    raffia_device_info info;
    EXPECT(cuda_driver.mem_alloc(0, 1, &block) == expected);
    EXPECT(raffia_device_query(NULL, &info) == expected);
    if (!expected)
        return 0;
    EXPECT(strstr(raffia_last_error(), "forked child"));
    EXPECT(raffia_device_query("host", &info) == RAFFIA_OK);
    int count = 0;
    EXPECT(cuda_driver.devices(&count) == RAFFIA_ERROR_FORKED);
    EXPECT(cuda_driver.default_stream(0) == DRIVER_DEFAULT_STREAM_NONE);
    EXPECT(cuda_test_usage().misuses == 0); /* CUDA itself was never called */
    return 0;
}

static int run_grandchild(raffia_status expected)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(grandchild(expected));
    return child_wait(child);
}

static int fork_after_use(void *context)
{
    (void)context;
    use_library(FAKE_CUDA_LIBRARY, NULL);
    EXPECT(cuda_driver.context_state(0) == RAFFIA_OK);
    EXPECT(run_grandchild(RAFFIA_ERROR_FORKED) == 0);
    return copy_around(); /* the parent is as before */
}

static int fork_before_use(void *context)
{
    (void)context;
    use_library(FAKE_CUDA_LIBRARY, NULL);
    EXPECT(run_grandchild(RAFFIA_OK) == 0);
    return copy_around();
}

static int fork_without_gpu(void *context)
{
    (void)context;
    use_library("none", NULL);
    raffia_device_info info;
    EXPECT(raffia_device_query(NULL, &info) == RAFFIA_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(raffia_device_query(NULL, &info) == RAFFIA_OK && !strcmp(info.name, "host") ? 0 : 1);
    return child_wait(child);
}

/* SPEC B8 */
static void a_forked_child_leaves_its_parents_gpu_alone(void **state)
{
    (void)state;
    assert_int_equal(child_run(fork_after_use, NULL), 0);
    assert_int_equal(child_run(fork_before_use, NULL), 0);
    assert_int_equal(child_run(fork_without_gpu, NULL), 0);
}

static int fail_to_open(void *context)
{
    const long n = *(long *)context;
    use_library(FAKE_CUDA_LIBRARY, NULL);
    int count;
    EXPECT(cuda_driver.devices(&count) == RAFFIA_OK);
    core_fault_arm(n);
    raffia_status status = cuda_driver.context_state(0);
    const bool failed = core_fault_disarm() != NULL;
    if (!failed)
        return status ? 1 : 2;
    /* An attribute that old drivers lack is taken for "no". */
    EXPECT(status == RAFFIA_OK || *raffia_last_error());
    EXPECT(cuda_driver.context_state(0) == RAFFIA_OK); /* it is tried again */
    return copy_around();
}

static void opening_a_device_may_fail_at_every_call(void **state)
{
    (void)state;
    long n = 1;
    int code;
    while ((code = child_run(fail_to_open, &n)) == 0)
        n++;
    assert_int_equal(code, 2);
    assert_true(n > 8);
}

static int fail_to_start(void *context)
{
    const long n = *(long *)context;
    use_library(FAKE_CUDA_LIBRARY, NULL);
    int count = 0;
    core_fault_arm(n);
    raffia_status status = cuda_driver.devices(&count);
    const bool failed = core_fault_disarm() != NULL;
    if (!failed)
        return status ? 1 : 2;
    EXPECT(status == RAFFIA_OK || *raffia_last_error()); /* one call may be missing */
    EXPECT(cuda_driver.devices(&count) == status);       /* what was found is remembered */
    return 0;
}

static void starting_may_fail_at_every_call(void **state)
{
    (void)state;
    long n = 1;
    int code;
    while ((code = child_run(fail_to_start, &n)) == 0)
        n++;
    assert_int_equal(code, 2);
    assert_true(n > 40); /* each function that is looked up is one */
}

static int use_poor_device(void *context)
{
    (void)context;
    const struct fake_cuda_config config = {.no_virtual_memory = true};
    use_library(FAKE_CUDA_LIBRARY, &config);
    const struct driver_chunk_spec spec = cuda_test_spec(2 * MIB);
    raffia_device_info info;
    driver_chunk chunk;
    raffia_fallback_reason reason;
    void *base;
    EXPECT(raffia_device_query("cuda:0", &info) == RAFFIA_OK);
    EXPECT(info.page_count == 0);
    EXPECT(cuda_driver.range_reserve(0, 2 * MIB, 2 * MIB, &base) == RAFFIA_ERROR_UNSUPPORTED);
    EXPECT(cuda_driver.chunk_create(0, &spec, &chunk, &reason) == RAFFIA_ERROR_UNSUPPORTED);
    EXPECT(reason == RAFFIA_REASON_UNSUPPORTED);
    const raffia_pool_options options = {
        .struct_size = sizeof options, .device = "cuda:0", .maximum_bytes = 4 * MIB};
    raffia_pool *pool;
    EXPECT(raffia_pool_create(&options, &pool) == RAFFIA_ERROR_UNSUPPORTED);
    return copy_around(); /* the regular path serves */
}

static int use_silent_device(void *context)
{
    (void)context;
    const struct fake_cuda_config config = {
        .no_fd_export = true, .granularity = 64 * KIB, .recommended = 2 * MIB};
    use_library(FAKE_CUDA_LIBRARY, &config);
    struct driver_chunk_spec spec = cuda_test_spec(2 * MIB);
    raffia_device_info info;
    driver_chunk chunk;
    raffia_fallback_reason reason;
    EXPECT(raffia_device_query("cuda:0", &info) == RAFFIA_OK);
    EXPECT(info.page_count == 2 && info.pages[0].size == 2 * MIB && info.pages[1].size == 64 * KIB);
    spec.handle = DRIVER_HANDLE_FD;
    EXPECT(cuda_driver.chunk_create(0, &spec, &chunk, &reason) == RAFFIA_ERROR_UNSUPPORTED);
    EXPECT(strstr(raffia_last_error(), "file descriptor"));
    spec.handle = DRIVER_HANDLE_NONE;
    spec.page_size = 64 * KIB;
    spec.bytes = 192 * KIB;
    EXPECT(cuda_driver.chunk_create(0, &spec, &chunk, &reason) == RAFFIA_OK);
    EXPECT(cuda_driver.chunk_destroy(0, chunk) == RAFFIA_OK);
    return 0;
}

static void a_device_that_lacks_something_says_so(void **state)
{
    (void)state;
    assert_int_equal(child_run(use_poor_device, NULL), 0);
    assert_int_equal(child_run(use_silent_device, NULL), 0);
}

enum { THREADS = 8 };

static pthread_barrier_t all_there;

static void *use_device(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < 50; i++) {
        void *block;
        bool capturing;
        if (cuda_driver.mem_alloc(0, 4096, &block) || cuda_driver.fill(0, NULL, block, 1, 4096) ||
            cuda_driver.stream_is_capturing(0, NULL, &capturing) ||
            cuda_driver.mem_free(0, block, 4096))
            return &all_there; /* anything but NULL */
    }
    return NULL;
}

static int use_from_threads(void *context)
{
    (void)context;
    use_library(FAKE_CUDA_LIBRARY, NULL);
    pthread_t threads[THREADS];
    pthread_barrier_init(&all_there, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        EXPECT(pthread_create(&threads[i], NULL, use_device, NULL) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        EXPECT(!failed);
    }
    const struct fake_cuda_usage usage = cuda_test_usage();
    EXPECT(usage.retained[0] == 1 && usage.blocks == 0 && usage.misuses == 0);
    EXPECT(fake_cuda_calls("cuInit") == 1);
    return 0;
}

static void threads_may_come_at_once(void **state)
{
    (void)state;
    assert_int_equal(child_run(use_from_threads, NULL), 0);
}

static int read_node(void *context)
{
    (void)context;
    const struct fake_cuda_config config = {.devices = 3};
    use_library(FAKE_CUDA_LIBRARY, &config);
    raffia_device_info info;
    const int nodes[] = {1, -1, -1};
    for (int i = 0; i < 3; i++) {
        EXPECT(cuda_driver.device_info(i, &info) == RAFFIA_OK);
        EXPECT(info.numa_node == nodes[i]);
    }
    return 0;
}

static void the_node_is_the_kernels_word(void **state)
{
    (void)state;
    fake_root_write("/sys/bus/pci/devices/0000:fa:00.0/numa_node", "1\n");
    fake_root_write("/sys/bus/pci/devices/0000:fa:01.0/numa_node", "-1\n"); /* a virtual machine */
    assert_int_equal(child_run(read_node, NULL), 0);
}

int main(void)
{
    unsetenv("RAFFIA_DRIVER");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_without_a_usable_gpu_uses_the_host),
        cmocka_unit_test(a_driver_without_the_newest_calls_serves),
        cmocka_unit_test(only_the_device_named_is_touched),
        cmocka_unit_test(the_setting_chooses_and_auto_takes_a_gpu),
        cmocka_unit_test(a_forked_child_leaves_its_parents_gpu_alone),
        cmocka_unit_test(opening_a_device_may_fail_at_every_call),
        cmocka_unit_test(starting_may_fail_at_every_call),
        cmocka_unit_test(a_device_that_lacks_something_says_so),
        cmocka_unit_test(threads_may_come_at_once),
        fake_root_test(the_node_is_the_kernels_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
