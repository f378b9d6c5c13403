/* A resource out of two functions of the program's. */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/options.h"
#include "resource/resource.h"

#include <raffia/resources.h>

#include <stdio.h>

struct callback_resource {
    struct raffia_resource base;
    raffia_callback_resource_options options;
    struct driver_device device; /* driver NULL: not known */
};

static raffia_status callback_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    struct callback_resource *self = context;
    const raffia_callback_resource_options *o = &self->options;
    if (resource_is_inherited(&self->base))
        return resource_refuse_inherited(&self->base);
    void *address = o->allocate(bytes, stream, o->allocate_argument);
    if (!address && bytes)
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "the function of a callback resource gave no %zu bytes", bytes);
    if (!core_is_aligned((uintptr_t)address, alignment)) {
        o->deallocate(address, bytes, stream, o->deallocate_argument);
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "the function of a callback resource returned %p, which is not aligned "
                          "to %zu: put an aligned adaptor in front of it",
                          address, alignment);
    }
    if (address)
        resource_hold(&self->base);
    *address_p = address;
    return RAFFIA_OK;
}

static raffia_status callback_deallocate(void *context, raffia_stream stream, void *address,
                                         size_t bytes, size_t alignment)
{
    struct callback_resource *self = context;
    const raffia_callback_resource_options *o = &self->options;
    (void)alignment;
    if (resource_is_inherited(&self->base))
        return RAFFIA_OK;
    raffia_status status = resource_claim(&self->base, address);
    if (status)
        return status;
    o->deallocate(address, bytes, stream, o->deallocate_argument);
    return resource_settle(&self->base, address, RAFFIA_OK);
}

static unsigned callback_properties(void *context)
{
    return ((struct callback_resource *)context)->options.properties;
}

static bool callback_device(void *context, char name[RAFFIA_DEVICE_NAME_MAX])
{
    const struct callback_resource *self = context;
    if (self->device.driver)
        driver_device_name(self->device, name);
    return self->device.driver != NULL;
}

static void callback_describe(void *context, char *buffer, size_t capacity)
{
    (void)context;
    snprintf(buffer, capacity, "callback resource");
}

static const raffia_resource_ops callback_ops = {
    .struct_size = sizeof callback_ops,
    .allocate = callback_allocate,
    .deallocate = callback_deallocate,
    .properties = callback_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .describe = callback_describe,
    .device = callback_device,
};

static void callback_destroy(struct raffia_resource *resource)
{
    if (!resource_is_inherited(resource))
        core_free(resource);
}

raffia_status raffia_callback_resource_create(const raffia_callback_resource_options *options,
                                              raffia_resource **resource_p)
{
    raffia_callback_resource_options o;
    struct driver_device device = {0};
    raffia_status status =
        core_options_copy(&o, sizeof o, options, "raffia_callback_resource_options");
    if (status)
        return status;
    if (!o.allocate || !o.deallocate || !resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_callback_resource_create: %s is NULL",
                          !o.allocate     ? "allocate"
                          : !o.deallocate ? "deallocate"
                                          : "resource_p");
    status = o.device ? driver_open(o.device, &device) : RAFFIA_OK;
    if (status)
        return status;
    struct callback_resource *self = core_calloc(1, sizeof *self);
    if (!self)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    resource_init(&self->base, &callback_ops, callback_destroy);
    self->options = o;
    self->options.device = NULL; /* the caller's text */
    self->device = device;
    if (!o.properties)
        self->options.properties = RAFFIA_DEVICE_ACCESSIBLE;
    *resource_p = &self->base;
    return RAFFIA_OK;
}
