/*
 * Slabs: how they come and go, and what is asked of them rarely.
 */
#include "core/error.h"
#include "core/memory.h"
#include "space/recent.h"
#include "space/slab.h"

#include <string.h>

/* ---- classes -------------------------------------------------------------------------------- */

/* The largest size of a class. */
static uint32_t units_of_class(uint32_t class)
{
    if (class < 2u << SPACE_CLASS_BITS)
        return class;
    const uint32_t shift = (class >> SPACE_CLASS_BITS) - 1;
    return (class - (shift << SPACE_CLASS_BITS)) << shift;
}

/* Behind the others, which shall be filled first: so some come to be without blocks. */
static void enter_ring(struct space *space, struct space_slab *slab)
{
    struct space_slab **first_p = &space->slabs.classes[slab->class].open, *first = *first_p;
    if (first) {
        slab->next = first;
        slab->previous = first->previous;
        slab->previous->next = slab;
        first->previous = slab;
    } else {
        slab->next = slab->previous = slab;
        *first_p = slab;
    }
}

static void leave_ring(struct space *space, struct space_slab *slab)
{
    struct space_slab **first_p = &space->slabs.classes[slab->class].open;
    if (*first_p == slab)
        *first_p = slab->next == slab ? NULL : slab->next;
    slab->next->previous = slab->previous;
    slab->previous->next = slab->next;
    slab->next = slab->previous = NULL;
}

static uint32_t slots_of_class(uint32_t class)
{
    return SPACE_SLAB_UNITS / units_of_class(class);
}

void space_slabs_allow(struct space *space, const struct space_options *options)
{
    space->slabs.allowed = options->slabs && options->granule <= SPACE_SLAB_GRANULE_MAX &&
                           space->range_units >= SPACE_SLABS_IN_RANGE * SPACE_SLAB_UNITS;
    for (uint32_t class = 1; class < SPACE_SLAB_CLASSES; class ++)
        space->slabs.classes[class].patience = slots_of_class(class);
}

void space_slabs_start(struct space *space)
{
    if (space->slabs.allowed)
        space->slabs.most_bytes = (size_t)SPACE_SLOT_UNITS_MAX << space->granule_shift;
}

/* ---- the table by offset -------------------------------------------------------------------- */

/* Sees to it that slabs up to `end_unit`, which is in the range, have a place in the table. */
static bool reach(struct space *space, uint32_t end_unit)
{
    struct space_slabs *slabs = &space->slabs;
    if (end_unit <= slabs->end_unit)
        return true;
    const uint32_t old = slabs->end_unit >> SPACE_SLAB_SHIFT;
    const uint32_t most = space->range_units >> SPACE_SLAB_SHIFT;
    const uint32_t needed = end_unit >> SPACE_SLAB_SHIFT, doubled = old < most / 2 ? 2 * old : most;
    const uint32_t count = needed > doubled ? needed : doubled;
    struct space_slab **table = core_calloc(count, sizeof *table);
    if (!table)
        return false;
    if (old)
        memcpy(table, slabs->table, old * sizeof *table);
    core_free(slabs->table);
    slabs->table = table;
    slabs->end_unit = count << SPACE_SLAB_SHIFT;
    return true;
}

static struct space_slab **entry_of(const struct space *space, const struct space_slab *slab)
{
    return &space->slabs.table[slab->offset >> SPACE_SLAB_SHIFT];
}

/* ---- coming and going ----------------------------------------------------------------------- */

/* NULL if there is no memory. No place has it yet. */
static struct space_slab *new_slab(struct space *space, uint32_t class)
{
    const uint32_t slots = slots_of_class(class), units = units_of_class(class);
    struct space_slab *slab = core_malloc(sizeof *slab + slots * sizeof *slab->tags);
    if (!slab)
        return NULL;
    *slab = (struct space_slab){
        .factor = ((1u << SLOT_FACTOR_SHIFT) + units - 1) / units,
        .slot_units = (uint16_t)units,
        .slots = (uint16_t)slots,
        .class = class,
    };
    /* Not where the last slab there began: handles of that stay stale. */
    const uint32_t generation = ++space->slabs.births << 5;
    for (uint32_t i = 0; i < slots; i++)
        slab->tags[i] = generation << SLOT_GENERATION_SHIFT | (i + 1 < slots ? i + 1 : SLOT_NONE)
                                                                  << SLOT_SLACK_SHIFT;
    return slab;
}

/* Puts a slab that has its place among those of the space. */
static void arrive(struct space *space, struct space_slab *slab)
{
    *entry_of(space, slab) = slab;
    if (slab->spare != SLOT_NONE)
        enter_ring(space, slab);
    space->slabs.count++;
    space->slabs.empty += slab->used == 0;
    space->slabs.slot_units += (uint64_t)slab->slots * slab->slot_units;
    space->slabs.classes[slab->class].slabs++;
}

/* Slots that are free are in the way of larger blocks: they shall be few beside what there is. */
static bool has_to_spare(const struct space *space)
{
    const struct space_slabs *slabs = &space->slabs;
    const uint64_t spare = slabs->slot_units - slabs->used_units + SPACE_SLAB_UNITS;
    return spare <= space->present_units / SPACE_SLABS_SPARE_SHARE +
                        slabs->used_units / SPACE_SLABS_SPARE_SLOTS;
}

/* At the low end, where it is in the way of large blocks the least. Each step that can fail comes
 * before the first that changes anything. */
static struct space_slab *make_slab(struct space *space, uint32_t class)
{
    const struct space_search search = {
        .units = SPACE_SLAB_UNITS, .alignment = SPACE_SLAB_UNITS, .placement = SPACE_PLACE_LOW};
    struct space_place place;
    space_settle(space);
    if (!space_find_place(space, &search, &place) || !reach(space, place.offset + SPACE_SLAB_UNITS))
        return NULL;
    struct space_slab *slab = new_slab(space, class);
    if (!slab || space_cut_place(space, &place, SPACE_SLAB_UNITS)) {
        core_free(slab);
        return NULL;
    }
    slab->link = place.link;
    slab->offset = place.offset;
    space_put_state(space_at(space, place.link), SPACE_SLAB);
    arrive(space, slab);
    return slab;
}

struct space_slab *space_slab_for(struct space *space, uint32_t class)
{
    struct space_slab_class *own = &space->slabs.classes[class];
    struct core_error_record before;
    if (own->patience) {
        own->patience--;
        return NULL;
    }
    core_error_save(&before);
    struct space_slab *slab = has_to_spare(space) ? make_slab(space, class) : NULL;
    core_error_restore(&before);
    if (!slab)
        own->patience = slots_of_class(class); /* there will be none for a while */
    return slab;
}

struct space_slab *space_slab_above(const struct space *space, uint32_t class)
{
    for (; class < SPACE_SLAB_CLASSES; class ++)
        if (space->slabs.classes[class].open)
            return space->slabs.classes[class].open;
    return NULL;
}

/* Takes away what the space knows of a slab, but for its place. */
static void forget(struct space *space, struct space_slab *slab)
{
    if (slab->spare != SLOT_NONE)
        leave_ring(space, slab);
    *entry_of(space, slab) = NULL;
    space->slabs.count--;
    space->slabs.empty -= slab->used == 0;
    space->slabs.slot_units -= (uint64_t)slab->slots * slab->slot_units;
    struct space_slab_class *own = &space->slabs.classes[slab->class];
    if (--own->slabs == 0)
        own->patience = slots_of_class(slab->class);
}

static void give_back(struct space *space, struct space_slab *slab)
{
    struct space_record *record = space_at(space, slab->link);
    forget(space, slab);
    record->tag = (record->tag & ~SPACE_STATE_MASK) + (1u << SPACE_STATE_BITS);
    space_release(space, slab->link);
    core_free(slab);
}

void space_slab_filled(struct space *space, struct space_slab *slab)
{
    leave_ring(space, slab);
}

void space_slab_reopened(struct space *space, struct space_slab *slab)
{
    enter_ring(space, slab);
}

void space_slab_emptied(struct space *space, struct space_slab *slab)
{
    space->slabs.empty++;
    if (slab->next != slab)
        give_back(space, slab);
}

void space_drain_slabs(struct space *space)
{
    for (uint32_t class = 1; class < SPACE_SLAB_CLASSES && space->slabs.empty; class ++) {
        struct space_slab *slab = space->slabs.classes[class].open;
        struct space_slab *last = slab ? slab->previous : NULL;
        for (struct space_slab *next; slab; slab = next) {
            next = slab == last ? NULL : slab->next;
            if (slab->used == 0)
                give_back(space, slab);
        }
    }
}

void space_slabs_destroy(struct space *space)
{
    for (uint32_t i = 0; i < space->slabs.end_unit >> SPACE_SLAB_SHIFT; i++)
        core_free(space->slabs.table[i]);
    core_free(space->slabs.table);
}

/* ---- slots ---------------------------------------------------------------------------------- */

struct space_slab *space_slab_of_handle(const struct space *space, space_handle handle,
                                        uint32_t *slot_p)
{
    const space_link link = (space_link)handle;
    if (!(handle & SLOT_HANDLE) || !space_is_record(space, link) ||
        space_state_of(space_at(space, link)) != SPACE_SLAB)
        return NULL;
    struct space_slab *slab = space_slab_at(space, space_at(space, link)->offset);
    *slot_p = space_handle_slot(handle);
    return *slot_p < slab->slots && space_slot_state(slab, *slot_p) != SPACE_FREE &&
                   space_slot_handle(slab, *slot_p) == handle
               ? slab
               : NULL;
}

void space_slot_describe(const struct space *space, const struct space_slab *slab, uint32_t slot,
                         struct space_block *block)
{
    const size_t bytes = (size_t)slab->slot_units << space->granule_shift;
    *block = (struct space_block){
        .handle = space_slot_handle(slab, slot),
        .offset = (size_t)space_slot_unit(slab, slot) << space->granule_shift,
        .bytes = bytes,
        .requested = bytes - space_slot_slack(slab, slot),
        .state = space_slot_state(slab, slot),
    };
}

/* What is left over behind the last slot is free as well. */
static bool is_free(const struct space_slab *slab, uint32_t slot)
{
    return slot >= slab->slots || space_slot_state(slab, slot) == SPACE_FREE;
}

void space_slab_describe(const struct space *space, const struct space_slab *slab, uint32_t unit,
                         struct space_block *block)
{
    uint32_t slot = space_slot_of(slab, unit);
    if (!is_free(slab, slot)) {
        space_slot_describe(space, slab, slot, block);
        return;
    }
    uint32_t end = slot;
    while (slot > 0 && is_free(slab, slot - 1))
        slot--;
    while (end < slab->slots && is_free(slab, end))
        end++;
    const uint32_t from = space_slot_unit(slab, slot);
    const uint32_t to =
        end < slab->slots ? space_slot_unit(slab, end) : slab->offset + SPACE_SLAB_UNITS;
    const size_t bytes = (size_t)(to - from) << space->granule_shift;
    *block = (struct space_block){.offset = (size_t)from << space->granule_shift,
                                  .bytes = bytes,
                                  .requested = bytes,
                                  .state = SPACE_FREE};
}

void space_slot_change(struct space *space, struct space_slab *slab, uint32_t slot, uint32_t slack,
                       enum space_state state)
{
    space_count_state(space, space_slot_state(slab, slot), 0 - (uint64_t)slab->slot_units,
                      0 - (uint64_t)space_slot_slack(slab, slot));
    space_slot_put(slab, slot, slack, state);
    space_count_state(space, state, slab->slot_units, slack);
}

/* ---- from one space to another -------------------------------------------------------------- */

raffia_status space_slabs_prepare(struct space *space, const struct space *other)
{
    return reach(space, other->slabs.end_unit) ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

void space_slab_adopt(struct space *space, struct space *other, struct space_slab *slab,
                      space_link link)
{
    forget(other, slab);
    slab->link = link;
    space_put_state(space_at(space, link), SPACE_SLAB);
    arrive(space, slab);
    space->slabs.blocks += slab->used;
    space->slabs.used_units += (uint64_t)slab->used * slab->slot_units;
    for (uint32_t i = 0; i < slab->slots; i++)
        if (!is_free(slab, i)) {
            space->free_units -= slab->slot_units;
            space_count_state(space, space_slot_state(slab, i), slab->slot_units,
                              space_slot_slack(slab, i));
        }
}

/* ---- checks --------------------------------------------------------------------------------- */

#define DAMAGED(...) core_error(RAFFIA_ERROR_CORRUPT, "the space is damaged: " __VA_ARGS__)

/* Each spare slot is free and is met once, as there are no more of them than that. */
static raffia_status check_slots(const struct space_slab *slab)
{
    uint32_t free = 0, met = 0;
    for (uint32_t i = 0; i < slab->slots; i++)
        free += is_free(slab, i);
    for (uint32_t i = slab->spare; i != SLOT_NONE; i = space_slot_slack(slab, i))
        if (i >= slab->slots || !is_free(slab, i) || ++met > free)
            return DAMAGED("the spare slots of the slab at unit %u are not those that are free",
                           slab->offset);
    if (met != free || free + slab->used != slab->slots)
        return DAMAGED("of the slab at unit %u %u slots are free, %u spare and %u used",
                       slab->offset, free, met, slab->used);
    return RAFFIA_OK;
}

static raffia_status check_slab(const struct space *space, uint32_t place)
{
    const struct space_slab *slab = space->slabs.table[place];
    if (slab->offset != place << SPACE_SLAB_SHIFT || !space_is_record(space, slab->link) ||
        space_at(space, slab->link)->offset != slab->offset ||
        space_at(space, slab->link)->units != SPACE_SLAB_UNITS ||
        space_state_of(space_at(space, slab->link)) != SPACE_SLAB)
        return DAMAGED("there is no place of the slab at unit %u", slab->offset);
    if (slab->class >= SPACE_SLAB_CLASSES || slab->slot_units != units_of_class(slab->class) ||
        slab->slots != slots_of_class(slab->class))
        return DAMAGED("the slab at unit %u is of no class", slab->offset);
    if ((slab->next != NULL) != (slab->spare != SLOT_NONE))
        return DAMAGED("the slab at unit %u is in the wrong ring", slab->offset);
    return check_slots(slab);
}

/* How many are in the ring of a class; all that are there, if that is too many. */
static uint32_t count_ring(const struct space_slabs *slabs, uint32_t class)
{
    const struct space_slab *first = slabs->classes[class].open, *slab = first;
    uint32_t count = 0;
    while (slab && count <= slabs->count) {
        count++;
        if (slab->class != class || slab->next->previous != slab)
            return slabs->count + 1;
        slab = slab->next == first ? NULL : slab->next;
    }
    return count;
}

raffia_status space_slabs_check(const struct space *space)
{
    const struct space_slabs *slabs = &space->slabs;
    uint32_t count = 0, empty = 0, open = 0, in_rings = 0;
    uint64_t slot_units = 0, used_units = 0;
    size_t blocks = 0;
    for (uint32_t i = 0; i < slabs->end_unit >> SPACE_SLAB_SHIFT; i++) {
        const struct space_slab *slab = slabs->table[i];
        raffia_status status = slab ? check_slab(space, i) : RAFFIA_OK;
        if (status)
            return status;
        count += slab != NULL;
        empty += slab && slab->used == 0;
        open += slab && slab->spare != SLOT_NONE;
        blocks += slab ? slab->used : 0;
        slot_units += slab ? (uint64_t)slab->slots * slab->slot_units : 0;
        used_units += slab ? (uint64_t)slab->used * slab->slot_units : 0;
    }
    for (uint32_t class = 0; class < SPACE_SLAB_CLASSES; class ++)
        in_rings += count_ring(slabs, class);
    if (count != slabs->count || empty != slabs->empty || blocks != slabs->blocks ||
        slot_units != slabs->slot_units || used_units != slabs->used_units || open != in_rings)
        return DAMAGED("it counts %u slabs, %u of them empty, %zu blocks in them and %u with room, "
                       "and has %u, %u, %zu and %u",
                       slabs->count, slabs->empty, slabs->blocks, in_rings, count, empty, blocks,
                       open);
    return RAFFIA_OK;
}
