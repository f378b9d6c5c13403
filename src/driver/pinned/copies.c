/*
 * Copies and fills: the GPU's, cut where its driver would refuse them. It looks memory up by the
 * start of a copy, and takes none that goes on into another registration (chunks that lie side by
 * side in a pool) or out of one.
 */
#include "core/checked.h"
#include "driver/pinned/verbs.h"

/* Copies submitted at once where one has to be cut. */
#define BATCH_MAX ((size_t)32)

raffia_status pinned_copy(int index, driver_stream stream, void *destination, const void *source,
                          size_t bytes)
{
    const struct driver_device gpu = pinned_gpu(index);
    struct driver_copy batch[BATCH_MAX];
    size_t count = 0, done = 0;
    raffia_status status = RAFFIA_OK;
    do {
        char *to = (char *)destination + done;
        const char *from = (const char *)source + done;
        size_t step = pinned_reach(to, pinned_reach(from, bytes - done));
        if (step == bytes)
            return gpu.driver->copy(gpu.index, stream, destination, source, bytes);
        batch[count++] = (struct driver_copy){to, from, step};
        done += step;
        if (count == BATCH_MAX || done == bytes) {
            status = gpu.driver->copy_batch(gpu.index, stream, batch, count);
            count = 0;
        }
    } while (done < bytes && !status);
    return status;
}

/* Where the copies before lay, since those of a batch are near each other. */
struct sides {
    struct pinned_stretch to, from;
};

static bool lies_in(struct pinned_stretch *stretch, const void *at, size_t bytes)
{
    const uintptr_t address = (uintptr_t)at;
    if (address < stretch->start || address >= stretch->end)
        pinned_stretch_find(at, stretch);
    return bytes <= stretch->end - address;
}

static bool is_whole(struct sides *sides, const struct driver_copy *copy)
{
    return lies_in(&sides->to, copy->destination, copy->bytes) &&
           lies_in(&sides->from, copy->source, copy->bytes);
}

raffia_status pinned_copy_batch(int index, driver_stream stream, const struct driver_copy *copies,
                                size_t count)
{
    const struct driver_device gpu = pinned_gpu(index);
    struct sides sides = {{0, 0}, {0, 0}};
    size_t whole = 0;
    while (whole < count && is_whole(&sides, &copies[whole]))
        whole++;
    if (whole == count)
        return gpu.driver->copy_batch(gpu.index, stream, copies, count);
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < count && !status; i++)
        status =
            pinned_copy(index, stream, copies[i].destination, copies[i].source, copies[i].bytes);
    return status;
}

raffia_status pinned_fill(int index, driver_stream stream, void *destination, unsigned char value,
                          size_t bytes)
{
    const struct driver_device gpu = pinned_gpu(index);
    raffia_status status = RAFFIA_OK;
    size_t done = 0;
    do {
        char *to = (char *)destination + done;
        size_t step = pinned_reach(to, bytes - done);
        status = gpu.driver->fill(gpu.index, stream, to, value, step);
        done += step;
    } while (done < bytes && !status);
    return status;
}
