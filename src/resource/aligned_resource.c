/* Raises the alignment of what upstream gives. */
#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/options.h"
#include "core/text.h"
#include "resource/adaptor.h"
#include "resource/blocks.h"

#include <raffia/adaptors.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define UNIT ((size_t)RAFFIA_DEFAULT_ALIGNMENT)

struct aligned_resource {
    struct resource_adaptor adaptor;
    size_t alignment, threshold;
    pthread_mutex_t lock;         /* of the blocks; under it is only bookkeeping */
    struct resource_blocks moved; /* those whose address is not the one upstream gave */
};

/* What is asked of upstream in place of `bytes`. */
static bool enlarge(size_t bytes, size_t alignment, size_t *enlarged_p)
{
    size_t rounded;
    return core_align_up(bytes, alignment, &rounded) &&
           core_add(rounded, alignment - UNIT, enlarged_p);
}

static size_t alignment_for(const struct aligned_resource *self, size_t bytes, size_t asked)
{
    const size_t raised = bytes < self->threshold ? UNIT : self->alignment;
    return core_max(raised, asked);
}

static raffia_status allocate_moved(struct aligned_resource *self, raffia_stream stream,
                                    size_t bytes, size_t alignment, void **address_p)
{
    size_t enlarged;
    void *start = NULL;
    if (!enlarge(bytes, alignment, &enlarged))
        return core_error(RAFFIA_ERROR_OVERFLOW,
                          "a block of %zu bytes aligned to %zu exceeds the address space", bytes,
                          alignment);
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, enlarged, UNIT, &start);
    if (status)
        return status;
    const uintptr_t at = core_align_up_unchecked((uintptr_t)start, alignment);
    const struct resource_block block = {
        .address = (char *)start + (at - (uintptr_t)start), .start = start, .bytes = enlarged};
    if (block.address != start) {
        pthread_mutex_lock(&self->lock);
        status = resource_blocks_add(&self->moved, &block);
        pthread_mutex_unlock(&self->lock);
    }
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        (void)resource_adaptor_deallocate(&self->adaptor, stream, start, enlarged, UNIT);
        core_error_restore(&cause);
        return status;
    }
    *address_p = block.address;
    return RAFFIA_OK;
}

static raffia_status aligned_allocate(void *context, raffia_stream stream, size_t bytes,
                                      size_t alignment, void **address_p)
{
    struct aligned_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    const size_t needed = alignment_for(self, bytes, alignment);
    raffia_status status =
        bytes == 0 || needed <= UNIT
            ? resource_adaptor_allocate(&self->adaptor, stream, bytes, UNIT, address_p)
            : allocate_moved(self, stream, bytes, needed, address_p);
    if (!status && *address_p)
        resource_hold(&self->adaptor.base);
    return status;
}

static raffia_status deallocate_moved(struct aligned_resource *self, raffia_stream stream,
                                      void *address, size_t bytes, size_t alignment)
{
    struct resource_block block = {.address = address, .start = address};
    if (!enlarge(bytes, alignment, &block.bytes))
        return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                          "no block of %zu bytes aligned to %zu can be at %p", bytes, alignment,
                          address);
    const size_t expected = block.bytes;
    pthread_mutex_lock(&self->lock);
    const bool moved = resource_blocks_take(&self->moved, address, &block);
    pthread_mutex_unlock(&self->lock);
    raffia_status status =
        moved && block.bytes != expected
            ? resource_refuse_size(address, bytes, alignment, block.bytes)
            : resource_adaptor_deallocate(&self->adaptor, stream, block.start, block.bytes, UNIT);
    if (status && moved) {
        struct core_error_record cause;
        core_error_save(&cause);
        pthread_mutex_lock(&self->lock);
        const bool kept = !resource_blocks_add(&self->moved, &block);
        pthread_mutex_unlock(&self->lock);
        core_error_restore(&cause);
        if (!kept)
            core_log_error("an aligned adaptor has lost sight of %zu bytes at %p", block.bytes,
                           block.address);
    }
    return status;
}

static raffia_status aligned_deallocate(void *context, raffia_stream stream, void *address,
                                        size_t bytes, size_t alignment)
{
    struct aligned_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    const size_t needed = alignment_for(self, bytes, alignment);
    raffia_status status = resource_claim(&self->adaptor.base, address);
    if (status)
        return status;
    status = !address || bytes == 0 || needed <= UNIT
                 ? resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, UNIT)
                 : deallocate_moved(self, stream, address, bytes, needed);
    return resource_settle(&self->adaptor.base, address, status);
}

static void aligned_describe(void *context, char *buffer, size_t capacity)
{
    const struct aligned_resource *self = context;
    char to[CORE_SIZE_TEXT_MAX], from[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, capacity, "aligned adaptor, to %s from %s on",
             core_format_size(self->alignment, to), core_format_size(self->threshold, from));
}

/* Upstream's answers about blocks would name addresses that the caller never saw. */
static const raffia_resource_ops aligned_ops = {
    .struct_size = sizeof aligned_ops,
    .allocate = aligned_allocate,
    .deallocate = aligned_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .upstream = resource_adaptor_upstream,
    .describe = aligned_describe,
};

static void aligned_destroy(struct raffia_resource *resource)
{
    struct aligned_resource *self = (struct aligned_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    assert(self->moved.count == 0);
    pthread_mutex_destroy(&self->lock);
    resource_adaptor_end(&self->adaptor);
}

raffia_status raffia_aligned_resource_create(raffia_resource_ref upstream,
                                             const raffia_aligned_options *options,
                                             raffia_resource **resource_p)
{
    raffia_aligned_options o;
    struct aligned_resource *self;
    raffia_status status = core_options_copy(&o, sizeof o, options, "raffia_aligned_options");
    if (!status && o.alignment)
        status = resource_check_alignment(o.alignment);
    if (!status)
        status = resource_adaptor_make(sizeof *self, upstream, &aligned_ops, aligned_destroy,
                                       "raffia_aligned_resource_create", resource_p, &self);
    if (status)
        return status;
    self->alignment = core_max(o.alignment, UNIT);
    self->threshold = o.threshold_bytes;
    pthread_mutex_init(&self->lock, NULL);
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}
