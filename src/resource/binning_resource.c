/* Routes each request to the smallest bin that holds it. */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/options.h"
#include "resource/adaptor.h"
#include "resource/fixed_size_resource.h"

#include <raffia/resources.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define EXPONENT_MAX 40u
#define UNIT         ((size_t)RAFFIA_DEFAULT_ALIGNMENT)

struct bin {
    size_t bytes;
    raffia_resource *owner;
};

struct binning_resource {
    struct resource_adaptor adaptor;
    atomic_bool grown; /* bins were added after creation: live blocks may have come another way */
    pthread_rwlock_t lock; /* of the bins; a bin stays until the end */
    size_t bin_count;
    struct bin bins[RAFFIA_BINS_MAX]; /* by size */
};

/* Bin `i` of those that hold the request, the smallest first; upstream behind the last. False
 * beyond that. */
static bool route(struct binning_resource *self, size_t bytes, size_t i, raffia_resource_ref *ref_p)
{
    pthread_rwlock_rdlock(&self->lock);
    size_t at = 0;
    while (at < self->bin_count && self->bins[at].bytes < bytes)
        at++;
    at += i;
    const bool exists = at <= self->bin_count;
    *ref_p = at < self->bin_count ? raffia_resource_as_ref(self->bins[at].owner)
                                  : self->adaptor.upstream;
    pthread_rwlock_unlock(&self->lock);
    return exists;
}

/* Tries one way after the other, as long as each says that it is not for it. The last error is kept
 * if one of them succeeds. */
static raffia_status allocate_somewhere(struct binning_resource *self, raffia_stream stream,
                                        size_t bytes, size_t alignment, void **address_p)
{
    raffia_resource_ref way;
    raffia_status status = RAFFIA_ERROR_INVALID_ARGUMENT;
    struct core_error_record before;
    core_error_save(&before);
    for (size_t i = 0; status == RAFFIA_ERROR_INVALID_ARGUMENT && route(self, bytes, i, &way); i++)
        status = way.ops->allocate(way.context, stream, bytes, alignment, address_p);
    if (!status)
        core_error_restore(&before);
    return status;
}

static raffia_status free_somewhere(struct binning_resource *self, raffia_stream stream,
                                    void *address, size_t bytes, size_t alignment)
{
    raffia_resource_ref way;
    raffia_status status = RAFFIA_ERROR_BAD_ADDRESS;
    struct core_error_record before;
    core_error_save(&before);
    for (size_t i = 0; status == RAFFIA_ERROR_BAD_ADDRESS && route(self, bytes, i, &way); i++)
        status = way.ops->deallocate(way.context, stream, address, bytes, alignment);
    if (!status)
        core_error_restore(&before);
    return status;
}

/* Whether the smallest bin that holds a block need not be the one it is from. */
static bool must_search(const struct binning_resource *self, size_t alignment)
{
    return alignment > UNIT || atomic_load_explicit(&self->grown, memory_order_relaxed);
}

/* A bin whose blocks are not aligned as far as is asked is passed over. */
static raffia_status binning_allocate(void *context, raffia_stream stream, size_t bytes,
                                      size_t alignment, void **address_p)
{
    struct binning_resource *self = context;
    raffia_resource_ref way;
    raffia_status status;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    if (alignment > UNIT) {
        status = allocate_somewhere(self, stream, bytes, alignment, address_p);
    } else {
        route(self, bytes, 0, &way);
        status = way.ops->allocate(way.context, stream, bytes, alignment, address_p);
    }
    if (!status && *address_p)
        resource_hold(&self->adaptor.base);
    return status;
}

static raffia_status binning_deallocate(void *context, raffia_stream stream, void *address,
                                        size_t bytes, size_t alignment)
{
    struct binning_resource *self = context;
    raffia_resource_ref way;
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    raffia_status status = resource_claim(&self->adaptor.base, address);
    if (status)
        return status;
    if (must_search(self, alignment)) {
        status = free_somewhere(self, stream, address, bytes, alignment);
    } else {
        route(self, bytes, 0, &way);
        status = way.ops->deallocate(way.context, stream, address, bytes, alignment);
    }
    /* A wrong size leads to a wrong bin, or upstream, which may have a bin's chunk there. */
    if (status == RAFFIA_ERROR_BAD_ADDRESS || status == RAFFIA_ERROR_INVALID_ARGUMENT)
        status = resource_explain_refusal(raffia_resource_as_ref(&self->adaptor.base), address,
                                          bytes, status);
    return resource_settle(&self->adaptor.base, address, status);
}

static raffia_status binning_find(void *context, const void *address, raffia_block *block)
{
    struct binning_resource *self = context;
    raffia_resource_ref way;
    raffia_status status = RAFFIA_ERROR_BAD_ADDRESS;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    for (size_t i = 0; status == RAFFIA_ERROR_BAD_ADDRESS && route(self, 0, i, &way); i++) {
        status = raffia_resource_find(way, address, block);
        /* To upstream a bin's chunk is a live block. */
        if (status && resource_fixed_size_contains(way, address))
            break;
    }
    return status;
}

static raffia_status binning_usable_size(void *context, const void *address, size_t *bytes_p)
{
    return resource_usable_size_by(binning_find, context, address, bytes_p);
}

/* Upstream first, then the bins. */
static bool binning_upstream(void *context, size_t index, raffia_resource_ref *ref_p)
{
    struct binning_resource *self = context;
    if (index == 0) {
        *ref_p = self->adaptor.upstream;
        return true;
    }
    if (resource_is_inherited(&self->adaptor.base)) /* and maybe its lock is held for ever */
        return false;
    pthread_rwlock_rdlock(&self->lock);
    const bool exists = index <= self->bin_count;
    if (exists)
        *ref_p = raffia_resource_as_ref(self->bins[index - 1].owner);
    pthread_rwlock_unlock(&self->lock);
    return exists;
}

static void binning_describe(void *context, char *buffer, size_t capacity)
{
    struct binning_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base)) {
        snprintf(buffer, capacity, "binning resource, of another process");
        return;
    }
    pthread_rwlock_rdlock(&self->lock);
    const size_t count = self->bin_count;
    pthread_rwlock_unlock(&self->lock);
    snprintf(buffer, capacity, "binning resource with %zu bins", count);
}

/* Memory is accessible where all of it is. */
static unsigned binning_properties(void *context)
{
    unsigned properties = resource_adaptor_properties(context);
    raffia_resource_ref below;
    for (size_t i = 1; binning_upstream(context, i, &below); i++)
        properties &= raffia_resource_properties_of(below);
    return properties;
}

static const raffia_resource_ops binning_ops = {
    .struct_size = sizeof binning_ops,
    .allocate = binning_allocate,
    .deallocate = binning_deallocate,
    .properties = binning_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = binning_usable_size,
    .find = binning_find,
    .upstream = binning_upstream,
    .describe = binning_describe,
};

static void binning_destroy(struct raffia_resource *resource)
{
    struct binning_resource *self = (struct binning_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    for (size_t i = 0; i < self->bin_count; i++)
        raffia_resource_release(self->bins[i].owner);
    pthread_rwlock_destroy(&self->lock);
    resource_adaptor_end(&self->adaptor);
}

/* LIMIT. The owner is taken over, or released if there is such a bin. */
static raffia_status insert(struct binning_resource *self, size_t bytes, raffia_resource *owner)
{
    size_t at = 0;
    pthread_rwlock_wrlock(&self->lock);
    while (at < self->bin_count && self->bins[at].bytes < bytes)
        at++;
    const bool twice = at < self->bin_count && self->bins[at].bytes == bytes;
    const bool full = !twice && self->bin_count == RAFFIA_BINS_MAX;
    if (!twice && !full) {
        for (size_t i = self->bin_count++; i > at; i--)
            self->bins[i] = self->bins[i - 1];
        self->bins[at] = (struct bin){bytes, owner};
    }
    pthread_rwlock_unlock(&self->lock);
    if (twice || full)
        raffia_resource_release(owner);
    return full ? core_error(RAFFIA_ERROR_LIMIT, "a binning resource has at most %u bins",
                             RAFFIA_BINS_MAX)
                : RAFFIA_OK;
}

static raffia_status add_bin(struct binning_resource *self, size_t bytes, raffia_resource_ref bin)
{
    raffia_resource *owner;
    size_t rounded;
    if (bytes == 0 || !core_align_up(bytes, UNIT, &rounded))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a bin for %zu bytes is no bin", bytes);
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = rounded, .lazy = true};
    raffia_status status =
        bin.ops ? raffia_resource_from_ref(bin, &owner)
                : raffia_fixed_size_resource_create(self->adaptor.upstream, &options, &owner);
    return status ? status : insert(self, rounded, owner);
}

/* Requests would go round in circles otherwise, and owners never end. */
static raffia_status check_bin(raffia_resource_ref binning, raffia_resource_ref bin)
{
    if (!bin.ops)
        return RAFFIA_OK;
    raffia_status status = resource_check(bin, "raffia_binning_add_bin");
    if (!status)
        status = resource_check_depth(bin, "raffia_binning_add_bin");
    if (!status && resource_stands_on(bin, binning))
        status = core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                            "raffia_binning_add_bin: the bin is the binning resource itself, or "
                            "stands on it");
    return status;
}

raffia_status raffia_binning_add_bin(raffia_resource_ref binning, size_t bytes,
                                     raffia_resource_ref bin)
{
    if (binning.ops != &binning_ops)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_binning_add_bin: the resource is no binning resource");
    struct binning_resource *self = binning.context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    raffia_status status = check_bin(binning, bin);
    if (status)
        return status;
    atomic_store_explicit(&self->grown, true, memory_order_relaxed);
    return add_bin(self, bytes, bin);
}

static raffia_status check_exponents(unsigned low, unsigned high)
{
    if (low <= high && high <= EXPONENT_MAX)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "bins of 2^%u to 2^%u bytes: exponents rise, to at most %u", low, high,
                      EXPONENT_MAX);
}

raffia_status raffia_binning_resource_create(raffia_resource_ref upstream,
                                             const raffia_binning_resource_options *options,
                                             raffia_resource **resource_p)
{
    raffia_binning_resource_options o;
    struct binning_resource *self;
    raffia_status status =
        core_options_copy(&o, sizeof o, options, "raffia_binning_resource_options");
    if (!status)
        status = check_exponents(o.min_exponent, o.max_exponent);
    if (!status)
        status = resource_adaptor_make(sizeof *self, upstream, &binning_ops, binning_destroy,
                                       "raffia_binning_resource_create", resource_p, &self);
    if (status)
        return status;
    pthread_rwlock_init(&self->lock, NULL);
    for (unsigned e = o.min_exponent; o.max_exponent && e <= o.max_exponent && !status; e++)
        status = add_bin(self, (size_t)1 << e, (raffia_resource_ref){0});
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        raffia_resource_release(&self->adaptor.base);
        core_error_restore(&cause);
        return status;
    }
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}
