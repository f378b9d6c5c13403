#include "resource/pinned_default.h"

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/text.h"
#include "pool/pool.h"
#include "resource/regular_resource.h"

#include <stdio.h>

struct pinned_default {
    struct raffia_resource base;
    struct driver_device device;
    bool pinned;
    struct pinned_sizes sizes;
    raffia_pool *pool;   /* NULL: none */
    uintptr_t pool_base; /* its addresses */
    size_t pool_bytes;
    raffia_resource *fresh; /* a block of its own for each request; knows its blocks */
    atomic_ulong fallbacks;
};

static raffia_status allocate_fresh(struct pinned_default *self, raffia_stream stream, size_t bytes,
                                    size_t alignment, void **address_p)
{
    const raffia_resource_ref fresh = raffia_resource_as_ref(self->fresh);
    return fresh.ops->allocate(fresh.context, stream, bytes, alignment, address_p);
}

/* Whatever the pool's reason, memory that is pinned for the request serves it. */
static raffia_status fall_back(struct pinned_default *self, raffia_stream stream, size_t bytes,
                               size_t alignment, void **address_p)
{
    char size[CORE_SIZE_TEXT_MAX];
    core_log_info("the pinned pool has no %s, so that a block is made for it: %s",
                  core_format_size(bytes, size), raffia_last_error());
    atomic_fetch_add_explicit(&self->fallbacks, 1, memory_order_relaxed);
    return allocate_fresh(self, stream, bytes, alignment, address_p);
}

static raffia_status serve(struct pinned_default *self, raffia_stream stream, size_t bytes,
                           size_t alignment, void **address_p)
{
    if (!self->pool || !bytes)
        return allocate_fresh(self, stream, bytes, alignment, address_p);
    struct core_error_record before;
    core_error_save(&before);
    raffia_status status = raffia_pool_alloc_on(self->pool, stream, bytes, alignment, address_p);
    if (!status)
        return RAFFIA_OK;
    status = fall_back(self, stream, bytes, alignment, address_p);
    if (!status)
        core_error_restore(&before);
    return status;
}

static raffia_status pinned_allocate(void *context, raffia_stream stream, size_t bytes,
                                     size_t alignment, void **address_p)
{
    struct pinned_default *self = context;
    if (resource_is_inherited(&self->base))
        return resource_refuse_inherited(&self->base);
    raffia_status status = serve(self, stream, bytes, alignment, address_p);
    if (!status && *address_p)
        resource_hold(&self->base);
    return status;
}

static bool is_pooled(const struct pinned_default *self, const void *address)
{
    return self->pool && (uintptr_t)address - self->pool_base < self->pool_bytes;
}

static raffia_status pinned_deallocate(void *context, raffia_stream stream, void *address,
                                       size_t bytes, size_t alignment)
{
    struct pinned_default *self = context;
    if (!address || resource_is_inherited(&self->base))
        return RAFFIA_OK;
    const raffia_resource_ref fresh = raffia_resource_as_ref(self->fresh);
    raffia_status status = resource_claim(&self->base, address);
    if (status)
        return status;
    status = is_pooled(self, address)
                 ? pool_free_sized(self->pool, stream, address, bytes)
                 : fresh.ops->deallocate(fresh.context, stream, address, bytes, alignment);
    return resource_settle(&self->base, address, status);
}

static unsigned pinned_properties(void *context)
{
    (void)context;
    return RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE;
}

static raffia_status pinned_find(void *context, const void *address, raffia_block *block)
{
    struct pinned_default *self = context;
    return is_pooled(self, address)
               ? raffia_pool_find(self->pool, address, block)
               : raffia_resource_find(raffia_resource_as_ref(self->fresh), address, block);
}

static raffia_status pinned_usable_size(void *context, const void *address, size_t *bytes_p)
{
    return resource_usable_size_by(pinned_find, context, address, bytes_p);
}

static bool pinned_upstream(void *context, size_t index, raffia_resource_ref *ref_p)
{
    if (index)
        return false;
    *ref_p = raffia_resource_as_ref(((struct pinned_default *)context)->fresh);
    return true;
}

static void pinned_describe(void *context, char *buffer, size_t capacity)
{
    const struct pinned_default *self = context;
    char name[RAFFIA_DEVICE_NAME_MAX], initial[CORE_SIZE_TEXT_MAX], maximum[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, capacity, "default pinned resource on %s, pinned=%s, pool of %s to %s",
             driver_device_name(self->device, name), self->pinned ? "yes" : "no",
             core_format_size(self->sizes.initial, initial),
             core_format_size(self->sizes.maximum, maximum));
}

static bool pinned_device(void *context, char name[RAFFIA_DEVICE_NAME_MAX])
{
    driver_device_name(((struct pinned_default *)context)->device, name);
    return true;
}

static const raffia_resource_ops pinned_ops = {
    .struct_size = sizeof pinned_ops,
    .allocate = pinned_allocate,
    .deallocate = pinned_deallocate,
    .properties = pinned_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = pinned_usable_size,
    .find = pinned_find,
    .upstream = pinned_upstream,
    .describe = pinned_describe,
    .device = pinned_device,
};

static void end(struct pinned_default *self)
{
    raffia_pool_release(self->pool);
    raffia_resource_release(self->fresh);
    core_free(self);
}

static void pinned_destroy(struct raffia_resource *resource)
{
    if (!resource_is_inherited(resource))
        end((struct pinned_default *)resource);
}

static raffia_status make_pool(struct pinned_default *self)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    raffia_pool_stats stats;
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = driver_device_name(self->device, name),
        .name = "pinned",
        .pages = raffia_pages_mode_in_force(),
        .initial_bytes = self->sizes.initial ? self->sizes.initial : RAFFIA_NONE,
        .maximum_bytes = self->sizes.maximum,
    };
    raffia_status status = raffia_pool_create(&options, &self->pool);
    if (!status)
        status = raffia_pool_query(self->pool, &stats);
    if (status)
        return status;
    self->pool_base = (uintptr_t)pool_base(self->pool);
    self->pool_bytes = stats.address_bytes;
    return RAFFIA_OK;
}

static raffia_status find_device(struct pinned_default *self)
{
    struct core_error_record before;
    core_error_save(&before);
    self->pinned = !resource_pinned_open(NULL, &self->device);
    if (self->pinned)
        return RAFFIA_OK;
    core_error_restore(&before);
    return driver_open("host", &self->device);
}

static raffia_status fill(struct pinned_default *self)
{
    raffia_status status = find_device(self);
    if (!status)
        status = resource_regular_make(self->device, &self->fresh);
    if (!status && self->sizes.maximum)
        status = make_pool(self);
    return status;
}

raffia_status pinned_default_make(const struct pinned_sizes *sizes, raffia_resource **resource_p)
{
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    struct pinned_default *self = core_calloc(1, sizeof *self);
    if (!self)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    self->sizes = *sizes;
    raffia_status status = fill(self);
    if (status) {
        struct core_error_record cause;
        core_error_save(&cause);
        end(self);
        core_error_restore(&cause);
        return status;
    }
    resource_init(&self->base, &pinned_ops, pinned_destroy);
    core_log_info("%s",
                  raffia_resource_describe(raffia_resource_as_ref(&self->base), line, sizeof line));
    *resource_p = &self->base;
    return RAFFIA_OK;
}

raffia_status pinned_default_query(raffia_resource_ref ref, raffia_pinned_info *info)
{
    if (ref.ops != &pinned_ops)
        return core_error(RAFFIA_ERROR_UNSUPPORTED,
                          "the default pinned resource was made by another copy of the library");
    const struct pinned_default *self = ref.context;
    *info = (raffia_pinned_info){
        .pinned = self->pinned,
        .initial_bytes = self->sizes.initial,
        .maximum_bytes = self->sizes.maximum,
        .fallbacks = atomic_load_explicit(&self->fallbacks, memory_order_relaxed),
    };
    driver_device_name(self->device, info->device);
    return RAFFIA_OK;
}
