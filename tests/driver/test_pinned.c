/* Pinned memory: its names, the ladder when registering is refused, copies across pieces, pools. */
#include "core/fault.h"
#include "driver/pinned/pinned.h"
#include "sim_test.h"
#include "support/fault_loop.h"

#include <raffia/config.h>
#include <raffia/log.h>
#include <raffia/pool.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct driver_device open_device(const char *name)
{
    struct driver_device device;
    assert_ok(driver_open(name, &device));
    return device;
}

static raffia_pinned_usage usage_now(void)
{
    raffia_pinned_usage usage;
    assert_ok(raffia_device_query_pinned("sim:0", &usage));
    return usage;
}

static size_t bytes_now(void)
{
    raffia_pinned_usage usage = usage_now();
    return usage.registered_bytes + usage.smaller_pieces_bytes + usage.driver_allocated_bytes +
           usage.pageable_bytes;
}

static uint64_t steps_to(raffia_page_kind kind)
{
    raffia_fallback_count rows[64];
    size_t count = raffia_fallbacks(rows, 64);
    uint64_t steps = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].reason == RAFFIA_REASON_PIN && rows[i].to_kind == kind)
            steps += rows[i].count;
    return steps;
}

static void configure(struct sim_config config)
{
    assert_ok(sim_configure(0, &config));
}

static const raffia_page_offer regular = {RAFFIA_PAGE_REGULAR, 4 * KIB};

static void a_device_is_named_after_its_gpu(void **state)
{
    (void)state;
    char name[RAFFIA_DEVICE_NAME_MAX];
    struct driver_device first = open_device("pinned:sim:0"), second = open_device("pinned:sim:1");
    assert_ptr_equal(first.driver, &pinned_driver);
    assert_int_not_equal(first.index, second.index);
    assert_int_equal(open_device("pinned:sim:0").index, first.index);
    assert_string_equal(driver_device_name(second, name), "pinned:sim:1");
    assert_int_equal(pinned_gpu(second.index).index, 1);
    raffia_device_info info;
    assert_ok(raffia_device_query("pinned:sim:1", &info));
    assert_string_equal(info.name, "pinned:sim:1");
    assert_true(info.cpu_accessible && info.asynchronous);

    struct driver_device none;
    assert_status(RAFFIA_ERROR_UNSUPPORTED, driver_open("pinned:host", &none));
    assert_error_mentions("pinned:host");
    assert_status(RAFFIA_ERROR_NOT_FOUND, driver_open("pinned:tape:0", &none));
    assert_status(RAFFIA_ERROR_NOT_FOUND, driver_open("tape:0", &none));
    assert_error_mentions("'pinned:cuda:0'");
    assert_status(RAFFIA_ERROR_NOT_FOUND, driver_open("pinned:sim:77", &none));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver_open("pinned:pinned:sim:0", &none));
}

static void memory_is_registered_in_pieces_at_page_boundaries(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    struct pinned_memory memory;
    assert_ok(raffia_config_set("pin_piece", "300KiB"));
    assert_ok(pinned_take(device.index, &regular, 1, MIB + 5, 2, &memory));
    assert_int_equal(memory.way, PINNED_REGISTERED);
    struct sim_usage usage = sim_test_usage(0);
    assert_int_equal(usage.registrations, 4); /* 300 + 300 + 300 + the rest of 257 pages */
    assert_int_equal(usage.registered_bytes, MIB + 4 * KIB);
    assert_int_equal(usage_now().registered_bytes, MIB + 5);
    memset(memory.at, 1, memory.bytes);
    assert_ok(pinned_give(device.index, &memory));
    assert_int_equal(bytes_now(), 0);
    assert_ok(raffia_config_set("pin_piece", NULL));
}

static void a_piece_refused_undoes_the_pieces_before_it(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    struct pinned_memory memory;
    assert_ok(raffia_config_set("pin_piece", "256KiB"));
    /* The last, shorter piece alone would do: all are taken in smaller ones. */
    configure((struct sim_config){.register_bytes_max = 64 * KIB});
    uint64_t before = steps_to(RAFFIA_PAGE_REGULAR);
    assert_ok(pinned_take(device.index, &regular, 1, MIB, 1, &memory));
    assert_int_equal(memory.way, PINNED_IN_SMALLER_PIECES);
    assert_int_equal(sim_test_usage(0).registrations, 32);
    assert_int_equal(usage_now().smaller_pieces_bytes, MIB);
    assert_int_equal(steps_to(RAFFIA_PAGE_REGULAR), before + 1);
    assert_ok(pinned_give(device.index, &memory));
    assert_ok(raffia_config_set("pin_piece", NULL));
}

static void the_driver_allocates_what_it_will_not_register(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    struct pinned_memory memory;
    configure((struct sim_config){.register_bytes_max = 1});
    assert_ok(pinned_take(device.index, &regular, 1, MIB, 1, &memory));
    assert_int_equal(memory.way, PINNED_BY_DRIVER);
    assert_int_equal(sim_test_usage(0).host_block_bytes, MIB);
    assert_int_equal(usage_now().driver_allocated_bytes, MIB);
    memset(memory.at, 1, MIB);
    assert_ok(pinned_give(device.index, &memory));
}

static void memory_that_nobody_pins_is_pageable(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    struct pinned_memory memory;
    configure((struct sim_config){.register_bytes_max = 1, .refuses_host_alloc = true});
    uint64_t before = steps_to(RAFFIA_PAGE_NONE);
    assert_ok(pinned_take(device.index, &regular, 1, MIB, 1, &memory));
    assert_int_equal(memory.way, PINNED_PAGEABLE);
    assert_string_equal(pinned_way_name(memory.way), "pageable");
    assert_int_equal(usage_now().pageable_bytes, MIB);
    assert_int_equal(steps_to(RAFFIA_PAGE_NONE), before + 1);
    memset(memory.at, 1, MIB);
    assert_ok(pinned_give(device.index, &memory));
    assert_int_equal(bytes_now(), 0);
}

static void a_lost_device_pins_nothing_but_gives_memory_back(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    struct pinned_memory memory, more;
    void *block;
    assert_ok(pinned_take(device.index, &regular, 1, MIB, 1, &memory));
    assert_ok(device.driver->mem_alloc(device.index, 100, &block));
    sim_poison(0);
    assert_status(RAFFIA_ERROR_DRIVER, pinned_take(device.index, &regular, 1, MIB, 1, &more));
    assert_ok(pinned_give(device.index, &memory));
    assert_ok(device.driver->mem_free(device.index, block, 100));
    assert_int_equal(bytes_now(), 0);
}

static raffia_status take_and_give(void *context)
{
    const struct driver_device *device = context;
    struct pinned_memory memory;
    raffia_status status = pinned_take(device->index, &regular, 1, MIB, 1, &memory);
    if (status)
        return status;
    memset(memory.at, 1, MIB);
    assert_ok(pinned_give(device->index, &memory));
    return RAFFIA_OK;
}

static void taking_survives_every_failure(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    static const struct sim_config configs[] = {
        {0}, {.register_bytes_max = 200 * KIB}, {.register_bytes_max = 1}};
    for (size_t i = 0; i < 3; i++) {
        configure(configs[i]);
        assert_true(fault_loop(take_and_give, &device, 1000) > 5);
        assert_int_equal(bytes_now(), 0);
        assert_int_equal(sim_test_usage(0).misuses, 0);
    }
}

static raffia_pool *make_pool(size_t chunk)
{
    raffia_pool *pool;
    assert_ok(raffia_pool_create(&(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                                                        .device = "pinned:sim:0",
                                                        .pages = RAFFIA_PAGES_TRY,
                                                        .initial_bytes = 8 * MIB,
                                                        .maximum_bytes = 16 * MIB,
                                                        .chunk_bytes = chunk},
                                 &pool));
    return pool;
}

static void a_pool_holds_pinned_memory(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool(4 * MIB);
    assert_int_equal(sim_test_usage(0).registered_bytes, 8 * MIB);
    assert_int_equal(sim_test_usage(0).registrations, 2);
    void *block;
    assert_ok(raffia_pool_alloc(pool, MIB, 0, &block));
    memset(block, 7, MIB);
    assert_ok(raffia_pool_free(pool, block));
    assert_ok(raffia_pool_check(pool));
    raffia_pool_release(pool);
}

static void a_pool_on_a_device_that_registers_nothing_still_works(void **state)
{
    (void)state;
    configure((struct sim_config){.register_bytes_max = 1, .refuses_host_alloc = true});
    raffia_pool *pool = make_pool(4 * MIB);
    assert_int_equal(usage_now().pageable_bytes, 8 * MIB);
    void *block;
    assert_ok(raffia_pool_alloc(pool, MIB, 0, &block));
    memset(block, 7, MIB);
    assert_ok(raffia_pool_free(pool, block));
    raffia_pool_release(pool);
    assert_int_equal(bytes_now(), 0);
}

/* A block over two chunks is over two registrations. */
static void copies_go_on_from_piece_to_piece(void **state)
{
    (void)state;
    const size_t bytes = 5 * MIB;
    raffia_pool *pool = make_pool(2 * MIB);
    struct driver_device device = open_device("pinned:sim:0");
    void *block, *memory, *other;
    assert_ok(raffia_pool_alloc(pool, 2 * bytes / 2, 0, &block));
    assert_ok(raffia_pool_alloc(pool, bytes, 0, &other));
    assert_ok(sim_driver.mem_alloc(0, bytes, &memory));
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)block)[i] = (unsigned char)(i * 31 >> 3);
    assert_ok(device.driver->copy(device.index, NULL, memory, block, bytes));
    assert_ok(device.driver->copy_batch(device.index, NULL,
                                        &(struct driver_copy){other, memory, bytes}, 1));
    assert_ok(device.driver->stream_wait(device.index, NULL));
    assert_memory_equal(block, other, bytes);
    assert_ok(device.driver->fill(device.index, NULL, other, 9, bytes));
    assert_ok(device.driver->stream_wait(device.index, NULL));
    assert_int_equal(((unsigned char *)other)[bytes - 1], 9);
    assert_true(sim_calls("copy_batch") >= 2);
    assert_ok(sim_driver.mem_free(0, memory, bytes));
    assert_ok(raffia_pool_free(pool, block));
    assert_ok(raffia_pool_free(pool, other));
    raffia_pool_release(pool);
}

static void a_copy_across_registrations_is_a_misuse_of_the_gpu(void **state)
{
    (void)state;
    void *memory = NULL, *block;
    assert_int_equal(posix_memalign(&memory, 4 * KIB, 8 * KIB), 0);
    memset(memory, 0, 8 * KIB);
    assert_ok(sim_driver.mem_alloc(0, 8 * KIB, &block));
    assert_ok(sim_driver.host_register(0, memory, 4 * KIB));
    assert_misuse(sim_driver.copy(0, NULL, block, memory, 8 * KIB), "edge of a registration");
    assert_ok(sim_driver.copy(0, NULL, block, memory, 4 * KIB));
    assert_ok(sim_driver.stream_wait(0, NULL));
    assert_ok(sim_driver.host_unregister(0, memory, 4 * KIB));
    assert_ok(sim_driver.mem_free(0, block, 8 * KIB));
    free(memory);
}

static void blocks_are_freed_as_they_were_given(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    enum { BLOCKS = 40 };
    void *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        assert_ok(device.driver->mem_alloc(device.index, (size_t)i * 1000 + 1, &blocks[i]));
        memset(blocks[i], i, (size_t)i * 1000 + 1);
    }
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, device.driver->mem_free(device.index, blocks[3], 1));
    assert_status(RAFFIA_ERROR_BAD_ADDRESS,
                  device.driver->mem_free(device.index, (char *)blocks[3] + 1, 3001));
    for (int i = 0; i < BLOCKS; i++) {
        int k = i * 7 % BLOCKS;
        assert_int_equal(*(unsigned char *)blocks[k], k);
        assert_ok(device.driver->mem_free(device.index, blocks[k], (size_t)k * 1000 + 1));
    }
    assert_status(RAFFIA_ERROR_BAD_ADDRESS, device.driver->mem_free(device.index, blocks[0], 1));
    assert_int_equal(bytes_now(), 0);
}

static void an_unregistration_that_fails_can_be_tried_again(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    struct pinned_memory memory;
    void *block;
    assert_ok(raffia_config_set("pin_piece", "256KiB"));
    assert_ok(pinned_take(device.index, &regular, 1, MIB, 1, &memory));
    sim_fail_next("host_unregister", RAFFIA_ERROR_BUSY, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_BUSY, pinned_give(device.index, &memory));
    memset(memory.at, 1, MIB);
    assert_ok(pinned_give(device.index, &memory));
    assert_ok(device.driver->mem_alloc(device.index, MIB, &block));
    sim_fail_next("host_unregister", RAFFIA_ERROR_BUSY, RAFFIA_REASON_NONE);
    assert_status(RAFFIA_ERROR_BUSY, device.driver->mem_free(device.index, block, MIB));
    memset(block, 1, MIB);
    assert_ok(device.driver->mem_free(device.index, block, MIB));
    assert_ok(raffia_config_set("pin_piece", NULL));
}

static void a_forked_child_is_refused_without_a_look(void **state)
{
    (void)state;
    struct driver_device device = open_device("pinned:sim:0");
    struct pinned_memory memory, more;
    assert_ok(pinned_take(device.index, &regular, 1, MIB, 1, &memory));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char byte = 0;
        int code = 0;
        if (device.driver->copy(device.index, NULL, &byte, memory.at, 1) != RAFFIA_ERROR_FORKED)
            code |= 1;
        if (pinned_take(device.index, &regular, 1, MIB, 1, &more) != RAFFIA_ERROR_FORKED)
            code |= 2;
        if (device.driver->mem_free(device.index, memory.at, MIB) != RAFFIA_ERROR_FORKED)
            code |= 4;
        if (pinned_give(device.index, &memory) != RAFFIA_ERROR_FORKED)
            code |= 8;
        _exit(code);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_ok(pinned_give(device.index, &memory));
}

/* Its user goes on with a chunk that stays mapped: what is said of it has to be so. */
static void a_chunk_that_stays_mapped_is_pinned_as_it_is_counted(void **state)
{
    (void)state;
    enum { BYTES = 64 << 10 };
    struct driver_device device = open_device("pinned:sim:0");
    const struct driver_chunk_spec spec = {.bytes = BYTES,
                                           .page_size = regular.size,
                                           .kind = regular.kind,
                                           .numa_node = -1,
                                           .threads = 1};
    raffia_fallback_reason reason;
    driver_chunk chunk;
    void *at;
    unsigned stayed = 0;
    assert_ok(device.driver->range_reserve(device.index, BYTES, regular.size, &at));
    assert_ok(device.driver->chunk_create(device.index, &spec, &chunk, &reason));
    for (long n = 1;; n++) {
        assert_ok(device.driver->chunk_map(device.index, chunk, at, &reason));
        core_fault_arm(n);
        raffia_status status = device.driver->chunk_unmap(device.index, chunk, at);
        const bool fired = core_fault_disarm() != NULL;
        if (status) {
            struct sim_usage usage;
            sim_query(0, &usage);
            assert_true(fired);
            assert_int_equal(bytes_now(), BYTES);
            assert_int_equal(usage.registered_bytes, usage_now().registered_bytes);
            memset(at, 1, BYTES);
            assert_ok(device.driver->chunk_unmap(device.index, chunk, at));
            stayed++;
        }
        assert_int_equal(bytes_now(), 0);
        if (!fired)
            break;
    }
    assert_true(stayed > 0);
    assert_ok(device.driver->chunk_destroy(device.index, chunk));
    assert_ok(device.driver->range_release(device.index, at, BYTES));
}

static int make_quiet(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(a_device_is_named_after_its_gpu),
        SIM_TEST(memory_is_registered_in_pieces_at_page_boundaries),
        SIM_TEST(a_piece_refused_undoes_the_pieces_before_it),
        SIM_TEST(the_driver_allocates_what_it_will_not_register),
        SIM_TEST(memory_that_nobody_pins_is_pageable),
        SIM_TEST_OF_MISUSE(a_lost_device_pins_nothing_but_gives_memory_back),
        SIM_TEST(taking_survives_every_failure),
        SIM_TEST(a_pool_holds_pinned_memory),
        SIM_TEST(a_pool_on_a_device_that_registers_nothing_still_works),
        SIM_TEST(copies_go_on_from_piece_to_piece),
        SIM_TEST_OF_MISUSE(a_copy_across_registrations_is_a_misuse_of_the_gpu),
        SIM_TEST(blocks_are_freed_as_they_were_given),
        SIM_TEST(an_unregistration_that_fails_can_be_tried_again),
        SIM_TEST(a_chunk_that_stays_mapped_is_pinned_as_it_is_counted),
        SIM_TEST(a_forked_child_is_refused_without_a_look),
    };
    return cmocka_run_group_tests_name("pinned memory", tests, make_quiet, NULL);
}
