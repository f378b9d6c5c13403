/* Lets one thread at a time through. */
#include "core/error.h"
#include "core/memory.h"
#include "resource/adaptor.h"

#include <raffia/adaptors.h>

#include <pthread.h>
#include <stdio.h>

/* The lock is held while upstream works, which may take long: threads that wait must sleep. */
struct thread_safe_resource {
    struct resource_adaptor adaptor;
    pthread_mutex_t lock;
};

static raffia_status thread_safe_allocate(void *context, raffia_stream stream, size_t bytes,
                                          size_t alignment, void **address_p)
{
    struct thread_safe_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, address_p);
    pthread_mutex_unlock(&self->lock);
    if (!status && *address_p)
        resource_hold(&self->adaptor.base);
    return status;
}

static raffia_status thread_safe_deallocate(void *context, raffia_stream stream, void *address,
                                            size_t bytes, size_t alignment)
{
    struct thread_safe_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    raffia_status status = resource_claim(&self->adaptor.base, address);
    if (status)
        return status;
    pthread_mutex_lock(&self->lock);
    status = resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, alignment);
    pthread_mutex_unlock(&self->lock);
    return resource_settle(&self->adaptor.base, address, status);
}

static raffia_status thread_safe_resize(void *context, raffia_stream stream, void *address,
                                        size_t bytes, size_t new_bytes, size_t alignment)
{
    struct thread_safe_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    raffia_status status =
        resource_adaptor_resize(context, stream, address, bytes, new_bytes, alignment);
    pthread_mutex_unlock(&self->lock);
    return status;
}

static raffia_status thread_safe_usable_size(void *context, const void *address, size_t *bytes_p)
{
    struct thread_safe_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    raffia_status status = resource_adaptor_usable_size(context, address, bytes_p);
    pthread_mutex_unlock(&self->lock);
    return status;
}

static raffia_status thread_safe_find(void *context, const void *address, raffia_block *block)
{
    struct thread_safe_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    raffia_status status = resource_adaptor_find(context, address, block);
    pthread_mutex_unlock(&self->lock);
    return status;
}

static raffia_status thread_safe_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    struct thread_safe_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    raffia_status status = resource_adaptor_walk(context, visitor, argument);
    pthread_mutex_unlock(&self->lock);
    return status;
}

static void thread_safe_describe(void *context, char *buffer, size_t capacity)
{
    (void)context;
    snprintf(buffer, capacity, "thread-safe adaptor");
}

static const raffia_resource_ops thread_safe_ops = {
    .struct_size = sizeof thread_safe_ops,
    .allocate = thread_safe_allocate,
    .deallocate = thread_safe_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = thread_safe_usable_size,
    .resize = thread_safe_resize,
    .find = thread_safe_find,
    .walk = thread_safe_walk,
    .upstream = resource_adaptor_upstream,
    .describe = thread_safe_describe,
};

static void thread_safe_destroy(struct raffia_resource *resource)
{
    struct thread_safe_resource *self = (struct thread_safe_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    pthread_mutex_destroy(&self->lock);
    resource_adaptor_end(&self->adaptor);
}

raffia_status raffia_thread_safe_resource_create(raffia_resource_ref upstream,
                                                 raffia_resource **resource_p)
{
    struct thread_safe_resource *self;
    raffia_status status =
        resource_adaptor_make(sizeof *self, upstream, &thread_safe_ops, thread_safe_destroy,
                              "raffia_thread_safe_resource_create", resource_p, &self);
    if (status)
        return status;
    pthread_mutex_init(&self->lock, NULL);
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}
