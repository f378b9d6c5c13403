/* A ring at work: pieces out, pieces in, copies submitted, slots again. */
#include "copy/staging.h"

#include "copy/staging_inside.h"
#include "core/checked.h"
#include "core/clock.h"

#include <assert.h>

void staging_begin(struct staging *ring, const struct staging_work *work, unsigned readers)
{
    pthread_mutex_lock(&ring->lock);
    assert(ring->entered == 0 && !ring->filling && !ring->copying);
    ring->work = *work;
    ring->entered = readers;
    ring->next_stretch = 0;
    ring->stopped = false;
    ring->wait_seconds = 0;
    ring->copies = ring->bytes_copied = 0;
    pthread_mutex_unlock(&ring->lock);
}

raffia_status staging_leave(struct staging *ring)
{
    pthread_mutex_lock(&ring->lock);
    bool last = --ring->entered == 0;
    pthread_mutex_unlock(&ring->lock);
    return last ? staging_drain(ring) : RAFFIA_OK;
}

void staging_stop(struct staging *ring)
{
    pthread_mutex_lock(&ring->lock);
    ring->stopped = true;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

/* After a failed call of the driver. */
static raffia_status stop_failed(struct staging *ring, raffia_status status)
{
    pthread_mutex_lock(&ring->lock);
    ring->failed = true;
    ring->stopped = true;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
    return status;
}

/* Called with the lock held. */
static void tell_done(const struct staging *ring, const struct staging_slot *slot)
{
    if (ring->work.done)
        ring->work.done(ring->work.context, slot->stretch);
}

static void append_copying(struct staging *ring, struct staging_slot *slot)
{
    slot->next = NULL;
    if (ring->copying)
        ring->copying_last->next = slot;
    else
        ring->copying = slot;
    ring->copying_last = slot;
}

/* Waits until the slot's copies are done. The lock is held before and after, not meanwhile. */
static raffia_status wait_for_slot(struct staging *ring, struct staging_slot *slot)
{
    const struct driver_device device = ring->device;
    bool done = false;
    pthread_mutex_unlock(&ring->lock);
    double started = core_clock_seconds(), waited = 0;
    raffia_status status = device.driver->event_done(device.index, slot->event, &done);
    if (!status && !done) {
        status = device.driver->event_wait(device.index, slot->event);
        waited = core_clock_seconds() - started;
    }
    pthread_mutex_lock(&ring->lock);
    ring->wait_seconds += waited;
    return status;
}

/* A slot to be filled next, or NULL if the ring was stopped meanwhile. Called with the lock held,
 * which is dropped while it waits; only one thread is here at a time. */
static raffia_status find_slot(struct staging *ring, struct staging_slot **slot_p)
{
    *slot_p = NULL;
    while (!ring->stopped) {
        struct staging_slot *slot = ring->free;
        if (slot) {
            ring->free = slot->next;
            *slot_p = slot;
            return RAFFIA_OK;
        }
        slot = ring->copying;
        if (slot) {
            ring->copying = slot->next;
            raffia_status status = wait_for_slot(ring, slot);
            if (!status)
                tell_done(ring, slot);
            /* What became of its copies is for staging_drain() to find out. */
            *slot_p = status ? NULL : slot;
            return status;
        }
        pthread_cond_wait(&ring->changed, &ring->lock);
    }
    return RAFFIA_OK;
}

/* Makes the next stretch the one that is filled. Called with the lock held. */
static raffia_status open_stretch(struct staging *ring)
{
    struct staging_slot *slot;
    ring->opening = true;
    raffia_status status = find_slot(ring, &slot);
    ring->opening = false;
    if (status)
        ring->failed = ring->stopped = true;
    if (slot) {
        slot->stretch = ring->next_stretch++;
        slot->piece_count = ring->work.pieces(ring->work.context, slot->stretch);
        slot->pieces_taken = 0;
        atomic_store_explicit(&slot->pieces_left, slot->piece_count, memory_order_relaxed);
        ring->filling = slot;
    }
    pthread_cond_broadcast(&ring->changed);
    return status;
}

static bool can_hand_out(const struct staging *ring)
{
    return ring->filling && ring->filling->pieces_taken < ring->filling->piece_count;
}

raffia_status staging_take(struct staging *ring, struct staging_piece *piece, bool *got_p)
{
    raffia_status status = RAFFIA_OK;
    bool got = false;
    pthread_mutex_lock(&ring->lock);
    while (!status && !got && !ring->stopped) {
        if (can_hand_out(ring)) {
            struct staging_slot *slot = ring->filling;
            *piece =
                (struct staging_piece){slot, slot->memory, slot->stretch, slot->pieces_taken++};
            got = true;
        } else if (ring->next_stretch == ring->work.stretch_count) {
            break;
        } else if (ring->opening) {
            pthread_cond_wait(&ring->changed, &ring->lock);
        } else {
            status = open_stretch(ring);
        }
    }
    pthread_mutex_unlock(&ring->lock);
    *got_p = got;
    return status;
}

static raffia_status copy_slot(struct staging *ring, struct staging_slot *slot, size_t count)
{
    const struct driver_device device = ring->copier;
    raffia_status status =
        count == 1 ? device.driver->copy(device.index, ring->stream, slot->copies->destination,
                                         slot->copies->source, slot->copies->bytes)
                   : device.driver->copy_batch(device.index, ring->stream, slot->copies, count);
    if (!status && ring->ordered)
        status = device.driver->event_record(device.index, slot->event, ring->stream);
    return status;
}

static raffia_status submit(struct staging *ring, struct staging_slot *slot)
{
    size_t bytes = 0;
    size_t count = ring->work.copies(ring->work.context, slot->stretch, slot->memory, slot->copies);
    assert(count <= STAGING_COPIES_MAX);
    for (size_t i = 0; i < count; i++)
        bytes += slot->copies[i].bytes;
    raffia_status status = copy_slot(ring, slot, count);
    if (status)
        return stop_failed(ring, status);
    pthread_mutex_lock(&ring->lock);
    ring->copies += count;
    ring->bytes_copied += bytes;
    if (ring->ordered) {
        append_copying(ring, slot);
    } else {
        tell_done(ring, slot);
        slot->next = ring->free;
        ring->free = slot;
    }
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
    return RAFFIA_OK;
}

raffia_status staging_put(struct staging *ring, const struct staging_piece *piece)
{
    struct staging_slot *slot = piece->slot;
    if (atomic_fetch_sub_explicit(&slot->pieces_left, 1, memory_order_acq_rel) != 1)
        return RAFFIA_OK;
    return submit(ring, slot);
}

/* One slot's worth back into the slot; done on return. */
static raffia_status fetch(struct staging *ring, struct staging_slot *slot,
                           const unsigned char *from, size_t bytes)
{
    const struct driver_device device = ring->copier;
    raffia_status status =
        device.driver->copy(device.index, ring->stream, slot->memory, from, bytes);
    if (!status && ring->ordered)
        status = device.driver->event_record(device.index, slot->event, ring->stream);
    if (!status && ring->ordered)
        status = device.driver->event_wait(device.index, slot->event);
    return status;
}

static struct staging_slot *borrow_slot(struct staging *ring)
{
    pthread_mutex_lock(&ring->lock);
    while (!ring->free)
        pthread_cond_wait(&ring->changed, &ring->lock);
    struct staging_slot *slot = ring->free;
    ring->free = slot->next;
    pthread_mutex_unlock(&ring->lock);
    return slot;
}

static void return_slot(struct staging *ring, struct staging_slot *slot)
{
    pthread_mutex_lock(&ring->lock);
    slot->next = ring->free;
    ring->free = slot;
    pthread_cond_broadcast(&ring->changed);
    pthread_mutex_unlock(&ring->lock);
}

raffia_status staging_read_back(struct staging *ring, const unsigned char *from, size_t bytes,
                                staging_visitor visit, void *context)
{
    struct staging_slot *slot = borrow_slot(ring);
    raffia_status status = RAFFIA_OK;
    for (size_t done = 0; done < bytes && !status;) {
        size_t piece = core_min(bytes - done, ring->shape.slot_bytes);
        status = fetch(ring, slot, from + done, piece);
        if (status) {
            /* The slot may be written to yet. */
            struct core_error_record cause;
            core_error_save(&cause);
            if (ring->ordered)
                (void)!ring->device.driver->stream_wait(ring->device.index, ring->stream);
            stop_failed(ring, core_error_restore(&cause));
            break;
        }
        status = visit(context, slot->memory, piece);
        done += piece;
    }
    return_slot(ring, slot);
    return status;
}

void staging_query(struct staging *ring, struct staging_stats *stats)
{
    pthread_mutex_lock(&ring->lock);
    *stats = (struct staging_stats){
        .shape = ring->shape,
        .bytes = core_max(ring->memory.range_bytes, ring->memory.bytes),
        .way = ring->memory.way,
        .page = ring->memory.page,
        .build_seconds = ring->build_seconds,
        .wait_seconds = ring->wait_seconds,
        .copies = ring->copies,
        .bytes_copied = ring->bytes_copied,
    };
    pthread_mutex_unlock(&ring->lock);
}
