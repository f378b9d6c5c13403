/* Comparing a space with its model as a whole. */
#include "support/space_model_inside.h"

uint32_t space_model_run_end(const struct space_model *model, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < model->granules && model->owners[end] == model->owners[first])
        end++;
    return end;
}

uint32_t space_model_run_start(const struct space_model *model, uint32_t granule)
{
    while (granule > 0 && model->owners[granule - 1] == model->owners[granule])
        granule--;
    return granule;
}

static void require_same(const struct space_model *model, uint32_t first, uint32_t end,
                         const struct space_block *got)
{
    uint32_t owner = model->owners[first];
    struct space_block expected = {
        .offset = first * model->granule,
        .bytes = (end - first) * model->granule,
        .requested = (end - first) * model->granule,
        .state = SPACE_FREE,
    };
    if (owner != MODEL_FREE) {
        const struct model_block *block = &model->blocks[owner - MODEL_FIRST];
        expected.handle = block->handle;
        expected.requested = block->requested;
        expected.state = block->state;
    }
    REQUIRE(got->handle == expected.handle && got->offset == expected.offset &&
                got->bytes == expected.bytes && got->requested == expected.requested &&
                got->state == expected.state,
            "the block at %zu is %zu bytes (%zu) in state %d; expected %zu at %zu (%zu) in %d",
            got->offset, got->bytes, got->requested, got->state, expected.bytes, expected.offset,
            expected.requested, expected.state);
}

void space_model_compare_lookups(const struct space_model *model, uint32_t granule, size_t inside)
{
    size_t offset = granule * model->granule + inside;
    uint32_t owner = model->owners[granule];
    struct space_block block;
    raffia_status status = space_containing(model->space, offset, &block);
    REQUIRE(status == (owner == MODEL_ABSENT ? RAFFIA_ERROR_NOT_FOUND : RAFFIA_OK),
            "containing %zu: %s", offset, raffia_status_name(status));
    if (!status)
        require_same(model, space_model_run_start(model, granule),
                     space_model_run_end(model, granule), &block);

    bool starts = owner != MODEL_ABSENT && owner != MODEL_FREE && inside == 0 &&
                  model->blocks[owner - MODEL_FIRST].first == granule;
    status = space_find(model->space, offset, &block);
    REQUIRE(status == (starts ? RAFFIA_OK : RAFFIA_ERROR_BAD_ADDRESS), "find %zu: %s", offset,
            raffia_status_name(status));
    if (!status)
        require_same(model, granule, space_model_run_end(model, granule), &block);
}

struct walk {
    const struct space_model *model;
    uint32_t next; /* granule */
};

static bool compare_visited(void *context, const struct space_block *block)
{
    struct walk *walk = context;
    const struct space_model *model = walk->model;
    while (walk->next < model->granules && model->owners[walk->next] == MODEL_ABSENT)
        walk->next++;
    REQUIRE(walk->next < model->granules, "walk: more than there is, at %zu", block->offset);
    uint32_t end = space_model_run_end(model, walk->next);
    require_same(model, walk->next, end, block);
    walk->next = end;
    return true;
}

static void count_run(const struct space_model *model, uint32_t start, uint32_t end,
                      struct space_stats *stats)
{
    uint32_t owner = model->owners[start];
    size_t bytes = (end - start) * model->granule;
    if (owner == MODEL_ABSENT)
        return;
    stats->present_bytes += bytes;
    if (owner == MODEL_FREE) {
        stats->free_bytes += bytes;
        stats->state_bytes[SPACE_FREE] += bytes;
        stats->free_blocks++;
        if (bytes > stats->largest_free)
            stats->largest_free = bytes;
        return;
    }
    const struct model_block *block = &model->blocks[owner - MODEL_FIRST];
    stats->blocks++;
    stats->state_bytes[block->state] += bytes;
    if (block->state == SPACE_HELD)
        stats->requested_bytes += block->requested;
}

static void compare_stats(const struct space_model *model)
{
    struct space_stats expected = {0}, got;
    for (uint32_t start = 0, end; start < model->granules; start = end) {
        end = space_model_run_end(model, start);
        count_run(model, start, end, &expected);
    }
    space_query(model->space, &got);
    REQUIRE(got.present_bytes == expected.present_bytes && got.free_bytes == expected.free_bytes &&
                got.largest_free == expected.largest_free &&
                got.free_blocks == expected.free_blocks && got.blocks == expected.blocks &&
                got.requested_bytes == expected.requested_bytes,
            "query: %zu present, %zu free, %zu largest, %zu stretches, %zu blocks, %zu requested",
            got.present_bytes, got.free_bytes, got.largest_free, got.free_blocks, got.blocks,
            got.requested_bytes);
    for (unsigned state = 0; state < SPACE_STATES; state++)
        REQUIRE(got.state_bytes[state] == expected.state_bytes[state],
                "query: %zu bytes in state %u, expected %zu", got.state_bytes[state], state,
                expected.state_bytes[state]);
}

void space_model_compare(struct space_model *model)
{
    struct walk walk = {.model = model};
    space_walk(model->space, compare_visited, &walk);
    for (; walk.next < model->granules; walk.next++)
        REQUIRE(model->owners[walk.next] == MODEL_ABSENT, "walk: ended before granule %u",
                walk.next);
    compare_stats(model);
    for (uint32_t granule = 0; granule < model->granules; granule++) {
        space_model_compare_lookups(model, granule, 0);
        space_model_compare_lookups(model, granule, model->granule - 1);
    }
}
