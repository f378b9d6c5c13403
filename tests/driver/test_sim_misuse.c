/* The simulated device: how its memory is misused, and that each misuse is found and changes
 * nothing.
 */
#include "driver/sim_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct driver *const d = &sim_driver;

static void maps_are_watched(void **state)
{
    (void)state;
    raffia_fallback_reason reason;
    char *base = sim_test_reserve(0, 6 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec), other = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    assert_misuse(d->chunk_map(0, chunk, base + 2 * MIB, &reason), "not remappable");
    assert_misuse(d->chunk_map(0, other, base, &reason), "over another chunk");
    assert_misuse(d->chunk_map(0, other, base + 3 * MIB, &reason), "not aligned");
    assert_misuse(d->chunk_map(0, other, base + 6 * MIB, &reason), "outside");
    assert_misuse(d->chunk_map(0, other, NULL, &reason), "outside");
    assert_misuse(d->chunk_map(1, other, base + 2 * MIB, &reason), "not a chunk");
    assert_misuse(d->chunk_unmap(0, other, base), "not mapped");
    assert_misuse(d->chunk_unmap(0, chunk, base + 2 * MIB), "not mapped");
    assert_misuse(d->chunk_destroy(0, chunk), "mapped");
    assert_misuse(d->range_release(0, base, 6 * MIB), "still mapped");
    struct driver_page_evidence evidence;
    assert_misuse(d->page_size_of(0, base, 4 * MIB, spec.kind, 2 * MIB, &evidence),
                  "not all mapped");

    /* All of that changed nothing. */
    memset(base, 1, 2 * MIB);
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_misuse(d->chunk_unmap(0, chunk, base), "not mapped");
    assert_ok(d->chunk_destroy(0, chunk));
    assert_misuse(d->chunk_destroy(0, chunk), "not a chunk");
    assert_misuse(d->chunk_map(0, chunk, base, &reason), "not a chunk");
    assert_ok(d->chunk_destroy(0, other));
    assert_misuse(d->range_release(0, base, 4 * MIB), "is a range of");
    assert_misuse(d->range_release(0, base + 2 * MIB, 4 * MIB), "no range starts");
    assert_ok(d->range_release(0, base, 6 * MIB));
    assert_misuse(d->range_release(0, base, 6 * MIB), "no range starts");
    struct sim_usage usage = sim_test_usage(0);
    assert_int_equal(usage.misuses, 16);
    assert_non_null(strstr(usage.first_misuse, "not remappable"));
    assert_int_equal(sim_test_usage(1).misuses, 1);
    assert_false(sim_is_idle());
}

static void frees_are_watched(void **state)
{
    (void)state;
    void *block;
    assert_ok(d->mem_alloc(0, 1000, &block));
    assert_misuse(d->mem_free(0, (char *)block + 256, 1000), "inside the block");
    assert_misuse(d->mem_free(0, block, 1001), "is a block of 1000");
    assert_misuse(d->mem_free(1, block, 1000), "no block");
    assert_ok(d->mem_free(0, block, 1000));
    assert_misuse(d->mem_free(0, block, 1000), "freed before");
    assert_misuse(d->mem_free(0, NULL, 1), "no block");
    int here;
    assert_misuse(d->mem_free(0, &here, sizeof here), "no block");
}

static void copies_are_watched(void **state)
{
    (void)state;
    const struct sim_config config = {.synchronous = true};
    assert_ok(sim_configure(0, &config));
    char host[512] = {0};
    void *block;
    char *base = sim_test_reserve(0, 4 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    assert_ok(d->mem_alloc(0, 512, &block));
    assert_ok(d->copy(0, NULL, base, host, sizeof host));
    assert_misuse(d->copy(0, NULL, base + 2 * MIB, host, 1), "not all mapped");
    assert_misuse(d->copy(0, NULL, host, base + 2 * MIB - 1, 2), "not all mapped");
    assert_misuse(d->fill(0, NULL, base - 1, 0, 2), "edge of a reserved range");
    assert_misuse(d->fill(0, NULL, block, 0, 513), "edge of a block");
    assert_misuse(d->fill(0, NULL, NULL, 0, 1), "no memory");
    assert_misuse(d->fill(0, NULL, host, 0, SIZE_MAX), "no memory");
    const struct driver_copy batch[] = {{block, host, 8}, {base + 2 * MIB, host, 8}};
    assert_misuse(d->copy_batch(0, NULL, batch, 2), "not all mapped");
    assert_ok(d->mem_free(0, block, 512));
    assert_misuse(d->copy(0, NULL, host, block, 8), "freed");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->fill(0, host, base, 0, 1));
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_misuse(d->fill(0, NULL, base, 0, 1), "not all mapped");
}

static void peers_need_access(void **state)
{
    (void)state;
    char host[16] = {0};
    char *base = sim_test_reserve(0, 4 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunks[] = {sim_test_create(0, &spec), sim_test_create(0, &spec)};
    sim_test_map(0, chunks[0], base);
    sim_test_map(0, chunks[1], base + 2 * MIB);
    assert_misuse(d->copy(1, NULL, host, base, sizeof host), "no access");
    assert_ok(d->set_access(0, base, 4 * MIB, 1, false));
    assert_ok(d->copy(1, NULL, host, base + 2 * MIB - 8, sizeof host));
    assert_misuse(d->copy(1, NULL, base, host, sizeof host), "no access");
    assert_ok(d->set_access(0, base, 2 * MIB, 1, true));
    assert_ok(d->copy(1, NULL, base, host, sizeof host));
    assert_misuse(d->copy(1, NULL, base + 2 * MIB - 8, host, sizeof host), "no access");
    assert_misuse(d->set_access(0, base, 3 * MIB, 1, true), "cut a chunk");
    assert_misuse(d->set_access(0, base, 6 * MIB, 1, true), "not all mapped");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->set_access(0, base, 2 * MIB, 2, true));
    assert_ok(d->stream_wait(1, NULL));
}

static void registrations_are_watched(void **state)
{
    (void)state;
    static char memory[8192];
    assert_ok(d->host_register(0, memory, 4096));
    assert_misuse(d->host_register(0, memory, 4096), "over");
    assert_misuse(d->host_register(0, memory + 4000, 1000), "over");
    assert_ok(d->host_register(0, memory + 4096, 4096));
    assert_int_equal(sim_test_usage(0).registered_bytes, 8192);
    assert_misuse(d->host_unregister(0, memory, 8192), "were registered");
    assert_misuse(d->host_unregister(0, memory + 1, 4096), "nothing was registered");
    assert_ok(d->host_unregister(0, memory, 4096));
    assert_misuse(d->host_unregister(0, memory, 4096), "nothing was registered");
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->host_register(0, NULL, 1));
    assert_ok(d->host_unregister(0, memory + 4096, 4096));
}

/* Touches the address in a child, which a handler lets end with a number of its own. */
static void end_with_42(int signal_number)
{
    (void)signal_number;
    _exit(42);
}

static bool touching_is_a_fault(volatile char *at)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, end_with_42);
        *at = 1;
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    return WIFEXITED(how) && WEXITSTATUS(how) == 42;
}

static void the_cpu_faults_where_nothing_is(void **state)
{
    (void)state;
    char *base = sim_test_reserve(0, 4 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    assert_false(touching_is_a_fault(base + 2 * MIB - 1));
    assert_true(touching_is_a_fault(base + 2 * MIB));
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_true(touching_is_a_fault(base));
    assert_ok(d->chunk_destroy(0, chunk));
    assert_ok(d->range_release(0, base, 4 * MIB));
    void *block;
    assert_ok(d->mem_alloc(0, 512, &block));
    assert_false(touching_is_a_fault((char *)block + 511));
    assert_true(touching_is_a_fault((char *)block + 512));
    assert_ok(d->mem_free(0, block, 512));
    assert_true(touching_is_a_fault(block));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST_OF_MISUSE(maps_are_watched),          SIM_TEST_OF_MISUSE(frees_are_watched),
        SIM_TEST_OF_MISUSE(copies_are_watched),        SIM_TEST_OF_MISUSE(peers_need_access),
        SIM_TEST_OF_MISUSE(registrations_are_watched), SIM_TEST(the_cpu_faults_where_nothing_is),
    };
    return cmocka_run_group_tests_name("sim misuse", tests, NULL, NULL);
}
