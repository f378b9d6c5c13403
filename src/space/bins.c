/*
 * Free space by size: segregated bins with a bitmap over them.
 */
#include "core/checked.h"
#include "space/index.h"

unsigned space_bin_of(const struct space *space, size_t bytes)
{
    size_t granules = bytes >> space->granule_shift;
    if (granules < SPACE_BIN_CLASSES)
        return (unsigned)granules;
    /* The leading bits make up one class, from 4 to 7, whose lower half is the quarter. */
    const unsigned shift = 63 - SPACE_BIN_CLASS_BITS - (unsigned)__builtin_clzll(granules);
    return shift * SPACE_BIN_CLASSES + (unsigned)(granules >> shift);
}

static void link_into(struct space *space, unsigned bin, space_place place)
{
    struct space_record *record = space_at(space, place);
    record->bin_previous = 0;
    record->bin_next = space->bins[bin];
    if (record->bin_next)
        space_at(space, record->bin_next)->bin_previous = place;
    space->bins[bin] = place;
    space->bins_in_use[bin / 64] |= (uint64_t)1 << bin % 64;
}

static void unlink_from(struct space *space, unsigned bin, const struct space_record *record)
{
    if (record->bin_next)
        space_at(space, record->bin_next)->bin_previous = record->bin_previous;
    if (record->bin_previous) {
        space_at(space, record->bin_previous)->bin_next = record->bin_next;
        return;
    }
    space->bins[bin] = record->bin_next;
    if (!record->bin_next)
        space->bins_in_use[bin / 64] &= ~((uint64_t)1 << bin % 64);
}

void space_bins_insert(struct space *space, space_place place)
{
    struct space_record *record = space_at(space, place);
    record->state = SPACE_FREE;
    link_into(space, space_bin_of(space, record->bytes), place);
    space->stats.free_bytes += record->bytes;
    space->stats.free_blocks++;
}

void space_bins_remove(struct space *space, space_place place)
{
    const struct space_record *record = space_at(space, place);
    unlink_from(space, space_bin_of(space, record->bytes), record);
    space->stats.free_bytes -= record->bytes;
    space->stats.free_blocks--;
}

void space_bins_resize(struct space *space, space_place place, size_t bytes)
{
    struct space_record *record = space_at(space, place);
    const unsigned old = space_bin_of(space, record->bytes), new = space_bin_of(space, bytes);
    space->stats.free_bytes += bytes - record->bytes;
    record->bytes = bytes;
    if (new == old)
        return;
    unlink_from(space, old, record);
    link_into(space, new, place);
}

/* The first bin from `bin` on that is not empty, or SPACE_BINS. */
static unsigned next_bin_in_use(const struct space *space, unsigned bin)
{
    for (unsigned word = bin / 64; word < SPACE_BIN_WORDS; word++) {
        uint64_t bits = space->bins_in_use[word];
        if (word == bin / 64)
            bits &= ~(uint64_t)0 << bin % 64;
        if (bits)
            return word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return SPACE_BINS;
}

/* The lowest or, for HIGH, the highest aligned offset at which the stretch holds `bytes`. */
static bool fits(const struct space_record *stretch, size_t bytes, size_t alignment,
                 enum space_placement placement, size_t *offset_p)
{
    if (stretch->bytes < bytes)
        return false;
    size_t highest = core_align_down(space_end(stretch) - bytes, alignment);
    size_t lowest;
    if (highest < stretch->offset || !core_align_up(stretch->offset, alignment, &lowest))
        return false;
    *offset_p = placement == SPACE_PLACE_HIGH ? highest : lowest;
    return true;
}

static bool better(enum space_placement placement, size_t offset, size_t best)
{
    return placement == SPACE_PLACE_LOW ? offset < best : offset > best;
}

/* Without an alignment: only in the request's own bin a stretch may be too small. */
static bool find_any(const struct space *space, size_t bytes, space_place *place_p)
{
    const unsigned bin = space_bin_of(space, bytes);
    for (space_place place = space->bins[bin]; place; place = space_at(space, place)->bin_next) {
        if (space_at(space, place)->bytes >= bytes) {
            *place_p = place;
            return true;
        }
    }
    const unsigned larger = next_bin_in_use(space, bin + 1);
    if (larger == SPACE_BINS)
        return false;
    *place_p = space->bins[larger];
    return true;
}

/* Looks at every stretch that may be large enough. */
static bool find_best(const struct space *space, size_t bytes, size_t alignment,
                      enum space_placement placement, space_place *place_p, size_t *offset_p)
{
    bool found = false;
    size_t best = 0, offset;
    unsigned bin = next_bin_in_use(space, space_bin_of(space, bytes));
    for (; bin < SPACE_BINS; bin = next_bin_in_use(space, bin + 1)) {
        const struct space_record *record;
        for (space_place place = space->bins[bin]; place; place = record->bin_next) {
            record = space_at(space, place);
            if (!fits(record, bytes, alignment, placement, &offset))
                continue;
            if (found && !better(placement, offset, best))
                continue;
            found = true;
            best = offset;
            *place_p = place;
            *offset_p = offset;
            if (placement == SPACE_PLACE_ANY)
                return true;
        }
    }
    return found;
}

bool space_bins_find(const struct space *space, size_t bytes, size_t alignment,
                     enum space_placement placement, space_place *place_p, size_t *offset_p)
{
    if (placement != SPACE_PLACE_ANY || alignment > space->granule)
        return find_best(space, bytes, alignment, placement, place_p, offset_p);
    if (!find_any(space, bytes, place_p))
        return false;
    *offset_p = space_at(space, *place_p)->offset;
    return true;
}

size_t space_bins_largest(const struct space *space)
{
    for (unsigned word = SPACE_BIN_WORDS; word-- > 0;) {
        if (!space->bins_in_use[word])
            continue;
        unsigned bin = word * 64 + 63 - (unsigned)__builtin_clzll(space->bins_in_use[word]);
        size_t largest = 0;
        for (space_place place = space->bins[bin]; place; place = space_at(space, place)->bin_next)
            largest = core_max(largest, space_at(space, place)->bytes);
        return largest;
    }
    return 0;
}
