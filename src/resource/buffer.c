/* Memory that keeps its resource, stream and device with it. */
#include "resource/buffer.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "driver/pinned/pinned.h"

#include <raffia/current_resource.h>

#include <string.h>

/* ---- memory --------------------------------------------------------------------------------- */

static raffia_status allocate(const raffia_buffer *buffer, size_t bytes, void **data_p)
{
    *data_p = NULL;
    return bytes ? raffia_allocate(raffia_resource_as_ref(buffer->owner), buffer->stream, bytes,
                                   buffer->alignment, data_p)
                 : RAFFIA_OK;
}

/* Keeps the last error. */
static void release(const raffia_buffer *buffer, void *data, size_t bytes)
{
    struct core_error_record before;
    core_error_save(&before);
    if (data && raffia_deallocate(raffia_resource_as_ref(buffer->owner), buffer->stream, data,
                                  bytes, buffer->alignment)) {
        core_log_error("%zu bytes of a buffer at %p are lost: %s", bytes, data,
                       raffia_last_error());
        core_error_restore(&before);
    }
}

/* A GPU takes no copy that goes on from one registration into another, as blocks of pinned pools
 * may; its pinned device cuts them there. Keeps the last error. */
static struct driver_device copier_of(struct driver_device device)
{
    struct core_error_record before;
    int index;
    if (!(device.driver->capabilities & DRIVER_CAN_REGISTER))
        return device;
    core_error_save(&before);
    if (!pinned_open(device, &index))
        return (struct driver_device){&pinned_driver, index};
    core_error_restore(&before);
    return device;
}

static raffia_status copy(const raffia_buffer *buffer, void *destination, const void *source,
                          size_t bytes)
{
    if (!bytes)
        return RAFFIA_OK;
    const struct driver_device by = copier_of(buffer->device);
    return by.driver->copy(by.index, buffer->stream, destination, source, bytes);
}

/* Another block, with the content of the old one. */
static raffia_status move(raffia_buffer *buffer, size_t capacity)
{
    void *data;
    raffia_status status = allocate(buffer, capacity, &data);
    if (status)
        return status;
    status = copy(buffer, data, buffer->data, core_min(buffer->size, capacity));
    if (status) {
        release(buffer, data, capacity);
        return status;
    }
    release(buffer, buffer->data, buffer->capacity);
    buffer->data = data;
    buffer->capacity = capacity;
    return RAFFIA_OK;
}

static bool resize_in_place(raffia_buffer *buffer, size_t capacity)
{
    const raffia_resource_ref ref = raffia_resource_as_ref(buffer->owner);
    struct core_error_record before;
    if (!buffer->data || !capacity || !RESOURCE_HAS(ref.ops, resize))
        return false;
    core_error_save(&before);
    const bool done = !ref.ops->resize(ref.context, buffer->stream, buffer->data, buffer->capacity,
                                       capacity, buffer->alignment);
    if (done)
        buffer->capacity = capacity;
    else
        core_error_restore(&before);
    return done;
}

/* ---- life ----------------------------------------------------------------------------------- */

static raffia_status find_device(const raffia_buffer_options *o, raffia_buffer *buffer)
{
    struct core_error_record before;
    raffia_status status;
    core_error_save(&before);
    if (o->device || !o->resource.ops) {
        status = driver_open(o->device, &buffer->device);
    } else if (resource_find_device(o->resource, &buffer->device)) {
        core_error_restore(&before);
        status = driver_open(NULL, &buffer->device);
    } else {
        status = RAFFIA_OK;
    }
    if (!status)
        driver_device_name(buffer->device, buffer->device_name);
    return status;
}

static raffia_status set_up(const raffia_buffer_options *o, raffia_buffer *buffer)
{
    buffer->alignment = o->alignment ? o->alignment : RAFFIA_DEFAULT_ALIGNMENT;
    buffer->stream = o->stream;
    raffia_status status = resource_check_alignment(buffer->alignment);
    if (!status)
        status = find_device(o, buffer);
    if (!status)
        status = resource_check_stream(buffer->device, o->stream);
    if (!status)
        status = o->resource.ops
                     ? raffia_resource_from_ref(o->resource, &buffer->owner)
                     : raffia_current_resource_acquire(buffer->device_name, &buffer->owner);
    return status;
}

raffia_status raffia_buffer_create_from(const raffia_buffer_options *options, const void *source,
                                        size_t bytes, raffia_buffer **buffer_p)
{
    raffia_buffer_options o;
    raffia_status status = core_options_copy(&o, sizeof o, options, "raffia_buffer_options");
    if (status)
        return status;
    if (!buffer_p || (!source && bytes))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_buffer_create_from: %s is NULL",
                          buffer_p ? "source" : "buffer_p");
    raffia_buffer *buffer;
    status = raffia_buffer_create(&o, bytes, &buffer);
    if (status)
        return status;
    status = copy(buffer, buffer->data, source, bytes);
    if (status) {
        raffia_buffer_destroy(buffer);
        return status;
    }
    *buffer_p = buffer;
    return RAFFIA_OK;
}

raffia_status raffia_buffer_create(const raffia_buffer_options *options, size_t bytes,
                                   raffia_buffer **buffer_p)
{
    raffia_buffer_options o;
    raffia_status status = core_options_copy(&o, sizeof o, options, "raffia_buffer_options");
    if (status)
        return status;
    if (!buffer_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_buffer_create: buffer_p is NULL");
    raffia_buffer *buffer = core_calloc(1, sizeof *buffer);
    if (!buffer)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    status = set_up(&o, buffer);
    if (!status)
        status = allocate(buffer, bytes, &buffer->data);
    if (status) {
        raffia_resource_release(buffer->owner);
        core_free(buffer);
        return status;
    }
    buffer->size = buffer->capacity = bytes;
    *buffer_p = buffer;
    return RAFFIA_OK;
}

static raffia_status refuse_null(const char *what)
{
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%s: there is no buffer", what);
}

raffia_status raffia_buffer_copy(const raffia_buffer *source, const raffia_buffer_options *options,
                                 raffia_buffer **buffer_p)
{
    if (!source)
        return refuse_null("raffia_buffer_copy");
    const raffia_buffer_options same = {
        .struct_size = sizeof same,
        .resource = raffia_resource_as_ref(source->owner),
        .stream = source->stream,
        .alignment = source->alignment,
        .device = source->device_name,
    };
    return raffia_buffer_create_from(options ? options : &same, source->data, source->size,
                                     buffer_p);
}

void raffia_buffer_destroy(raffia_buffer *buffer)
{
    if (!buffer)
        return;
    release(buffer, buffer->data, buffer->capacity);
    raffia_resource_release(buffer->owner);
    core_free(buffer);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

raffia_status raffia_buffer_reserve(raffia_buffer *buffer, size_t bytes)
{
    if (!buffer)
        return refuse_null("raffia_buffer_reserve");
    if (bytes <= buffer->capacity || resize_in_place(buffer, bytes))
        return RAFFIA_OK;
    return move(buffer, bytes);
}

raffia_status raffia_buffer_resize(raffia_buffer *buffer, size_t bytes)
{
    if (!buffer)
        return refuse_null("raffia_buffer_resize");
    raffia_status status = raffia_buffer_reserve(buffer, bytes);
    if (!status)
        buffer->size = bytes;
    return status;
}

raffia_status raffia_buffer_shrink(raffia_buffer *buffer)
{
    if (!buffer)
        return refuse_null("raffia_buffer_shrink");
    if (buffer->size == buffer->capacity || resize_in_place(buffer, buffer->size))
        return RAFFIA_OK;
    return move(buffer, buffer->size);
}

raffia_status raffia_buffer_set_stream(raffia_buffer *buffer, raffia_stream stream)
{
    if (!buffer)
        return refuse_null("raffia_buffer_set_stream");
    raffia_status status = resource_check_stream(buffer->device, stream);
    if (!status)
        buffer->stream = stream;
    return status;
}

/* ---- questions ------------------------------------------------------------------------------ */

void *raffia_buffer_data(const raffia_buffer *buffer)
{
    return buffer ? buffer->data : NULL;
}

size_t raffia_buffer_size(const raffia_buffer *buffer)
{
    return buffer ? buffer->size : 0;
}

size_t raffia_buffer_capacity(const raffia_buffer *buffer)
{
    return buffer ? buffer->capacity : 0;
}

raffia_stream raffia_buffer_stream(const raffia_buffer *buffer)
{
    return buffer ? buffer->stream : NULL;
}

raffia_resource_ref raffia_buffer_resource(const raffia_buffer *buffer)
{
    return raffia_resource_as_ref(buffer ? buffer->owner : NULL);
}

const char *raffia_buffer_device(const raffia_buffer *buffer)
{
    return buffer ? buffer->device_name : "";
}
