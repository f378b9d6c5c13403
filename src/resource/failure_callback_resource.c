/* Asks for help when memory is short, and tries again. */
#include "core/error.h"
#include "core/options.h"
#include "resource/adaptor.h"

#include <raffia/adaptors.h>

#include <stdio.h>

#define RETRIES_DEFAULT 1000u

struct failure_resource {
    struct resource_adaptor adaptor;
    raffia_failure_callback callback;
    void *argument;
    unsigned retries;
};

static raffia_status failure_allocate(void *context, raffia_stream stream, size_t bytes,
                                      size_t alignment, void **address_p)
{
    struct failure_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, address_p);
    for (unsigned i = 0; status == RAFFIA_ERROR_OUT_OF_MEMORY && i < self->retries; i++) {
        struct core_error_record cause;
        core_error_save(&cause);
        if (!self->callback(bytes, self->argument)) {
            core_error_restore(&cause); /* it may have failed at something itself */
            return status;
        }
        status = resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, address_p);
    }
    if (!status && *address_p)
        resource_hold(&self->adaptor.base);
    return status;
}

static raffia_status failure_deallocate(void *context, raffia_stream stream, void *address,
                                        size_t bytes, size_t alignment)
{
    struct failure_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    return resource_adaptor_free(&self->adaptor, stream, address, bytes, alignment);
}

static void failure_describe(void *context, char *buffer, size_t capacity)
{
    const struct failure_resource *self = context;
    snprintf(buffer, capacity, "failure-callback adaptor, at most %u retries", self->retries);
}

static const raffia_resource_ops failure_ops = {
    .struct_size = sizeof failure_ops,
    .allocate = failure_allocate,
    .deallocate = failure_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = resource_adaptor_usable_size,
    .resize = resource_adaptor_resize,
    .find = resource_adaptor_find,
    .walk = resource_adaptor_walk,
    .upstream = resource_adaptor_upstream,
    .describe = failure_describe,
};

raffia_status
raffia_failure_callback_resource_create(raffia_resource_ref upstream,
                                        const raffia_failure_callback_options *options,
                                        raffia_resource **resource_p)
{
    raffia_failure_callback_options o;
    struct failure_resource *self;
    raffia_status status =
        core_options_copy(&o, sizeof o, options, "raffia_failure_callback_options");
    if (status)
        return status;
    if (!o.callback)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_failure_callback_resource_create: there is no callback");
    status = resource_adaptor_make(sizeof *self, upstream, &failure_ops, resource_adaptor_destroy,
                                   "raffia_failure_callback_resource_create", resource_p, &self);
    if (status)
        return status;
    self->callback = o.callback;
    self->argument = o.argument;
    self->retries = o.retries ? o.retries : RETRIES_DEFAULT;
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}
