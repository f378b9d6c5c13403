/* Refuses what would exceed a limit. */
#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"
#include "resource/adaptor.h"

#include <raffia/adaptors.h>

#include <stdio.h>

#define UNIT ((size_t)RAFFIA_DEFAULT_ALIGNMENT)

/*
 * Bytes that are live, in steps of UNIT, and in the lowest bit whether the last owner has gone.
 * What is live says whether blocks are, so that they need not be counted a second time: the
 * resource ends when nothing is left but that bit.
 */
#define ORPHANED ((size_t)1)

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

/* Puts `after` where `*before_p` is; false, with what is there now, if it is not. While the process
 * has one thread no atomic instruction is needed. */
static bool replace(struct limiting_resource *self, size_t *before_p, size_t after)
{
    if (!__libc_single_threaded)
        return atomic_compare_exchange_weak_explicit(&self->allocated, before_p, after,
                                                     memory_order_acq_rel, memory_order_relaxed);
    atomic_store_explicit(&self->allocated, after, memory_order_relaxed);
    return true;
}

/* False if there is no room; *live_p is what was live. */
static bool reserve(struct limiting_resource *self, size_t bytes, size_t *live_p)
{
    size_t before = atomic_load_explicit(&self->allocated, memory_order_relaxed);
    do {
        *live_p = before;
        if (before > self->limit || bytes > self->limit - before)
            return false;
    } while (!replace(self, &before, before + bytes));
    return true;
}

/* Ends the resource if that was the last of it and no owner is left. */
static void give_back(struct limiting_resource *self, size_t bytes)
{
    size_t before = atomic_load_explicit(&self->allocated, memory_order_relaxed);
    while (before >= bytes && !replace(self, &before, before - bytes))
        ;
    if (before - bytes == ORPHANED)
        resource_adaptor_end(&self->adaptor);
}

/* A block counts as one unit at least. False if it cannot be. */
static bool charge(size_t bytes, size_t *charged_p)
{
    return core_align_up(bytes ? bytes : 1, UNIT, charged_p);
}

/* Nothing fits always; a block that upstream has for it counts all the same. */
static raffia_status allocate_nothing(struct limiting_resource *self, raffia_stream stream,
                                      size_t alignment, void **address_p)
{
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, 0, alignment, address_p);
    size_t before = atomic_load_explicit(&self->allocated, memory_order_relaxed);
    while (!status && *address_p && !replace(self, &before, before + UNIT))
        ;
    return status;
}

static raffia_status limiting_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    struct limiting_resource *self = context;
    size_t charged, live = 0;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    if (!bytes)
        return allocate_nothing(self, stream, alignment, address_p);
    if (!charge(bytes, &charged) || !reserve(self, charged, &live))
        return refuse(self, bytes, live);
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, address_p);
    if (status)
        give_back(self, charged);
    return status;
}

/* More than what is live. */
static raffia_status refuse_free(struct limiting_resource *self, const void *address, size_t bytes)
{
    raffia_status status =
        core_error(RAFFIA_ERROR_BAD_ADDRESS,
                   "%zu bytes at %p are freed through a limiting adaptor that has less than that "
                   "live: they were allocated through another resource",
                   bytes, address);
    return resource_explain_refusal(self->adaptor.upstream, address, bytes, status);
}

static raffia_status limiting_deallocate(void *context, raffia_stream stream, void *address,
                                         size_t bytes, size_t alignment)
{
    struct limiting_resource *self = context;
    size_t charged;
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    if (!charge(bytes, &charged) ||
        (address && atomic_load_explicit(&self->allocated, memory_order_relaxed) < charged))
        return refuse_free(self, address, bytes);
    raffia_status status =
        resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, alignment);
    if (!status && address)
        give_back(self, charged);
    return status;
}

static size_t live_bytes(struct limiting_resource *self)
{
    return atomic_load_explicit(&self->allocated, memory_order_relaxed) & ~ORPHANED;
}

static void limiting_describe(void *context, char *buffer, size_t capacity)
{
    struct limiting_resource *self = context;
    char live[CORE_SIZE_TEXT_MAX], most[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, capacity, "limiting adaptor, %s of at most %s",
             core_format_size(live_bytes(self), live), core_format_size(self->limit, most));
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

/* The last owner has gone. */
static void limiting_destroy(struct raffia_resource *resource)
{
    struct limiting_resource *self = (struct limiting_resource *)resource;
    if (!resource_is_inherited(resource) &&
        atomic_fetch_or_explicit(&self->allocated, ORPHANED, memory_order_acq_rel) == 0)
        resource_adaptor_end(&self->adaptor);
}

raffia_status raffia_limiting_resource_create(raffia_resource_ref upstream, size_t limit_bytes,
                                              raffia_resource **resource_p)
{
    struct limiting_resource *self;
    raffia_status status =
        resource_adaptor_make(sizeof *self, upstream, &limiting_ops, limiting_destroy,
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
        *allocated_bytes_p = live_bytes(self);
    if (limit_bytes_p)
        *limit_bytes_p = self->limit;
    return RAFFIA_OK;
}
