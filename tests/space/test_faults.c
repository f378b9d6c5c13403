/* Out of host memory: everything stays as it was, nothing is lost, and a free never needs any. */
#include "core/fault.h"
#include "fixture.h"
#include "space/index.h"
#include "support/fault_loop.h"

enum { PARTS = 40, PART = 8, BLOCKS = 200 };

struct picture {
    struct space_stats stats;
    size_t count;
    struct space_block blocks[4 * BLOCKS];
};

static bool note(void *context, const struct space_block *block)
{
    struct picture *picture = context;
    assert_true(picture->count < 4 * BLOCKS);
    picture->blocks[picture->count++] = *block;
    return true;
}

static void take_picture(struct space *space, struct picture *picture)
{
    memset(picture, 0, sizeof *picture);
    space_query(space, &picture->stats);
    space_walk(space, note, picture);
}

/* A failed step left everything as the picture shows it. */
static raffia_status unchanged(struct space *space, raffia_status status,
                               const struct picture *before)
{
    struct picture after;
    take_picture(space, &after);
    assert_int_equal(status, RAFFIA_ERROR_OUT_OF_HOST_MEMORY);
    assert_memory_equal(&after.stats, &before->stats, sizeof after.stats);
    assert_int_equal(after.count, before->count);
    for (size_t i = 0; i < after.count; i++)
        assert_same_block(&after.blocks[i], &before->blocks[i]);
    assert_ok(space_check(space));
    return status;
}

static raffia_status add_parts(struct space *space)
{
    struct picture before;
    for (size_t i = 0; i < PARTS; i++) {
        take_picture(space, &before);
        raffia_status status = space_add(space, 2 * i * PART * GRANULE, PART * GRANULE);
        if (status)
            return unchanged(space, status, &before);
    }
    return RAFFIA_OK;
}

static raffia_status take_blocks(struct space *space, struct space_block *blocks, size_t *count)
{
    struct picture before;
    for (*count = 0; *count < BLOCKS; ++*count) {
        take_picture(space, &before);
        struct space_request request = {.bytes = 1 + *count % 2 * GRANULE,
                                        .alignment = *count % 3 ? 0 : 2 * GRANULE};
        raffia_status status = space_allocate(space, &request, &blocks[*count]);
        if (status == RAFFIA_ERROR_OUT_OF_MEMORY)
            return RAFFIA_OK;
        if (status)
            return unchanged(space, status, &before);
    }
    return RAFFIA_OK;
}

static raffia_status shrink_blocks(struct space *space, const struct space_block *blocks,
                                   size_t count)
{
    struct picture before;
    for (size_t i = 0; i < count; i++) {
        take_picture(space, &before);
        raffia_status status = space_resize(space, blocks[i].handle, 1);
        if (status)
            return unchanged(space, status, &before);
    }
    return RAFFIA_OK;
}

static raffia_status remove_middles(struct space *space)
{
    struct picture before;
    for (size_t i = 0; i < PARTS; i++) {
        take_picture(space, &before);
        raffia_status status =
            space_remove(space, (2 * i * PART + PART / 2) * GRANULE, PART / 4 * GRANULE);
        if (status)
            return unchanged(space, status, &before);
    }
    return RAFFIA_OK;
}

static raffia_status scenario(void *context)
{
    (void)context;
    struct space_options options = {.range_bytes = 2 * PARTS * PART * GRANULE, .granule = GRANULE};
    struct space *space = NULL;
    raffia_status status = space_create(&options, &space);
    if (status) {
        assert_null(space);
        return status;
    }
    struct space_block blocks[BLOCKS];
    size_t count = 0;
    status = add_parts(space);
    if (!status)
        status = take_blocks(space, blocks, &count);
    if (!status)
        status = shrink_blocks(space, blocks, count);
    for (size_t i = 0; i < count; i++)
        assert_ok(space_free(space, blocks[i].handle));
    assert_ok(space_check(space));
    if (!status)
        status = remove_middles(space);
    space_destroy(space);
    return status;
}

static void each_failing_allocation_leaves_the_space_as_it_was(void **state)
{
    (void)state;
    long failed = fault_loop(scenario, NULL, 1000);
    /* The space; its records, the stack of spare ones and its table, each for 64, 128, 256. */
    assert_true(failed >= 7);
}

/* Removing the middle of a stretch takes two records; here one is left. */
static void removing_without_host_memory_changes_nothing(void **state)
{
    (void)state;
    enum { RECORDS = 63 };
    struct space_options options = {.range_bytes = 4 * RECORDS * GRANULE, .granule = GRANULE};
    struct space *space = NULL;
    assert_ok(space_create(&options, &space));
    for (size_t i = 0; i < RECORDS; i++)
        assert_ok(space_add(space, 4 * i * GRANULE, 3 * GRANULE));
    assert_int_equal(space->spare_count, 1);
    struct picture before;
    take_picture(space, &before);
    core_fault_arm(1);
    raffia_status status = space_remove(space, GRANULE, GRANULE);
    assert_non_null(core_fault_disarm());
    unchanged(space, status, &before);
    assert_ok(space_remove(space, GRANULE, GRANULE));
    assert_ok(space_check(space));
    space_destroy(space);
}

static void freeing_asks_for_nothing(void **state)
{
    (void)state;
    struct space_options options = {.range_bytes = BLOCKS * GRANULE, .granule = GRANULE};
    struct space *space = NULL;
    struct space_block blocks[BLOCKS];
    assert_ok(space_create(&options, &space));
    assert_ok(space_add(space, 0, options.range_bytes));
    for (size_t i = 0; i < BLOCKS; i++) {
        struct space_request request = {.bytes = 1};
        assert_ok(space_allocate(space, &request, &blocks[i]));
    }
    core_fault_arm(1);
    for (size_t i = 0; i < BLOCKS; i++)
        assert_ok(space_free(space, blocks[(i * 7) % BLOCKS].handle));
    assert_null(core_fault_disarm());
    assert_ok(space_check(space));
    space_destroy(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failing_allocation_leaves_the_space_as_it_was),
        cmocka_unit_test(removing_without_host_memory_changes_nothing),
        cmocka_unit_test(freeing_asks_for_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
