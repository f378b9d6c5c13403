/* A resource over a pool of the device's own driver. */
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/text.h"
#include "resource/record.h"
#include "resource/regular.h"

#include <raffia/resources.h>

#include <stdatomic.h>
#include <stdio.h>

struct async_resource {
    struct resource_on_record on_record;
    struct driver_device device;
    driver_pool pool;
    atomic_bool pool_lost; /* a block is in it that the driver does not free */
    size_t threshold;      /* as the driver knows it */
};

/* What is taken from the pool in the order of a stream. */
struct request {
    const struct async_resource *resource;
    raffia_stream stream;
};

static raffia_status take(void *context, size_t bytes, void **start_p)
{
    const struct request *request = context;
    const struct async_resource *self = request->resource;
    return self->device.driver->pool_alloc(self->device.index, self->pool, request->stream, bytes,
                                           start_p);
}

static raffia_status give(const struct async_resource *self, raffia_stream stream, void *start)
{
    return self->device.driver->pool_free(self->device.index, self->pool, stream, start);
}

static raffia_status take_block(const struct async_resource *self, raffia_stream stream,
                                size_t bytes, size_t alignment, struct resource_block *block)
{
    struct request request = {self, stream};
    size_t total;
    void *start;
    raffia_status status = resource_add_slack(bytes, alignment, &total);
    if (!status)
        status = resource_take_memory(self->device, "stream-ordered memory", total, take, &request,
                                      &start);
    if (!status)
        *block = resource_align_block(start, total, bytes, alignment);
    return status;
}

/* The driver has refused to free a block that nobody has. A pool with a live block in it must not
 * be destroyed either (driver.h). */
static void lose(struct async_resource *self, const struct resource_block *block)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    atomic_store(&self->pool_lost, true);
    core_log_error("%zu bytes at %p are lost, and with them a pool of the driver of %s: %s",
                   block->bytes, block->start, driver_device_name(self->device, name),
                   raffia_last_error());
}

static raffia_status record(struct async_resource *self, raffia_stream stream,
                            const struct resource_block *block)
{
    struct core_error_record cause;
    raffia_status status = resource_record_add(self->on_record.record, block);
    if (!status)
        return RAFFIA_OK;
    core_error_save(&cause);
    if (give(self, stream, block->start))
        lose(self, block);
    core_error_restore(&cause);
    return status;
}

static raffia_status async_allocate(void *context, raffia_stream stream, size_t bytes,
                                    size_t alignment, void **address_p)
{
    struct async_resource *self = context;
    struct resource_block block = {0};
    if (resource_is_inherited(&self->on_record.base))
        return resource_refuse_inherited(&self->on_record.base);
    if (bytes) {
        raffia_status status = take_block(self, stream, bytes, alignment, &block);
        if (!status)
            status = record(self, stream, &block);
        if (status)
            return status;
        resource_hold(&self->on_record.base);
    }
    *address_p = block.address;
    return RAFFIA_OK;
}

/* The block is out of the record before the driver gets it: another thread may be given its address
 * at once. A free that the driver refuses puts it back. */
static raffia_status async_deallocate(void *context, raffia_stream stream, void *address,
                                      size_t bytes, size_t alignment)
{
    struct async_resource *self = context;
    struct resource_block block;
    if (!address || resource_is_inherited(&self->on_record.base))
        return RAFFIA_OK;
    raffia_status status =
        resource_record_lend(self->on_record.record, address, bytes, alignment, &block);
    if (status)
        return status;
    status = give(self, stream, block.start);
    resource_record_settle(self->on_record.record, &block, !status);
    if (!status)
        resource_drop(&self->on_record.base);
    return status;
}

static unsigned async_properties(void *context)
{
    return resource_properties_on(((struct async_resource *)context)->device);
}

static void async_describe(void *context, char *buffer, size_t capacity)
{
    const struct async_resource *self = context;
    char name[RAFFIA_DEVICE_NAME_MAX], kept[CORE_SIZE_TEXT_MAX];
    driver_device_name(self->device, name);
    if (self->threshold == SIZE_MAX)
        snprintf(buffer, capacity, "the driver's own pool on %s, which keeps what is freed", name);
    else
        snprintf(buffer, capacity, "the driver's own pool on %s, which keeps up to %s", name,
                 core_format_size(self->threshold, kept));
}

static bool async_device(void *context, char name[RAFFIA_DEVICE_NAME_MAX])
{
    driver_device_name(((struct async_resource *)context)->device, name);
    return true;
}

static const raffia_resource_ops async_ops = {
    .struct_size = sizeof async_ops,
    .allocate = async_allocate,
    .deallocate = async_deallocate,
    .properties = async_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = resource_on_record_usable_size,
    .find = resource_on_record_find,
    .walk = resource_on_record_walk,
    .describe = async_describe,
    .device = async_device,
};

/* Frees may still be under way; the driver sees to what they free. */
static void end(struct async_resource *self)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    if (!self->pool_lost && self->device.driver->pool_destroy(self->device.index, self->pool))
        core_log_error("a pool of the driver of %s is lost: %s",
                       driver_device_name(self->device, name), raffia_last_error());
    resource_record_destroy(self->on_record.record);
    core_free(self);
}

static void async_destroy(struct raffia_resource *resource)
{
    if (!resource_is_inherited(resource))
        end((struct async_resource *)resource);
}

/* ---- creation -------------------------------------------------------------------------------- */

static raffia_status refuse_device(struct driver_device device)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    return core_error_prefix_as(RAFFIA_ERROR_UNSUPPORTED,
                                "device '%s' has no pool of its driver's to allocate from: use "
                                "raffia_pool_resource_create(), which is stream-ordered too",
                                driver_device_name(device, name));
}

/* What the driver refuses to free is tried again once the stream is through with everything, so
 * that the pool can be destroyed. The refusal stands: the resource is not made. */
static raffia_status give_first(struct async_resource *self, driver_stream stream,
                                const struct resource_block *block)
{
    struct core_error_record cause;
    raffia_status status = give(self, stream, block->start);
    if (!status)
        return RAFFIA_OK;
    core_error_save(&cause);
    (void)!self->device.driver->stream_wait(self->device.index, stream);
    if (give(self, stream, block->start))
        lose(self, block);
    core_error_restore(&cause);
    return status;
}

/* On a stream of its own: the default stream would wait for others, and may be in a capture. */
static raffia_status prime(struct async_resource *self, size_t bytes)
{
    const struct driver *driver = self->device.driver;
    const int index = self->device.index;
    driver_stream stream;
    struct resource_block block;
    raffia_status status = driver->stream_create(index, &stream);
    if (status)
        return status;
    status = take_block(self, stream, bytes, 1, &block);
    if (!status)
        status = give_first(self, stream, &block);
    if (!status)
        status = driver->stream_wait(index, stream);
    struct core_error_record cause;
    core_error_save(&cause);
    if (driver->stream_destroy(index, stream))
        core_log_error("a stream is lost: %s", raffia_last_error());
    core_error_restore(&cause);
    return status ? core_error_prefix("the first %zu bytes of a driver's pool", bytes) : RAFFIA_OK;
}

static raffia_status open_pool(struct async_resource *self)
{
    const struct driver_pool_spec spec = {.release_threshold = self->threshold};
    const struct driver_device device = self->device;
    raffia_status status = device.driver->pool_create(device.index, &spec, &self->pool);
    return status == RAFFIA_ERROR_UNSUPPORTED ? refuse_device(device) : status;
}

static raffia_status make(struct driver_device device, const raffia_async_resource_options *options,
                          raffia_resource **resource_p)
{
    struct async_resource *self = core_calloc(1, sizeof *self);
    if (!self)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    resource_init(&self->on_record.base, &async_ops, async_destroy);
    self->device = device;
    self->threshold = options->release_threshold;
    raffia_status status = resource_record_create(&self->on_record.record);
    if (!status)
        status = open_pool(self);
    if (status) {
        resource_record_destroy(self->on_record.record);
        core_free(self);
        return status;
    }
    if (options->initial_bytes)
        status = prime(self, options->initial_bytes);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        end(self);
        core_error_restore(&cause);
        return status;
    }
    *resource_p = &self->on_record.base;
    return RAFFIA_OK;
}

/* Fills in the defaults. */
static raffia_status check_sizes(raffia_async_resource_options *options)
{
    char first[CORE_SIZE_TEXT_MAX], kept[CORE_SIZE_TEXT_MAX];
    if (!options->release_threshold)
        options->release_threshold = SIZE_MAX;
    else if (options->release_threshold == RAFFIA_NONE)
        options->release_threshold = 0;
    if (options->initial_bytes == RAFFIA_NONE)
        options->initial_bytes = 0;
    if (options->initial_bytes <= options->release_threshold)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "raffia_async_resource_create: initial_bytes is %s and release_threshold %s: "
                      "what is beyond would be given back at once",
                      core_format_size(options->initial_bytes, first),
                      core_format_size(options->release_threshold, kept));
}

raffia_status raffia_async_resource_create(const raffia_async_resource_options *options,
                                           raffia_resource **resource_p)
{
    raffia_async_resource_options o;
    struct driver_device device;
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_async_resource_create: resource_p is NULL");
    raffia_status status =
        core_options_copy(&o, sizeof o, options, "raffia_async_resource_options");
    if (!status)
        status = check_sizes(&o);
    if (!status)
        status = driver_open(o.device, &device);
    return status ? status : make(device, &o, resource_p);
}

raffia_status raffia_async_resource_trim(raffia_resource_ref ref, size_t keep_bytes)
{
    if (ref.ops != &async_ops)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_async_resource_trim: this is no resource over a driver's pool");
    const struct async_resource *self = ref.context;
    if (resource_is_inherited(&self->on_record.base))
        return resource_refuse_inherited(&self->on_record.base);
    return self->device.driver->pool_trim(self->device.index, self->pool, keep_bytes);
}
