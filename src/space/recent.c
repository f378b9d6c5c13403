/*
 * The first time that the recent block is freed: its stretch leaves its cell. From then on, as long
 * as the block is taken and freed in turn, nothing is left to do but what recent.h has in line.
 */
#include "space/recent.h"

bool space_loosen(struct space *space)
{
    const struct space_record *record = space_at(space, space->recent);
    struct space_record *rest = space_at(space, record->next);
    uint32_t units = record->units;
    space->recent_bytes = (size_t)units << space->granule_shift;
    space->loose = SPACE_LOOSE_REST;
    if (rest->ring.next) {
        units += rest->units;
        space_cell_unlink(space, rest);
        space_make_loose(rest);
    }
    if (!space_cell_holds(space, space_cell_of(space, record->offset, units)))
        return true;
    /* What remains was the last of its ring, and is again. */
    space_settle(space);
    return false;
}
