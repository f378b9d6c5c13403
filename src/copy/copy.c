/* Copies between host and device, one by one and in batches. */
#include "copy/copy.h"

#include "copy/kernel.h"
#include "copy/places.h"
#include "core/checked.h"
#include "core/error.h"
#include "driver/pinned/pinned.h"
#include "resource/resource.h"

/* Copies handed to the driver at once; their list is on the stack. */
#define REST_MAX 128

raffia_status copy_device_open(const char *name, struct copy_device *on)
{
    struct driver_device device;
    int index;
    raffia_status status = driver_open(name, &device);
    if (status)
        return status;
    if (device.driver == &pinned_driver)
        device = pinned_gpu(device.index);
    *on = (struct copy_device){.device = device, .copier = device};
    on->runs_kernels = device.driver->capabilities & DRIVER_CAN_LAUNCH;
    if (device.driver->capabilities & DRIVER_CAN_REGISTER) {
        status = pinned_open(device, &index);
        on->copier = (struct driver_device){&pinned_driver, index};
    }
    return status;
}

raffia_status copy_is_capturing(const struct copy_device *on, driver_stream stream,
                                bool *capturing_p)
{
    return on->device.driver->stream_is_capturing(on->device.index, stream, capturing_p);
}

/* ---- a batch --------------------------------------------------------------------------------- */

struct batch {
    const struct copy_device *on;
    driver_stream stream;
    size_t limit;
    driver_function kernel; /* NULL: the driver makes all copies */
    struct copy_places places;
    struct copy_table table;
    size_t short_max; /* most bytes of a copy that is one piece in it; 0: there is no table */
    size_t by_kernel; /* copies */
    size_t pieces;    /* in the table */
    struct driver_copy *rest; /* room for REST_MAX; elsewhere, so as not to be cleared */
    size_t rest_count;
};

static size_t pieces_of(size_t bytes)
{
    return bytes / COPY_PIECE + (bytes % COPY_PIECE != 0);
}

/* 1 to `most` bytes. */
static inline bool is_short(size_t bytes, size_t most)
{
    return bytes - 1 < most;
}

/* Most bytes of a copy that is below the limit and one piece. */
static size_t short_max_of(const struct batch *batch)
{
    return core_min(batch->limit ? batch->limit - 1 : 0, COPY_PIECE);
}

static bool is_below(const struct batch *batch, size_t bytes)
{
    return bytes < batch->limit && bytes && pieces_of(bytes) <= COPY_PIECES_MAX;
}

static raffia_status flush_rest(struct batch *batch)
{
    const struct driver_device copier = batch->on->copier;
    const size_t count = batch->rest_count;
    batch->rest_count = 0;
    if (count == 1)
        return copier.driver->copy(copier.index, batch->stream, batch->rest[0].destination,
                                   batch->rest[0].source, batch->rest[0].bytes);
    return count ? copier.driver->copy_batch(copier.index, batch->stream, batch->rest, count)
                 : RAFFIA_OK;
}

static raffia_status add_rest(struct batch *batch, const struct driver_copy *copy)
{
    raffia_status status = batch->rest_count == REST_MAX ? flush_rest(batch) : RAFFIA_OK;
    if (!status && copy->bytes)
        batch->rest[batch->rest_count++] = *copy;
    return status;
}

static void add_pieces(struct batch *batch, const struct driver_copy *copy)
{
    for (size_t done = 0; done < copy->bytes; done += COPY_PIECE)
        batch->table.pieces[batch->pieces++] =
            (struct copy_piece){(uintptr_t)copy->destination + done, (uintptr_t)copy->source + done,
                                core_min(copy->bytes - done, COPY_PIECE)};
}

static raffia_status add(struct batch *batch, const struct driver_copy *copy)
{
    if (!batch->kernel || !is_below(batch, copy->bytes) || !copy_places_suit(&batch->places, copy))
        return add_rest(batch, copy);
    batch->by_kernel++;
    if (!batch->table.pieces) /* there is but this one */
        return copy_kernel_one(batch->on->device, batch->stream, batch->kernel, copy);
    add_pieces(batch, copy);
    return RAFFIA_OK;
}

/* As add(), for as many copies as are one piece each and lie where the last one that suited did:
 * all of a batch, as a rule. Returns their number. */
static size_t add_run(struct batch *batch, const raffia_copy_element *copies, size_t count)
{
    /* Copied, since for all that the compiler knows the table could be written over them. */
    const struct driver_memory to = batch->places.to, from = batch->places.from;
    const size_t short_max = batch->short_max;
    struct copy_piece *piece = batch->table.pieces + batch->pieces;
    size_t i = 0;
    for (; i < count; i++, piece++) {
        const raffia_copy_element *it = &copies[i];
        if (!is_short(it->bytes, short_max) || !copy_place_holds(&to, it->destination, it->bytes) ||
            !copy_place_holds(&from, it->source, it->bytes))
            break;
        *piece = (struct copy_piece){(uintptr_t)it->destination, (uintptr_t)it->source, it->bytes};
    }
    batch->pieces += i;
    batch->by_kernel += i;
    return i;
}

/* Finds out whether a kernel can be used, and has its table made if there are two copies for it.
 * Where it cannot, nothing failed: the driver makes the copies. */
static void prepare(struct batch *batch, const raffia_copy_element *copies, size_t count,
                    const raffia_memory_resources *resources)
{
    struct core_error_record before;
    size_t below = 0, pieces = 0;
    bool capturing;
    const size_t short_max = short_max_of(batch);
    for (size_t i = 0; i < count && pieces <= COPY_PIECES_MAX; i++) {
        const bool short_one = is_short(copies[i].bytes, short_max);
        if (short_one || is_below(batch, copies[i].bytes)) {
            below++;
            pieces += short_one ? 1 : pieces_of(copies[i].bytes);
        }
    }
    if (!below || pieces > COPY_PIECES_MAX || !batch->on->runs_kernels)
        return;
    core_error_save(&before);
    if (copy_is_capturing(batch->on, batch->stream, &capturing) || capturing ||
        copy_kernel_find(batch->on->device, &batch->kernel))
        core_error_restore(&before);
    else if (below > 1 &&
             !copy_table_take(batch->on, batch->stream, resources, pieces, &batch->table))
        batch->kernel = NULL;
    if (batch->table.pieces)
        batch->short_max = short_max;
}

raffia_status copy_batch_below(const struct copy_device *on, driver_stream stream,
                               const raffia_copy_element *copies, size_t count, size_t limit,
                               const raffia_memory_resources *resources, size_t *by_kernel_p)
{
    struct driver_copy rest[REST_MAX];
    struct batch batch = {
        .on = on, .stream = stream, .limit = limit, .places = {.device = on->device}, .rest = rest};
    raffia_status status = RAFFIA_OK;
    prepare(&batch, copies, count, resources);
    size_t i = 0;
    while (i < count && !status) {
        const raffia_copy_element *it = &copies[i++];
        status = add(&batch, &(struct driver_copy){it->destination, it->source, it->bytes});
        if (batch.short_max)
            i += add_run(&batch, copies + i, count - i);
    }
    if (!status)
        status = flush_rest(&batch);
    if (!status && batch.pieces)
        status =
            copy_kernel_gather(on->device, stream, batch.kernel, batch.table.pieces, batch.pieces);
    copy_table_give(stream, &batch.table);
    if (!status && by_kernel_p)
        *by_kernel_p = batch.by_kernel;
    return status;
}

/* ---- the public calls ------------------------------------------------------------------------ */

static raffia_status check(const raffia_copy_element *copies, size_t count)
{
    uintptr_t end;
    if (!copies && count)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a batch of %zu copies is NULL", count);
    for (size_t i = 0; i < count; i++) {
        const raffia_copy_element *it = &copies[i];
        if (it->bytes && (!it->destination || !it->source))
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "copy %zu of %zu bytes: its %s is NULL", i, it->bytes,
                              it->destination ? "source" : "destination");
        if (!core_add((uintptr_t)it->destination, it->bytes, &end) ||
            !core_add((uintptr_t)it->source, it->bytes, &end))
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "copy %zu of %zu bytes from %p to %p leaves the address space", i,
                              it->bytes, it->source, it->destination);
    }
    return RAFFIA_OK;
}

raffia_status raffia_copy_batch(const char *device, raffia_stream stream,
                                const raffia_copy_element *copies, size_t count,
                                raffia_memory_resources resources)
{
    struct copy_device on = {0};
    raffia_status status = check(copies, count);
    if (!status)
        status = copy_device_open(device, &on);
    if (status || !count)
        return status;
    status = resource_check_stream(on.device, stream);
    if (status)
        return status;
    return copy_batch_below(&on, stream, copies, count, copy_threshold(&on, stream, count),
                            &resources, NULL);
}

raffia_status raffia_copy(const char *device, raffia_stream stream, void *destination,
                          const void *source, size_t bytes)
{
    const raffia_copy_element copy = {destination, source, bytes};
    return raffia_copy_batch(device, stream, &copy, 1, (raffia_memory_resources){{0}, {0}});
}
