/* Where the registered pieces of memory begin and end, of all devices. */
#include "core/checked.h"
#include "core/memory.h"
#include "core/process.h"
#include "driver/pinned/verbs.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define ROOM_FIRST ((size_t)16)

struct piece {
    uintptr_t start, end;
};

/* In order of address. One piece may be registered with several devices; it is here as often. The
 * lock is a leaf. A forked child must not take it, because a thread of its parent may have held it:
 * it has nothing pinned, and learns that from the GPU's driver. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct piece *pieces;
static size_t piece_count, piece_room;
static atomic_ulong generation; /* of the process that added the last piece; 0 = none was added */

/* Index of the first piece that ends behind the address. */
static size_t first_behind(uintptr_t address)
{
    size_t low = 0, high = piece_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pieces[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool make_room(void)
{
    if (piece_count < piece_room)
        return true;
    size_t room = piece_room ? 2 * piece_room : ROOM_FIRST;
    void *grown = core_reallocate(pieces, room, sizeof *pieces);
    if (!grown)
        return false;
    pieces = grown;
    piece_room = room;
    return true;
}

bool pinned_piece_add(const void *at, size_t bytes)
{
    const struct piece piece = {(uintptr_t)at, (uintptr_t)at + bytes};
    pthread_mutex_lock(&lock);
    atomic_store_explicit(&generation, core_fork_generation(), memory_order_relaxed);
    bool added = make_room();
    if (added) {
        size_t place = first_behind(piece.start);
        memmove(pieces + place + 1, pieces + place, (piece_count - place) * sizeof *pieces);
        pieces[place] = piece;
        piece_count++;
    }
    pthread_mutex_unlock(&lock);
    return added;
}

/* The table goes with its last piece, so that nothing is left when nothing is pinned. */
void pinned_piece_drop(const void *at)
{
    pthread_mutex_lock(&lock);
    size_t place = first_behind((uintptr_t)at);
    assert(place < piece_count && pieces[place].start == (uintptr_t)at);
    piece_count--;
    memmove(pieces + place, pieces + place + 1, (piece_count - place) * sizeof *pieces);
    if (piece_count == 0) {
        core_free(pieces);
        pieces = NULL;
        piece_room = 0;
    }
    pthread_mutex_unlock(&lock);
}

void pinned_stretch_find(const void *at, struct pinned_stretch *stretch)
{
    const uintptr_t address = (uintptr_t)at;
    *stretch = (struct pinned_stretch){0, UINTPTR_MAX};
    if (atomic_load_explicit(&generation, memory_order_relaxed) != core_fork_generation())
        return;
    pthread_mutex_lock(&lock);
    const size_t place = first_behind(address);
    if (place < piece_count && pieces[place].start <= address) {
        *stretch = (struct pinned_stretch){pieces[place].start, pieces[place].end};
    } else {
        stretch->start = place ? pieces[place - 1].end : 0;
        stretch->end = place < piece_count ? pieces[place].start : UINTPTR_MAX;
    }
    pthread_mutex_unlock(&lock);
}

size_t pinned_reach(const void *at, size_t bytes)
{
    struct pinned_stretch stretch;
    pinned_stretch_find(at, &stretch);
    return core_min(bytes, stretch.end - (uintptr_t)at);
}

bool pinned_piece_find(const void *at, uintptr_t *start_p, size_t *bytes_p)
{
    const uintptr_t address = (uintptr_t)at;
    if (atomic_load_explicit(&generation, memory_order_relaxed) != core_fork_generation())
        return false;
    pthread_mutex_lock(&lock);
    const size_t place = first_behind(address);
    const bool found = place < piece_count && pieces[place].start <= address;
    if (found) {
        *start_p = pieces[place].start;
        *bytes_p = pieces[place].end - pieces[place].start;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
