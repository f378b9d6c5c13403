/*
 * How much is refused of a random load that keeps four fifths of the range in blocks, beside a
 * model of lowest-address fit, the policy to beat: it wastes little, and looks at every hole for
 * it.
 */
#include "fixture.h"
#include "support/random.h"

#include <math.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define RANGE   (16 * GIB)
#define TARGET  (RANGE / 10 * 8)
#define LARGEST (256 * MIB)

enum { SEEDS = 20, STEPS = 60000, MOST = 4096 };

/* Stretches of free space by address. */
struct lowest_fit {
    size_t offsets[MOST], bytes[MOST];
    size_t count;
};

static void insert(struct lowest_fit *fit, size_t at, size_t offset, size_t bytes)
{
    assert_true(fit->count < MOST);
    memmove(fit->offsets + at + 1, fit->offsets + at, (fit->count - at) * sizeof *fit->offsets);
    memmove(fit->bytes + at + 1, fit->bytes + at, (fit->count - at) * sizeof *fit->bytes);
    fit->offsets[at] = offset;
    fit->bytes[at] = bytes;
    fit->count++;
}

static void erase(struct lowest_fit *fit, size_t at)
{
    fit->count--;
    memmove(fit->offsets + at, fit->offsets + at + 1, (fit->count - at) * sizeof *fit->offsets);
    memmove(fit->bytes + at, fit->bytes + at + 1, (fit->count - at) * sizeof *fit->bytes);
}

static bool take_lowest(struct lowest_fit *fit, size_t bytes, size_t *offset_p)
{
    size_t at = 0;
    while (at < fit->count && fit->bytes[at] < bytes)
        at++;
    if (at == fit->count)
        return false;
    *offset_p = fit->offsets[at];
    fit->offsets[at] += bytes;
    fit->bytes[at] -= bytes;
    if (!fit->bytes[at])
        erase(fit, at);
    return true;
}

static void give_lowest(struct lowest_fit *fit, size_t offset, size_t bytes)
{
    size_t low = 0, high = fit->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (fit->offsets[middle] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    insert(fit, low, offset, bytes);
    if (low + 1 < fit->count && offset + bytes == fit->offsets[low + 1]) {
        fit->bytes[low] += fit->bytes[low + 1];
        erase(fit, low + 1);
    }
    if (low > 0 && fit->offsets[low - 1] + fit->bytes[low - 1] == offset) {
        fit->bytes[low - 1] += fit->bytes[low];
        erase(fit, low);
    }
}

/* What is alive: asked for, and served by each or not. */
struct block {
    size_t bytes, model_offset;
    space_handle handle;
    bool modelled;
};

struct load {
    struct space *space;
    struct lowest_fit model;
    struct block blocks[MOST];
    size_t count, bytes;
    double asked, refused, model_refused;
};

/* Log-uniform from one granule to the largest. */
static size_t draw_size(struct test_random *random)
{
    const double unit = (double)(test_random_next(random) >> 11) * 0x1.0p-53;
    const double bytes = (double)GRANULE * pow((double)LARGEST / (double)GRANULE, unit);
    return ((size_t)bytes + GRANULE - 1) / GRANULE * GRANULE;
}

static void add_block(struct load *load, size_t bytes)
{
    struct block *block = &load->blocks[load->count++];
    struct space_block piece = {0};
    *block = (struct block){.bytes = bytes};
    load->bytes += bytes;
    load->asked += (double)bytes;
    block->modelled = take_lowest(&load->model, bytes, &block->model_offset);
    if (!block->modelled)
        load->model_refused += (double)bytes;
    if (try_take(load->space, bytes, &piece))
        load->refused += (double)bytes;
    block->handle = piece.handle;
}

static void drop_block(struct load *load, size_t at)
{
    const struct block block = load->blocks[at];
    load->blocks[at] = load->blocks[--load->count];
    load->bytes -= block.bytes;
    if (block.modelled)
        give_lowest(&load->model, block.model_offset, block.bytes);
    if (block.handle)
        assert_ok(space_free(load->space, block.handle));
}

static void run(struct load *load, uint64_t seed)
{
    struct test_random random = {seed};
    load->space = make_present(RANGE / GRANULE);
    insert(&load->model, 0, 0, RANGE);
    size_t next = draw_size(&random);
    for (int i = 0; i < STEPS; i++) {
        if (load->bytes + next <= TARGET) {
            add_block(load, next);
            next = draw_size(&random);
        } else {
            drop_block(load, test_random_below(&random, load->count));
        }
    }
    assert_ok(space_check(load->space));
    while (load->count)
        drop_block(load, load->count - 1);
    assert_ok(space_check(load->space));
    assert_true(space_is_free(load->space, 0, RANGE));
    space_destroy(load->space);
}

static void less_is_refused_than_by_lowest_address_fit(void **state)
{
    (void)state;
    double asked = 0, refused = 0, model = 0;
    struct load *load = malloc(sizeof *load);
    assert_non_null(load);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(load, 0, sizeof *load);
        run(load, seed);
        asked += load->asked;
        refused += load->refused;
        model += load->model_refused;
    }
    free(load);
    print_message("refused: %.3f %% of bytes, by lowest-address fit %.3f %%\n",
                  100 * refused / asked, 100 * model / asked);
    assert_true(model > 0); /* else the load proves nothing */
    assert_true(refused < 0.85 * model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(less_is_refused_than_by_lowest_address_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
