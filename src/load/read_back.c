/* Rings for loads, and bytes on their way back. */
#include "load/read_back.h"

#include "core/error.h"
#include "core/log.h"
#include "core/process.h"
#include "load/catalog_show.h"

#include <pthread.h>
#include <string.h>

bool load_ring_is_kept(struct driver_device device, const struct load_shape *shape)
{
    return staging_is_kept(device, (struct staging_shape){shape->slot_bytes, shape->slot_count});
}

raffia_status load_ring_open(struct driver_device device, struct load_shape *shape,
                             struct staging **ring_p)
{
    for (;;) {
        const struct staging_shape asked = {shape->slot_bytes, shape->slot_count};
        raffia_status status = staging_open(device, asked, shape->threads, ring_p);
        if ((status != RAFFIA_ERROR_OUT_OF_MEMORY && status != RAFFIA_ERROR_LIMIT) ||
            shape->slot_count == 1)
            return status;
        shape->slot_count /= 2;
        core_log_info("%s; trying %u", raffia_last_error(), shape->slot_count);
    }
}

void raffia_load_release_staging(void)
{
    staging_release_kept();
}

static raffia_status append(void *context, const unsigned char *bytes, size_t count)
{
    unsigned char **to = context;
    memcpy(*to, bytes, count);
    *to += count;
    return RAFFIA_OK;
}

/* One at a time, so that all share the one ring that is kept. A forked child does not get here. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;

static raffia_status read_staged(const raffia_model *model, const unsigned char *from,
                                 unsigned char *to, size_t bytes)
{
    if (model->generation != core_fork_generation())
        return core_error(RAFFIA_ERROR_FORKED,
                          "the model lies in a device that belongs to the parent of this process");
    struct load_shape shape = model->shape;
    struct staging *ring = NULL;
    pthread_mutex_lock(&reading);
    raffia_status status = load_ring_open(model->destination.device, &shape, &ring);
    if (!status)
        status = staging_read_back(ring, from, bytes, append, &to);
    staging_close(ring);
    pthread_mutex_unlock(&reading);
    return status;
}

raffia_status raffia_model_read(const raffia_model *model, const raffia_tensor *tensor,
                                size_t offset, void *buffer, size_t bytes)
{
    if (!model || !tensor || (!buffer && bytes))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_model_read: model, tensor or buffer is NULL");
    if (offset > tensor->bytes || bytes > tensor->bytes - offset)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "tensor '%s' has %zu bytes: %zu from %zu on are not all there",
                          catalog_show(tensor->name).text, tensor->bytes, bytes, offset);
    if (bytes == 0)
        return RAFFIA_OK;
    if (!tensor->data)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the model was inspected, not loaded: its tensors have no data");
    const unsigned char *from = (const unsigned char *)tensor->data + offset;
    if (model->destination.staged)
        return read_staged(model, from, buffer, bytes);
    memcpy(buffer, from, bytes);
    return RAFFIA_OK;
}
