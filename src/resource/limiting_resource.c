/* Refuses what would exceed a limit. */
#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "resource/adaptor.h"

#include <raffia/adaptors.h>

#include <stdio.h>

#define UNIT ((size_t)RAFFIA_DEFAULT_ALIGNMENT)

struct limiting_resource {
    struct resource_adaptor adaptor;
    size_t limit;
    atomic_size_t allocated;
};

static raffia_status refuse(const struct limiting_resource *self, size_t bytes, size_t allocated)
{
    char asked[CORE_SIZE_TEXT_MAX], live[CORE_SIZE_TEXT_MAX], most[CORE_SIZE_TEXT_MAX];
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                      "a request for %s exceeds the limit of a limiting adaptor: %s of %s are live",
                      core_format_size(bytes, asked), core_format_size(allocated, live),
                      core_format_size(self->limit, most));
}

static void change(struct limiting_resource *self, size_t difference)
{
    if (__libc_single_threaded)
        atomic_store_explicit(&self->allocated,
                              atomic_load_explicit(&self->allocated, memory_order_relaxed) +
                                  difference,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&self->allocated, difference, memory_order_relaxed);
}

/* False if there is no room; *allocated_p is what was live. */
static bool reserve(struct limiting_resource *self, size_t bytes, size_t *allocated_p)
{
    size_t before = atomic_load_explicit(&self->allocated, memory_order_relaxed);
    do {
        *allocated_p = before;
        if (before > self->limit || bytes > self->limit - before)
            return false;
        if (__libc_single_threaded) {
            atomic_store_explicit(&self->allocated, before + bytes, memory_order_relaxed);
            return true;
        }
    } while (!atomic_compare_exchange_weak_explicit(&self->allocated, &before, before + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static raffia_status limiting_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    struct limiting_resource *self = context;
    size_t rounded, allocated = 0;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    if (!core_align_up(bytes, UNIT, &rounded) || !reserve(self, rounded, &allocated))
        return refuse(self, bytes, allocated);
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, address_p);
    if (status) {
        change(self, -rounded);
        return status;
    }
    if (*address_p)
        resource_hold(&self->adaptor.base);
    return RAFFIA_OK;
}

/* False, and nothing changes, if less is live than is to be given back. */
static bool give_back(struct limiting_resource *self, size_t bytes)
{
    size_t before = atomic_load_explicit(&self->allocated, memory_order_relaxed);
    do {
        if (before < bytes)
            return false;
        if (__libc_single_threaded) {
            atomic_store_explicit(&self->allocated, before - bytes, memory_order_relaxed);
            return true;
        }
    } while (!atomic_compare_exchange_weak_explicit(&self->allocated, &before, before - bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static raffia_status limiting_deallocate(void *context, raffia_stream stream, void *address,
                                         size_t bytes, size_t alignment)
{
    struct limiting_resource *self = context;
    size_t rounded;
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    if (!core_align_up(bytes, UNIT, &rounded) || (address && !give_back(self, rounded)))
        return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                          "%zu bytes at %p are freed through a limiting adaptor that has less than "
                          "that live: they were allocated through another resource",
                          bytes, address);
    raffia_status status =
        resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, alignment);
    if (status && address)
        change(self, rounded);
    else if (address)
        resource_drop(&self->adaptor.base);
    return status;
}

static void limiting_describe(void *context, char *buffer, size_t capacity)
{
    struct limiting_resource *self = context;
    char live[CORE_SIZE_TEXT_MAX], most[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, capacity, "limiting adaptor, %s of at most %s",
             core_format_size(atomic_load(&self->allocated), live),
             core_format_size(self->limit, most));
}

static const raffia_resource_ops limiting_ops = {
    .struct_size = sizeof limiting_ops,
    .allocate = limiting_allocate,
    .deallocate = limiting_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = resource_adaptor_usable_size,
    .find = resource_adaptor_find,
    .walk = resource_adaptor_walk,
    .upstream = resource_adaptor_upstream,
    .describe = limiting_describe,
};

raffia_status raffia_limiting_resource_create(raffia_resource_ref upstream, size_t limit_bytes,
                                              raffia_resource **resource_p)
{
    struct limiting_resource *self;
    raffia_status status =
        resource_adaptor_make(sizeof *self, upstream, &limiting_ops, resource_adaptor_destroy,
                              "raffia_limiting_resource_create", resource_p, &self);
    if (status)
        return status;
    self->limit = limit_bytes;
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}

raffia_status raffia_limiting_query(raffia_resource_ref limiting, size_t *allocated_bytes_p,
                                    size_t *limit_bytes_p)
{
    if (limiting.ops != &limiting_ops)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_limiting_query: the resource is no limiting adaptor");
    struct limiting_resource *self = limiting.context;
    if (allocated_bytes_p)
        *allocated_bytes_p = atomic_load(&self->allocated);
    if (limit_bytes_p)
        *limit_bytes_p = self->limit;
    return RAFFIA_OK;
}
