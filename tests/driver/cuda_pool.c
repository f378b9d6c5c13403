#include "driver/cuda_pool.h"

#include "driver/cuda/cuda_driver.h"
#include "support/cmocka.h"

#include <raffia/config.h>
#include <raffia/pool.h>
#include <raffia/umd.h>

#include <string.h>

#define MIB ((size_t)1 << 20)

static void fill(void *at, unsigned char value, size_t bytes)
{
    assert_ok(cuda_driver.fill(0, NULL, at, value, bytes));
    assert_ok(cuda_driver.stream_wait(0, NULL));
}

static unsigned char byte_at(const void *at)
{
    unsigned char value = 0;
    assert_ok(cuda_driver.copy(0, NULL, &value, at, 1));
    assert_ok(cuda_driver.stream_wait(0, NULL));
    return value;
}

void the_default_device_is_the_gpu(void **state)
{
    (void)state;
    raffia_device_info info;
    assert_ok(raffia_device_query(NULL, &info));
    assert_string_equal(info.name, "cuda:0");
    assert_true(info.asynchronous);
    assert_false(info.cpu_accessible);
    assert_false(info.verifies_pages);
    print_message("%s: %s, %zu MiB, %zu free, node %d, largest page %zu\n", info.name, info.model,
                  info.total_bytes / MIB, info.free_bytes / MIB, info.numa_node,
                  info.pages[0].size);
    assert_ok(raffia_device_query("host", &info));
}

static raffia_pool *make_pool(unsigned flags)
{
    const raffia_pool_options options = {.struct_size = sizeof options,
                                         .device = "cuda:0",
                                         .pages = RAFFIA_PAGES_ON,
                                         .initial_bytes = 16 * MIB,
                                         .maximum_bytes = 64 * MIB,
                                         .chunk_bytes = 16 * MIB,
                                         .flags = flags};
    raffia_pool *pool = NULL;
    assert_ok(raffia_pool_create(&options, &pool));
    return pool;
}

static void use(raffia_pool *pool)
{
    void *blocks[3];
    const size_t sizes[] = {1, 3 * MIB, 30 * MIB};
    raffia_pool_stats stats;
    for (int i = 0; i < 3; i++) {
        assert_ok(raffia_pool_alloc(pool, sizes[i], 0, &blocks[i]));
        fill(blocks[i], (unsigned char)(i + 1), sizes[i]);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(byte_at((char *)blocks[i] + sizes[i] - 1), i + 1);
    assert_ok(raffia_pool_query(pool, &stats));
    assert_int_equal(stats.requested_bytes, sizes[0] + sizes[1] + sizes[2]);
    assert_true(stats.chunks > 1); /* it grew */
    for (int i = 0; i < 3; i++)
        assert_ok(raffia_pool_free(pool, blocks[i]));
    size_t released = 0;
    assert_ok(raffia_pool_trim(pool, 0, &released));
    assert_true(released >= 48 * MIB);
}

void a_pool_lives_in_device_memory(void **state)
{
    (void)state;
    const unsigned flags[] = {0, RAFFIA_POOL_REMAPPABLE, RAFFIA_POOL_SHAREABLE};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        raffia_pool *pool = make_pool(flags[i]);
        use(pool);
        raffia_pool_release(pool);
    }
}

void a_guarded_pool_sees_what_was_written_behind_a_block(void **state)
{
    (void)state;
    raffia_pool *pool = make_pool(RAFFIA_POOL_GUARD);
    void *block;
    assert_ok(raffia_pool_alloc(pool, 100, 0, &block));
    fill(block, 7, 100);
    assert_ok(raffia_pool_free(pool, block));
    assert_ok(raffia_pool_alloc(pool, 100, 0, &block));
    fill(block, 7, 101);
    assert_status(RAFFIA_ERROR_CORRUPT, raffia_pool_free(pool, block));
    raffia_pool_release(pool);
}

/* SPEC B5, B7 */
void seed_calls_serve_device_memory(void **state)
{
    (void)state;
    assert_int_equal(umd_huge_page_pool_init(0, 64 * MIB), 0);
    char *block = umd_huge_page_alloc(0, 3 * MIB, 0);
    assert_non_null(block);
    fill(block, 0x55, 3 * MIB);
    assert_int_equal(byte_at(block + 3 * MIB - 1), 0x55);
    assert_true(umd_huge_page_free(0, block + 1) != 0);
    assert_int_equal(umd_huge_page_free(0, block), 0);
    assert_true(umd_huge_page_free(0, block) != 0);
    assert_int_equal(umd_huge_page_pool_destroy(0), 0);
}
