#include "support/space_model_inside.h"

struct space_model *space_model_create(size_t granule, uint32_t granules)
{
    struct space_model *model = calloc(1, sizeof *model);
    if (!model)
        return NULL;
    model->granule = granule;
    model->granules = granules;
    model->owners = calloc(granules, sizeof *model->owners);
    model->blocks = calloc(granules, sizeof *model->blocks);
    struct space_options options = {.range_bytes = granules * granule, .granule = granule};
    if (!model->owners || !model->blocks || space_create(&options, &model->space)) {
        space_model_destroy(model);
        return NULL;
    }
    for (uint32_t i = 0; i < granules; i++)
        model->owners[i] = MODEL_ABSENT;
    return model;
}

void space_model_destroy(struct space_model *model)
{
    if (!model)
        return;
    space_destroy(model->space);
    free(model->owners);
    free(model->blocks);
    free(model);
}

void space_model_allow_faults(struct space_model *model, bool allowed)
{
    model->faults = allowed;
}

uint32_t space_model_blocks(const struct space_model *model)
{
    return model->block_count;
}

static void set_owners(struct space_model *model, uint32_t first, uint32_t count, uint32_t owner)
{
    for (uint32_t i = 0; i < count; i++)
        model->owners[first + i] = owner;
}

/* Whether all of [first, first + count) belongs to `owner`, as a length of one kind. */
static bool all_owned(const struct space_model *model, uint32_t first, uint32_t count,
                      uint32_t owner)
{
    for (uint32_t i = 0; i < count; i++)
        if (model->owners[first + i] != owner)
            return false;
    return true;
}

/* Whether the outcome is the model's. With faults allowed, running out of host memory is as good,
 * and then the model stays as it is. */
static bool agreed(const struct space_model *model, raffia_status expected, raffia_status got,
                   const char *verb)
{
    if (model->faults && got == RAFFIA_ERROR_OUT_OF_HOST_MEMORY)
        return false;
    REQUIRE(got == expected, "%s: %s, expected %s (%s)", verb, raffia_status_name(got),
            raffia_status_name(expected), raffia_last_error());
    return got == RAFFIA_OK;
}

/* A part of the range: granules, and the bytes said to the space, which are sometimes wrong. */
struct part {
    uint32_t first, count;
    size_t offset, bytes;
    bool valid;
};

static struct part part_of(const struct space_model *model, const struct space_model_step *step)
{
    struct part part = {.first = step->a % model->granules};
    uint32_t left = model->granules - part.first;
    /* Short parts are the usual ones; one in eight may be as long as the range. */
    uint32_t longest = step->c % 8 == 0 ? left : left < 40 ? left : 40;
    part.count = 1 + step->b % longest;
    part.offset = part.first * model->granule;
    part.bytes = part.count * model->granule;
    part.valid = true;
    switch (step->c / 8 % 64) { /* the ways in which it can be wrong */
    case 1:
        part.bytes = 0;
        break;
    case 2:
        part.bytes += model->granule / 2;
        break;
    case 3:
        part.offset += 1;
        break;
    case 4:
        part.bytes = (left + 1) * model->granule;
        break;
    case 5:
        part.bytes = SIZE_MAX - model->granule + 1;
        break;
    case 6:
        part.offset = model->granules * model->granule;
        break;
    default:
        return part;
    }
    part.valid = false;
    return part;
}

static raffia_status run_add(struct space_model *model, const struct space_model_step *step)
{
    struct part part = part_of(model, step);
    bool possible = part.valid && all_owned(model, part.first, part.count, MODEL_ABSENT);
    raffia_status status = space_add(model->space, part.offset, part.bytes);
    if (agreed(model, possible ? RAFFIA_OK : RAFFIA_ERROR_INVALID_ARGUMENT, status, "add"))
        set_owners(model, part.first, part.count, MODEL_FREE);
    return status;
}

static raffia_status run_remove(struct space_model *model, const struct space_model_step *step)
{
    struct part part = part_of(model, step);
    raffia_status expected = RAFFIA_ERROR_INVALID_ARGUMENT;
    if (part.valid)
        expected =
            all_owned(model, part.first, part.count, MODEL_FREE) ? RAFFIA_OK : RAFFIA_ERROR_BUSY;
    raffia_status status = space_remove(model->space, part.offset, part.bytes);
    if (agreed(model, expected, status, "remove"))
        set_owners(model, part.first, part.count, MODEL_ABSENT);
    return status;
}

/* Sizes: mostly up to 48 granules, odd bytes included; some of any length, zero or near the end of
 * the numbers. */
static size_t size_of(const struct space_model *model, uint32_t a, uint32_t kind)
{
    uint32_t most = kind % 16 == 0 ? model->granules + 1 : kind % 4 == 0 ? 48 : 6;
    switch (kind / 16 % 64) {
    case 1:
        return 0;
    case 2:
        return SIZE_MAX - a % 3 * (model->granule - 1);
    case 3:
        return (size_t)1 << 63;
    default:
        return 1 + (size_t)(a % most) * model->granule + a / 7 % model->granule;
    }
}

/* Granules that the bytes take, or 0 where no space is large enough. */
static uint32_t granules_of(const struct space_model *model, size_t bytes)
{
    size_t count = bytes / model->granule + (bytes % model->granule != 0);
    return count <= model->granules ? (uint32_t)count : 0;
}

/* The lowest (or highest) granule at which an aligned block fits into the stretch; false if none.
 */
static bool place_in(uint32_t start, uint32_t end, uint32_t count, size_t step, bool highest,
                     uint32_t *first_p)
{
    bool found = false;
    for (uint32_t i = start; i + count <= end; i++) {
        if (i % step != 0)
            continue;
        *first_p = i;
        found = true;
        if (!highest)
            break;
    }
    return found;
}

/* Where the block may go. ANY is free to choose the stretch, so only whether it fits is known. */
static bool predict(const struct space_model *model, uint32_t count, size_t step,
                    enum space_placement placement, uint32_t *first_p)
{
    bool found = false;
    for (uint32_t start = 0, end; start < model->granules; start = end) {
        end = space_model_run_end(model, start);
        if (model->owners[start] != MODEL_FREE)
            continue;
        if (place_in(start, end, count, step, placement == SPACE_PLACE_HIGH, first_p)) {
            found = true;
            if (placement != SPACE_PLACE_HIGH)
                break;
        }
    }
    return found;
}

static void check_placed(const struct space_model *model, const struct space_block *block,
                         uint32_t count, size_t step)
{
    uint32_t first = (uint32_t)(block->offset / model->granule), lowest;
    REQUIRE(first + count <= model->granules && all_owned(model, first, count, MODEL_FREE),
            "allocate: %zu bytes at %zu are not free", block->bytes, block->offset);
    uint32_t start = space_model_run_start(model, first);
    REQUIRE(place_in(start, space_model_run_end(model, first), count, step, false, &lowest) &&
                lowest == first,
            "allocate: %zu is not the lowest aligned offset of its stretch", block->offset);
}

/* A request that is not thorough may miss what is there when there is much to look at. */
static bool is_exact(const struct space_model *model, const struct space_request *request)
{
    uint32_t stretches = 0;
    for (uint32_t start = 0; start < model->granules; start = space_model_run_end(model, start))
        stretches += model->owners[start] == MODEL_FREE;
    return request->thorough || stretches < FEW_STRETCHES;
}

static void record_block(struct space_model *model, const struct space_block *block, uint32_t count,
                         size_t requested)
{
    uint32_t first = (uint32_t)(block->offset / model->granule);
    REQUIRE(block->bytes == count * model->granule && block->requested == requested &&
                block->state == SPACE_HELD && block->handle != 0 &&
                block->offset % model->granule == 0,
            "allocate: %zu bytes give %zu at %zu", requested, block->bytes, block->offset);
    model->blocks[model->block_count] = (struct model_block){
        block->handle, first, count, requested, SPACE_HELD,
    };
    set_owners(model, first, count, MODEL_FIRST + model->block_count++);
}

static raffia_status run_allocate(struct space_model *model, const struct space_model_step *step)
{
    struct space_request request = {
        .bytes = size_of(model, step->a, step->b),
        .alignment = step->c % 4 != 0 ? 0 : (size_t)1 << step->c / 4 % 64,
        .placement = (enum space_placement)(step->b / 1024 % 3),
        .thorough = step->c / 256 % 2 != 0,
    };
    bool bad = request.bytes == 0;
    if (step->c % 64 == 63) {
        request.alignment = 3 * model->granule;
        bad = true;
    }
    uint32_t count = granules_of(model, request.bytes), first = 0;
    size_t unit = request.alignment / model->granule;
    if (unit == 0)
        unit = 1;
    raffia_status expected = RAFFIA_ERROR_OUT_OF_MEMORY;
    if (bad)
        expected = RAFFIA_ERROR_INVALID_ARGUMENT;
    else if (count && predict(model, count, unit, request.placement, &first))
        expected = RAFFIA_OK;
    const bool exact = is_exact(model, &request);
    struct space_block block = {0};
    raffia_status status = space_allocate(model->space, &request, &block);
    if (!exact && status == RAFFIA_ERROR_OUT_OF_MEMORY && expected == RAFFIA_OK)
        return status;
    if (!agreed(model, expected, status, "allocate"))
        return status;
    if (request.placement != SPACE_PLACE_HIGH)
        check_placed(model, &block, count, unit);
    if (request.placement != SPACE_PLACE_ANY)
        REQUIRE(!exact || block.offset == first * model->granule,
                "allocate: placed at %zu instead of %zu", block.offset, first * model->granule);
    REQUIRE(all_owned(model, (uint32_t)(block.offset / model->granule), count, MODEL_FREE) &&
                block.offset / model->granule % unit == 0,
            "allocate: %zu bytes at %zu are not free or not aligned", block.bytes, block.offset);
    record_block(model, &block, count, request.bytes);
    return status;
}

static void forget_block(struct space_model *model, uint32_t place)
{
    struct model_block *block = &model->blocks[place];
    set_owners(model, block->first, block->count, MODEL_FREE);
    model->stale[model->stale_count++ % STALE_MAX] = block->handle;
    *block = model->blocks[--model->block_count];
    if (place < model->block_count)
        set_owners(model, block->first, block->count, MODEL_FIRST + place);
}

static raffia_status run_free(struct space_model *model, const struct space_model_step *step)
{
    if (model->block_count == 0)
        return RAFFIA_OK;
    uint32_t place = step->a % model->block_count;
    const struct model_block *block = &model->blocks[place];
    if (step->b % 2) {
        /* Any size, the right one, and a wrong one. */
        const size_t sizes[] = {0, block->requested, block->requested + 1};
        const unsigned choice = step->c % 3;
        const bool good = block->state == SPACE_HELD && choice < 2;
        size_t bytes = 0;
        raffia_status status =
            space_free_held(model->space, block->first * model->granule, sizes[choice], &bytes);
        REQUIRE(status == (good ? RAFFIA_OK : RAFFIA_ERROR_BAD_ADDRESS),
                "free_held: a block of %zu in state %u freed with %zu gives %s", block->requested,
                (unsigned)block->state, sizes[choice], raffia_status_name(status));
        if (!good)
            return status;
        REQUIRE(bytes == block->count * model->granule, "free_held: %zu bytes", bytes);
    } else {
        raffia_status status = space_free(model->space, block->handle);
        REQUIRE(status == RAFFIA_OK, "free: %s", raffia_last_error());
    }
    forget_block(model, place);
    return RAFFIA_OK;
}

static bool is_live(const struct space_model *model, space_handle handle)
{
    for (uint32_t i = 0; i < model->block_count; i++)
        if (model->blocks[i].handle == handle)
            return true;
    return false;
}

static raffia_status run_free_stale(struct space_model *model, const struct space_model_step *step)
{
    uint32_t known = model->stale_count < STALE_MAX ? model->stale_count : STALE_MAX;
    space_handle handle = (space_handle)step->b << 32 | step->a % 1024;
    if (known && step->c % 4 != 0)
        handle = model->stale[step->a % known];
    if (is_live(model, handle))
        return RAFFIA_OK;
    raffia_status status = space_free(model->space, handle);
    REQUIRE(status == RAFFIA_ERROR_BAD_ADDRESS, "free: handle %#llx gives %s",
            (unsigned long long)handle, raffia_status_name(status));
    status = space_resize(model->space, handle, 1);
    REQUIRE(status == RAFFIA_ERROR_BAD_ADDRESS, "resize: a stale handle gives %s",
            raffia_status_name(status));
    status = space_set_state(model->space, handle, SPACE_CACHED);
    REQUIRE(status == RAFFIA_ERROR_BAD_ADDRESS, "set_state: a stale handle gives %s",
            raffia_status_name(status));
    return status;
}

static raffia_status run_resize(struct space_model *model, const struct space_model_step *step)
{
    if (model->block_count == 0)
        return RAFFIA_OK;
    uint32_t place = step->a % model->block_count;
    struct model_block *block = &model->blocks[place];
    size_t bytes = size_of(model, step->b, step->c);
    uint32_t count = granules_of(model, bytes), end = block->first + block->count;
    raffia_status expected = RAFFIA_OK;
    if (bytes == 0)
        expected = RAFFIA_ERROR_INVALID_ARGUMENT;
    else if (count == 0 || block->first + count > model->granules ||
             (count > block->count && !all_owned(model, end, count - block->count, MODEL_FREE)))
        expected = RAFFIA_ERROR_OUT_OF_MEMORY;
    raffia_status status = space_resize(model->space, block->handle, bytes);
    if (!agreed(model, expected, status, "resize"))
        return status;
    set_owners(model, block->first, block->count, MODEL_FREE);
    set_owners(model, block->first, count, MODEL_FIRST + place);
    block->count = count;
    block->requested = bytes;
    return status;
}

static raffia_status run_set_state(struct space_model *model, const struct space_model_step *step)
{
    if (model->block_count == 0)
        return RAFFIA_OK;
    struct model_block *block = &model->blocks[step->a % model->block_count];
    enum space_state state = (enum space_state)(step->b % (SPACE_STATES + 2));
    bool possible = state != SPACE_FREE && state < SPACE_STATES;
    raffia_status status = space_set_state(model->space, block->handle, state);
    if (agreed(model, possible ? RAFFIA_OK : RAFFIA_ERROR_INVALID_ARGUMENT, status, "set_state"))
        block->state = state;
    return status;
}

static raffia_status run_look_up(struct space_model *model, const struct space_model_step *step)
{
    size_t inside = step->c % 2 ? step->b % model->granule : 0;
    space_model_compare_lookups(model, step->a % model->granules, inside);
    struct space_block block;
    size_t outside = model->granules * model->granule + step->b * (size_t)step->c;
    REQUIRE(space_find(model->space, outside, &block) == RAFFIA_ERROR_BAD_ADDRESS &&
                space_containing(model->space, outside, &block) == RAFFIA_ERROR_NOT_FOUND,
            "something was found at %zu, outside of the range", outside);
    return RAFFIA_OK;
}

static raffia_status run_is_free(struct space_model *model, const struct space_model_step *step)
{
    struct space_model_step whole = *step;
    whole.c %= 8; /* no wrong parts: they are not refused here */
    struct part part = part_of(model, &whole);
    bool expected = all_owned(model, part.first, part.count, MODEL_FREE);
    REQUIRE(space_is_free(model->space, part.offset, part.bytes) == expected,
            "is_free: %zu bytes at %zu should be %d", part.bytes, part.offset, expected);
    REQUIRE(!space_is_free(model->space, part.offset, SIZE_MAX - part.offset / 2),
            "is_free: more than there can be");
    return RAFFIA_OK;
}

raffia_status space_model_run(struct space_model *model, const struct space_model_step *step)
{
    static raffia_status (*const verbs[SPACE_MODEL_VERBS])(struct space_model *,
                                                           const struct space_model_step *) = {
        [SPACE_MODEL_ADD] = run_add,
        [SPACE_MODEL_REMOVE] = run_remove,
        [SPACE_MODEL_ALLOCATE] = run_allocate,
        [SPACE_MODEL_FREE] = run_free,
        [SPACE_MODEL_FREE_STALE] = run_free_stale,
        [SPACE_MODEL_RESIZE] = run_resize,
        [SPACE_MODEL_SET_STATE] = run_set_state,
        [SPACE_MODEL_FIND] = run_look_up,
        [SPACE_MODEL_CONTAINING] = run_look_up,
        [SPACE_MODEL_IS_FREE] = run_is_free,
    };
    raffia_status outcome = verbs[step->verb](model, step);
    raffia_status sound = space_check(model->space);
    REQUIRE(sound == RAFFIA_OK, "%s", raffia_last_error());
    return outcome;
}

void space_model_free_all(struct space_model *model)
{
    struct space_model_step step = {.verb = SPACE_MODEL_FREE};
    while (model->block_count)
        space_model_run(model, &step);
}
