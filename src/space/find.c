/*
 * Searches that look at more than the first stretch of a cell.
 */
#include "core/checked.h"
#include "space/index.h"

/* How many stretches may still be looked at. */
struct budget {
    uint32_t looks;
    bool bounded, spent;
};

static struct budget make_budget(bool thorough)
{
    return (struct budget){.looks = SPACE_LOOKS, .bounded = !thorough};
}

static bool may_look(struct budget *budget)
{
    if (budget->bounded && budget->looks == 0) {
        budget->spent = true;
        return false;
    }
    budget->looks--;
    return true;
}

/* The first cell from `cell` on, of the zones whose bits are set in every byte of `zones`, that
 * holds something; SPACE_GUARD_CELL or a cell behind it if none does. */
static uint32_t next_cell(const struct space *space, uint32_t cell, uint64_t zones)
{
    uint32_t word = cell / 64;
    uint64_t bits = space->cells[word] & zones & ~(uint64_t)0 << cell % 64;
    while (!bits && ++word < SPACE_CELL_WORDS)
        bits = space->cells[word] & zones;
    return bits ? word * 64 + (uint32_t)__builtin_ctzll(bits) : SPACE_GUARD_CELL;
}

space_link space_find_in_class(const struct space *space, uint32_t units, bool thorough)
{
    struct budget budget = make_budget(thorough);
    const uint32_t first = space_class_of(units) << SPACE_ZONE_BITS;
    uint32_t cell = next_cell(space, first, ~(uint64_t)0);
    for (; cell < first + SPACE_ZONES; cell = next_cell(space, cell + 1, ~(uint64_t)0)) {
        space_link link = space_ring_at(space, cell)->next;
        for (; link != cell; link = space_at(space, link)->ring.next) {
            if (!may_look(&budget))
                return 0;
            if (space_at(space, link)->units >= units)
                return link;
        }
    }
    return 0;
}

/* The lowest or, for HIGH, the highest aligned place of the request within the stretch. */
static bool fits(const struct space_record *stretch, const struct space_search *search,
                 uint32_t *offset_p)
{
    if (stretch->units < search->units)
        return false;
    const uint64_t mask = search->alignment - 1;
    const uint64_t last = (uint64_t)space_end(stretch) - search->units;
    const uint64_t offset =
        search->placement == SPACE_PLACE_HIGH ? last & ~mask : (stretch->offset + mask) & ~mask;
    if (offset < stretch->offset || offset > last)
        return false;
    *offset_p = (uint32_t)offset;
    return true;
}

/* A stretch of a class above that of the request and its alignment holds it wherever it lies. */
static bool find_ample(const struct space *space, const struct space_search *search,
                       struct space_place *place)
{
    if (search->alignment > space->range_units ||
        search->units + search->alignment - 1 > space->range_units)
        return false;
    const uint32_t ample = (uint32_t)(search->units + search->alignment - 1);
    const uint32_t cell =
        next_cell(space, (space_class_of(ample) + 1) << SPACE_ZONE_BITS, ~(uint64_t)0);
    if (cell >= SPACE_GUARD_CELL)
        return false;
    place->link = space_ring_at(space, cell)->next;
    return fits(space_at(space, place->link), search, &place->offset);
}

/* The first stretch that fits, small ones first; when too many did not, one that is ample. */
static bool find_any(const struct space *space, const struct space_search *search,
                     struct space_place *place)
{
    struct budget budget = make_budget(search->thorough);
    uint32_t cell =
        next_cell(space, space_class_of(search->units) << SPACE_ZONE_BITS, ~(uint64_t)0);
    for (; cell < SPACE_GUARD_CELL; cell = next_cell(space, cell + 1, ~(uint64_t)0)) {
        space_link link = space_ring_at(space, cell)->next;
        for (; link != cell; link = space_at(space, link)->ring.next) {
            if (!may_look(&budget))
                return find_ample(space, search, place);
            if (!fits(space_at(space, link), search, &place->offset))
                continue;
            place->link = link;
            return true;
        }
    }
    return false;
}

static void consider(const struct space *space, const struct space_search *search, space_link link,
                     struct space_place *best)
{
    uint32_t offset;
    if (!fits(space_at(space, link), search, &offset))
        return;
    const bool better =
        search->placement == SPACE_PLACE_LOW ? offset < best->offset : offset > best->offset;
    if (best->link && !better)
        return;
    best->link = link;
    best->offset = offset;
}

/* The best of the stretches that start in one zone. */
static void look_through_zone(const struct space *space, const struct space_search *search,
                              uint32_t zone, struct budget *budget, struct space_place *best)
{
    const uint64_t zones = ~(uint64_t)0 / ((1u << SPACE_ZONES) - 1) << zone;
    budget->looks = SPACE_LOOKS;
    uint32_t cell = next_cell(space, space_class_of(search->units) << SPACE_ZONE_BITS, zones);
    for (; cell < SPACE_GUARD_CELL; cell = next_cell(space, cell + 1, zones)) {
        space_link link = space_ring_at(space, cell)->next;
        for (; link != cell; link = space_at(space, link)->ring.next) {
            if (!may_look(budget))
                return;
            consider(space, search, link, best);
        }
    }
}

/* Stretches do not overlap, so whatever starts in a higher zone has the higher places, also where a
 * stretch of a lower zone reaches across the border. */
bool space_find_place(const struct space *space, const struct space_search *search,
                      struct space_place *place)
{
    if (search->placement == SPACE_PLACE_ANY)
        return find_any(space, search, place);
    struct budget budget = make_budget(search->thorough);
    struct space_place best = {0};
    for (uint32_t i = 0; i < SPACE_ZONES && !best.link; i++) {
        const uint32_t zone = search->placement == SPACE_PLACE_LOW ? i : SPACE_ZONES - 1 - i;
        look_through_zone(space, search, zone, &budget, &best);
    }
    if (!best.link)
        return budget.spent && find_any(space, search, place);
    *place = best;
    return true;
}

uint32_t space_find_largest(const struct space *space)
{
    for (uint32_t class = SPACE_CLASSES; class -- > 1;) {
        const uint32_t first = class << SPACE_ZONE_BITS;
        uint32_t largest = 0;
        for (uint32_t cell = first; cell < first + SPACE_ZONES; cell++)
            for (space_link link = space_ring_at(space, cell)->next; link != cell;
                 link = space_at(space, link)->ring.next)
                largest =
                    space_at(space, link)->units > largest ? space_at(space, link)->units : largest;
        if (largest)
            return largest;
    }
    return 0;
}
