/* The record of regular blocks, beside an array of the same, and its bound. */
#include "core/fault.h"
#include "core/memory.h"
#include "resource/record.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/random.h"

#include <string.h>

#define ADDRESSES 600
#define STEPS     200000

/* Addresses that differ in few bits, as an allocator's do. */
static struct resource_block block_of(size_t i)
{
    return (struct resource_block){
        .address = (void *)(uintptr_t)(0x7f0000000000u + i * 4096),
        .start = (void *)(uintptr_t)(0x7f0000000000u + i * 4096 - 64),
        .bytes = i + 1,
        .requested = i + 1,
    };
}

static void an_empty_record_holds_nothing_and_no_memory(void **state)
{
    (void)state;
    const long memory = core_memory_live();
    struct resource_blocks blocks = {0};
    struct resource_block block = block_of(1), found;
    assert_false(resource_blocks_take(&blocks, block.address, &found));
    assert_false(resource_blocks_find(&blocks, block.address, &found));
    assert_ok(resource_blocks_add(&blocks, &block));
    assert_false(resource_blocks_find(&blocks, block.start, &found));
    assert_true(resource_blocks_find(&blocks, block.address, &found));
    assert_int_equal(found.bytes, block.bytes);
    assert_false(resource_blocks_take(&blocks, block.start, &found));
    assert_false(resource_blocks_take(&blocks, NULL, &found));
    assert_true(resource_blocks_take(&blocks, block.address, &found));
    assert_ptr_equal(found.start, block.start);
    assert_int_equal(found.bytes, block.bytes);
    assert_false(resource_blocks_take(&blocks, block.address, &found));
    assert_int_equal(core_memory_live(), memory);
}

static void a_record_remembers_what_an_array_does(void **state)
{
    (void)state;
    struct test_random random = test_random_seeded("a_record_remembers_what_an_array_does");
    struct resource_blocks blocks = {0};
    bool there[ADDRESSES] = {false};
    size_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        /* Swings between few blocks and many. */
        const bool filling = (step / 2000) % 2 == 0;
        const size_t i = test_random_below(&random, ADDRESSES);
        const struct resource_block block = block_of(i);
        struct resource_block found;
        if (!there[i] && (filling || test_random_below(&random, 8) == 0)) {
            assert_ok(resource_blocks_add(&blocks, &block));
            there[i] = true;
            count++;
        } else {
            assert_int_equal(resource_blocks_take(&blocks, block.address, &found), there[i]);
            if (there[i]) {
                assert_ptr_equal(found.address, block.address);
                assert_int_equal(found.bytes, block.bytes);
                count--;
            }
            there[i] = false;
        }
        assert_int_equal(blocks.count, count);
    }
    struct resource_block found;
    for (size_t i = 0; i < ADDRESSES; i++)
        assert_int_equal(resource_blocks_take(&blocks, block_of(i).address, &found), there[i]);
    assert_null(blocks.places);
}

static raffia_status fill_and_empty(void *context)
{
    (void)context;
    struct resource_blocks blocks = {0};
    struct resource_block found;
    raffia_status status = RAFFIA_OK;
    size_t added = 0;
    while (!status && added < ADDRESSES) {
        const struct resource_block block = block_of(added);
        status = resource_blocks_add(&blocks, &block);
        added += status ? 0 : 1;
    }
    assert_int_equal(blocks.count, added);
    for (size_t i = 0; i < added; i++)
        assert_true(resource_blocks_take(&blocks, block_of(i).address, &found));
    return status;
}

static void a_record_that_cannot_grow_keeps_what_it_has(void **state)
{
    (void)state;
    assert_true(fault_loop(fill_and_empty, NULL, 100) > 5);
}

/* However many were lent and whatever came in between: each can come back with no memory to be had.
 */
static void what_was_lent_can_come_back(void **state)
{
    enum { LENT = 12 };
    (void)state;
    struct resource_blocks blocks = {0};
    struct resource_block lent[LENT], found;
    const long memory = core_memory_live();
    size_t count = 0;
    while (count < LENT) {
        const struct resource_block block = block_of(count++);
        assert_ok(resource_blocks_add(&blocks, &block));
    }
    assert_false(resource_blocks_lend(&blocks, block_of(count).address, &found));
    for (size_t i = 0; i < LENT; i++) {
        assert_true(resource_blocks_lend(&blocks, block_of(i).address, &lent[i]));
        assert_false(resource_blocks_lend(&blocks, block_of(i).address, &found));
        assert_false(resource_blocks_take(&blocks, block_of(i).address, &found));
    }
    core_fault_arm(1); /* the next memory that is asked for is refused */
    raffia_status status = RAFFIA_OK;
    while (!status) {
        const struct resource_block block = block_of(count);
        status = resource_blocks_add(&blocks, &block);
        count += status ? 0 : 1;
    }
    for (size_t i = 0; i < LENT; i++)
        resource_blocks_put_back(&blocks, &lent[i]);
    core_fault_disarm();
    for (size_t i = 0; i < count; i++) {
        assert_true(resource_blocks_lend(&blocks, block_of(i).address, &found));
        assert_int_equal(found.bytes, i + 1);
        resource_blocks_settle(&blocks);
    }
    assert_int_equal(core_memory_live(), memory);
}

/* However many the headers say there may be, whoever keeps the record. */
static void a_full_record_says_how_many_are_live(void **state)
{
    (void)state;
    const long memory = core_memory_live();
    struct resource_record *record;
    struct resource_block block, found;
    size_t live = 0;
    raffia_status status = resource_record_create(&record);
    while (!status) {
        block = block_of(live);
        status = resource_record_add(record, &block);
        live += status ? 0 : 1;
    }
    assert_status(RAFFIA_ERROR_LIMIT, status);
    assert_int_equal(live, 1048576);
    assert_error_mentions("1048576 blocks are live");
    while (live > 0) {
        block = block_of(--live);
        assert_ok(resource_record_take(record, block.address, block.bytes, 0, false, &found));
    }
    assert_true(core_memory_live() > memory); /* ready for the next */
    resource_record_destroy(record);
    assert_int_equal(core_memory_live(), memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_record_holds_nothing_and_no_memory),
        cmocka_unit_test(a_record_remembers_what_an_array_does),
        cmocka_unit_test(a_record_that_cannot_grow_keeps_what_it_has),
        cmocka_unit_test(what_was_lent_can_come_back),
        cmocka_unit_test(a_full_record_says_how_many_are_live),
    };
    return cmocka_run_group_tests_name("resource blocks", tests, NULL, NULL);
}
