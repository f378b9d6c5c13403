/* Regular memory of a device as a resource: the device's own, pinned, or the machine's. */
#include "resource/regular_resource.h"

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "resource/intern.h"
#include "resource/record.h"
#include "resource/regular.h"

#include <raffia/resources.h>

#include <stdio.h>
#include <string.h>

struct regular_resource {
    struct resource_on_record on_record;
    struct resource_link link;
    const char *kind;            /* "device", "pinned host", "host" */
    struct driver_device memory; /* whose memory it is */
    struct driver_device order;  /* whose streams use it */
    unsigned properties;
};

static void give_back(struct regular_resource *self, const struct resource_block *block)
{
    if (resource_regular_free(self->memory, block))
        core_log_error("%zu bytes at %p are lost: %s", block->bytes, block->start,
                       raffia_last_error());
}

static raffia_status regular_allocate(void *context, raffia_stream stream, size_t bytes,
                                      size_t alignment, void **address_p)
{
    struct regular_resource *self = context;
    if (resource_is_inherited(&self->on_record.base))
        return resource_refuse_inherited(&self->on_record.base);
    raffia_status status = resource_check_stream(self->order, stream);
    if (status)
        return status;
    struct resource_block block = {0};
    if (bytes) {
        status = resource_regular_alloc(self->memory, bytes, alignment, &block);
        if (status)
            return status;
        status = resource_record_add(self->on_record.record, &block);
        if (status) {
            struct core_error_record cause;
            core_error_save(&cause);
            give_back(self, &block);
            core_error_restore(&cause);
            return status;
        }
        resource_hold(&self->on_record.base);
    }
    *address_p = block.address;
    return RAFFIA_OK;
}

/* Two looks at the record: nothing is waited for on behalf of an address that is no block. */
static raffia_status regular_deallocate(void *context, raffia_stream stream, void *address,
                                        size_t bytes, size_t alignment)
{
    struct regular_resource *self = context;
    struct resource_block block;
    if (!address || resource_is_inherited(&self->on_record.base))
        return RAFFIA_OK;
    raffia_status status = RAFFIA_OK;
    if (self->order.driver->capabilities & DRIVER_IS_ASYNCHRONOUS || stream) {
        status =
            resource_record_take(self->on_record.record, address, bytes, alignment, true, &block);
        if (!status)
            status = resource_wait_for(self->order, stream);
    }
    if (!status)
        status =
            resource_record_take(self->on_record.record, address, bytes, alignment, false, &block);
    if (status)
        return status;
    give_back(self, &block);
    resource_drop(&self->on_record.base);
    return RAFFIA_OK;
}

static unsigned regular_properties(void *context)
{
    return ((struct regular_resource *)context)->properties;
}

static bool same_device(struct driver_device a, struct driver_device b)
{
    return a.driver == b.driver && a.index == b.index;
}

static void regular_describe(void *context, char *buffer, size_t capacity)
{
    const struct regular_resource *self = context;
    char name[RAFFIA_DEVICE_NAME_MAX];
    snprintf(buffer, capacity, "%s memory on %s", self->kind,
             driver_device_name(self->memory, name));
}

static bool regular_device(void *context, char name[RAFFIA_DEVICE_NAME_MAX])
{
    driver_device_name(((struct regular_resource *)context)->memory, name);
    return true;
}

static const raffia_resource_ops regular_ops = {
    .struct_size = sizeof regular_ops,
    .allocate = regular_allocate,
    .deallocate = regular_deallocate,
    .properties = regular_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = resource_on_record_usable_size,
    .find = resource_on_record_find,
    .walk = resource_on_record_walk,
    .describe = regular_describe,
    .device = regular_device,
};

static void end(struct regular_resource *self)
{
    resource_record_destroy(self->on_record.record);
    core_free(self);
}

static void regular_destroy(struct raffia_resource *resource)
{
    struct regular_resource *self = (struct regular_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    resource_intern_remove(&self->link);
    end(self);
}

/* Number of a device as a word of a key. */
static const void *word(int index)
{
    return (const void *)(uintptr_t)(unsigned)index;
}

static raffia_status make(const char *kind, struct driver_device memory, struct driver_device order,
                          unsigned properties, raffia_resource **resource_p)
{
    const struct resource_key key = {
        {memory.driver, word(memory.index), order.driver, word(order.index)}};
    raffia_resource *twin = resource_intern_find(&regular_ops, &key);
    if (twin) {
        *resource_p = twin;
        return RAFFIA_OK;
    }
    struct regular_resource *self = core_calloc(1, sizeof *self);
    if (!self)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = resource_record_create(&self->on_record.record);
    if (status) {
        core_free(self);
        return status;
    }
    resource_init(&self->on_record.base, &regular_ops, regular_destroy);
    self->kind = kind;
    self->memory = memory;
    self->order = order;
    self->properties = properties;
    *resource_p = resource_intern(&self->on_record.base, &self->link, &key);
    if (*resource_p != &self->on_record.base)
        end(self);
    return RAFFIA_OK;
}

raffia_status resource_regular_make(struct driver_device device, raffia_resource **resource_p)
{
    return make("device", device, device, resource_properties_on(device), resource_p);
}

static raffia_status read_options(const raffia_device_resource_options *options,
                                  raffia_resource **resource_p, const char *what,
                                  raffia_device_resource_options *copy)
{
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%s: resource_p is NULL", what);
    return core_options_copy(copy, sizeof *copy, options, "raffia_device_resource_options");
}

raffia_status raffia_device_resource_create(const raffia_device_resource_options *options,
                                            raffia_resource **resource_p)
{
    raffia_device_resource_options o;
    struct driver_device device;
    raffia_status status = read_options(options, resource_p, "raffia_device_resource_create", &o);
    if (!status)
        status = driver_open(o.device, &device);
    return status ? status : resource_regular_make(device, resource_p);
}

raffia_status raffia_host_resource_create(const raffia_device_resource_options *options,
                                          raffia_resource **resource_p)
{
    raffia_device_resource_options o;
    struct driver_device host, order;
    raffia_status status = read_options(options, resource_p, "raffia_host_resource_create", &o);
    if (!status)
        status = driver_open("host", &host);
    if (!status)
        status = driver_open(o.device, &order);
    if (status)
        return status;
    /* Only a device that is the host itself is known to reach pageable memory. */
    const unsigned reach = same_device(host, order) ? RAFFIA_DEVICE_ACCESSIBLE : 0;
    return make("host", host, order, RAFFIA_HOST_ACCESSIBLE | reach, resource_p);
}

/* "cuda:1" is served by "pinned:cuda:1"; who names a pinned device gets that one. */
raffia_status resource_pinned_open(const char *device, struct driver_device *device_p)
{
    char name[RAFFIA_DEVICE_NAME_MAX], pinned[RAFFIA_DEVICE_NAME_MAX];
    struct driver_device found;
    raffia_status status = driver_open(device, &found);
    if (status)
        return status;
    driver_device_name(found, name);
    if (strncmp(name, "pinned:", strlen("pinned:")) == 0) {
        *device_p = found;
        return RAFFIA_OK;
    }
    snprintf(pinned, sizeof pinned, "pinned:%.50s", name);
    status = driver_open(pinned, device_p);
    return status ? core_error_prefix_as(
                        RAFFIA_ERROR_UNSUPPORTED,
                        "there is no pinned host memory for device '%s': a GPU's driver must "
                        "register it, and none is there that can",
                        name)
                  : RAFFIA_OK;
}

raffia_status raffia_pinned_host_resource_create(const raffia_device_resource_options *options,
                                                 raffia_resource **resource_p)
{
    raffia_device_resource_options o;
    struct driver_device device;
    raffia_status status =
        read_options(options, resource_p, "raffia_pinned_host_resource_create", &o);
    if (!status)
        status = resource_pinned_open(o.device, &device);
    return status ? status
                  : make("pinned host", device, device,
                         RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE, resource_p);
}
