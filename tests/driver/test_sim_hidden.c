/* Memory of a simulated device that is hidden from the CPU, and host memory that it refuses. */
#include "driver/sim_test.h"

#include <raffia/config.h>
#include <raffia/device.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void hide(void)
{
    assert_ok(sim_configure(0, &(struct sim_config){.cpu_inaccessible = true}));
}

/* Whether the CPU dies of reading, or writing, an address. */
static bool is_deadly(volatile char *at, bool write)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        char seen = *at;
        if (write)
            *at = seen;
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    return !(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void the_cpu_cannot_touch_it_but_copies_can(void **state)
{
    (void)state;
    hide();
    raffia_device_info info;
    assert_ok(raffia_device_query("sim:0", &info));
    assert_false(info.cpu_accessible);
    bool accessible = true;
    assert_ok(driver_cpu_accessible((struct driver_device){&sim_driver, 0}, &accessible));
    assert_false(accessible);
    assert_ok(driver_cpu_accessible((struct driver_device){&sim_driver, 1}, &accessible));
    assert_true(accessible);

    const struct driver_chunk_spec spec = sim_test_device_spec(4 * MIB);
    char *base = sim_test_reserve(0, 8 * MIB), from[100], to[100] = {0};
    driver_chunk chunk = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base + 2 * MIB);
    void *block;
    assert_ok(sim_driver.mem_alloc(0, 1000, &block));
    memset(from, 0x3c, sizeof from);
    assert_ok(sim_driver.copy(0, NULL, base + 5 * MIB, from, sizeof from));
    assert_ok(sim_driver.copy(0, NULL, (char *)block + 900, base + 5 * MIB, sizeof from));
    assert_ok(sim_driver.fill(0, NULL, (char *)block + 950, 9, 10));
    assert_ok(sim_driver.copy(0, NULL, to, (char *)block + 900, sizeof to));
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_int_equal(to[0], 0x3c);
    assert_int_equal(to[55], 9);
    assert_int_equal(*(char *)sim_view(base + 5 * MIB), 0x3c);
    assert_int_equal(*(char *)sim_view((char *)block + 955), 9);
    assert_ptr_equal(sim_view(from), from);
    {
        assert_true(is_deadly(base + 5 * MIB, false));
        assert_true(is_deadly((char *)block + 955, true));
        assert_false(is_deadly(from, true));
    }
    assert_ok(sim_driver.mem_free(0, block, 1000));
    assert_ok(sim_driver.chunk_unmap(0, chunk, base + 2 * MIB));
    assert_ok(sim_driver.chunk_destroy(0, chunk));
    assert_ok(sim_driver.range_release(0, base, 8 * MIB));
}

static void misuse_is_noticed_all_the_same(void **state)
{
    (void)state;
    hide();
    char *base = sim_test_reserve(0, 4 * MIB), from[8] = "";
    void *block;
    assert_misuse(sim_driver.copy(0, NULL, base, from, sizeof from), "not all mapped");
    assert_ok(sim_driver.mem_alloc(0, 100, &block));
    assert_misuse(sim_driver.copy(0, NULL, (char *)block + 96, from, 8), "edge of a block");
    assert_ok(sim_driver.mem_free(0, block, 100));
    assert_misuse(sim_driver.copy(0, NULL, block, from, 8), "freed");
    assert_ok(sim_driver.range_release(0, base, 4 * MIB));
}

static void a_device_in_use_does_not_hide_or_show_its_memory(void **state)
{
    (void)state;
    hide();
    void *block;
    assert_ok(sim_driver.mem_alloc(0, 100, &block));
    assert_status(RAFFIA_ERROR_BUSY, sim_configure(0, NULL));
    assert_ok(sim_driver.mem_free(0, block, 100));
    assert_ok(sim_configure(0, NULL));
}

static void a_setting_hides_all_devices(void **state)
{
    (void)state;
    raffia_device_info info;
    assert_ok(raffia_config_set("sim_memory", "hidden"));
    sim_reset();
    assert_ok(raffia_device_query("sim:1", &info));
    assert_false(info.cpu_accessible);
    assert_ok(raffia_config_set("sim_memory", NULL));
    sim_reset();
    assert_ok(raffia_device_query("sim:1", &info));
    assert_true(info.cpu_accessible);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, raffia_config_set("sim_memory", "somewhat"));
}

static void host_memory_is_refused_as_configured(void **state)
{
    (void)state;
    void *memory = NULL, *host = NULL;
    assert_int_equal(posix_memalign(&memory, 4 * KIB, 16 * KIB), 0);
    assert_ok(sim_configure(
        0, &(struct sim_config){.register_bytes_max = 8 * KIB, .refuses_host_alloc = true}));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, sim_driver.host_register(0, memory, 16 * KIB));
    assert_ok(sim_driver.host_register(0, memory, 8 * KIB));
    assert_ok(sim_driver.host_unregister(0, memory, 8 * KIB));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, sim_driver.host_alloc(0, 1, &host));
    assert_null(host);
    assert_ok(sim_configure(0, NULL));
    assert_ok(sim_driver.host_alloc(0, 5000, &host));
    assert_int_equal(sim_test_usage(0).host_block_bytes, 5000);
    assert_false(sim_is_idle());
    assert_ok(sim_driver.host_free(0, host, 5000));
    free(memory);
}

static void host_memory_is_freed_once_and_when_it_is_quiet(void **state)
{
    (void)state;
    void *host, *block;
    driver_stream stream;
    assert_ok(sim_driver.host_alloc(0, 100, &host));
    assert_misuse(sim_driver.host_free(0, host, 99), "host_free");
    assert_ok(sim_driver.mem_alloc(0, 100, &block));
    assert_ok(sim_driver.stream_create(0, &stream));
    assert_ok(sim_stream_hold(0, stream));
    assert_ok(sim_driver.copy(0, stream, block, host, 100));
    assert_misuse(sim_driver.host_free(0, host, 100), "got there");
    assert_ok(sim_stream_resume(0, stream));
    assert_ok(sim_driver.stream_wait(0, stream));
    assert_ok(sim_driver.host_free(0, host, 100));
    assert_misuse(sim_driver.host_free(0, host, 100), "host_free");
    assert_ok(sim_driver.stream_destroy(0, stream));
    assert_ok(sim_driver.mem_free(0, block, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(the_cpu_cannot_touch_it_but_copies_can),
        SIM_TEST_OF_MISUSE(misuse_is_noticed_all_the_same),
        SIM_TEST(a_device_in_use_does_not_hide_or_show_its_memory),
        SIM_TEST(a_setting_hides_all_devices),
        SIM_TEST(host_memory_is_refused_as_configured),
        SIM_TEST_OF_MISUSE(host_memory_is_freed_once_and_when_it_is_quiet),
    };
    return cmocka_run_group_tests_name("hidden memory", tests, NULL, NULL);
}
