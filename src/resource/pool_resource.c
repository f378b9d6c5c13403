/* A pool of huge pages as a resource. */
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/text.h"
#include "pool/pool.h"
#include "resource/intern.h"

#include <raffia/resources.h>

#include <stdio.h>

struct pool_resource {
    struct raffia_resource base;
    struct resource_link link;
    raffia_pool *pool;
    struct driver_device device;
};

static raffia_status pool_resource_allocate(void *context, raffia_stream stream, size_t bytes,
                                            size_t alignment, void **address_p)
{
    struct pool_resource *self = context;
    if (resource_is_inherited(&self->base))
        return resource_refuse_inherited(&self->base);
    if (!bytes) {
        *address_p = NULL;
        return resource_check_stream(self->device, stream);
    }
    raffia_status status = raffia_pool_alloc_on(self->pool, stream, bytes, alignment, address_p);
    if (!status)
        resource_hold(&self->base);
    return status;
}

/* The pool knows sizes by itself. That the caller knows the same one tells its block from one of a
 * resource above, which may start in the same place. */
static raffia_status pool_resource_deallocate(void *context, raffia_stream stream, void *address,
                                              size_t bytes, size_t alignment)
{
    struct pool_resource *self = context;
    (void)alignment;
    if (!address || resource_is_inherited(&self->base))
        return RAFFIA_OK;
    raffia_status status = resource_claim(&self->base, address);
    if (status)
        return status;
    status = pool_free_sized(self->pool, stream, address, bytes);
    /* A guarded pool that finds damage has freed the block all the same. */
    (void)resource_settle(&self->base, address,
                          status == RAFFIA_ERROR_CORRUPT ? RAFFIA_OK : status);
    return status;
}

static unsigned pool_resource_properties(void *context)
{
    return resource_properties_on(((struct pool_resource *)context)->device);
}

static raffia_status pool_resource_find(void *context, const void *address, raffia_block *block)
{
    return raffia_pool_find(((struct pool_resource *)context)->pool, address, block);
}

static raffia_status pool_resource_usable_size(void *context, const void *address, size_t *bytes_p)
{
    return resource_usable_size_by(pool_resource_find, context, address, bytes_p);
}

static raffia_status pool_resource_resize(void *context, raffia_stream stream, void *address,
                                          size_t bytes, size_t new_bytes, size_t alignment)
{
    struct pool_resource *self = context;
    (void)alignment;
    raffia_status status = resource_check_stream(self->device, stream);
    return status ? status : pool_resize_sized(self->pool, address, bytes, new_bytes);
}

struct live_walk {
    raffia_block_visitor visitor;
    void *argument;
};

static bool visit_live(void *context, const raffia_block *block)
{
    const struct live_walk *walk = context;
    return !block->live || walk->visitor(walk->argument, block);
}

static raffia_status pool_resource_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    struct live_walk walk = {visitor, argument};
    return raffia_pool_walk(((struct pool_resource *)context)->pool, visit_live, &walk);
}

static void pool_resource_describe(void *context, char *buffer, size_t capacity)
{
    const struct pool_resource *self = context;
    char name[RAFFIA_DEVICE_NAME_MAX], held[CORE_SIZE_TEXT_MAX], most[CORE_SIZE_TEXT_MAX],
        page[CORE_SIZE_TEXT_MAX];
    raffia_pool_stats stats;
    driver_device_name(self->device, name);
    if (raffia_pool_query(self->pool, &stats))
        snprintf(buffer, capacity, "pool on %s, of another process", name);
    else
        snprintf(buffer, capacity, "pool on %s, %s of at most %s, pages %s of %s", name,
                 core_format_size(stats.reserved_bytes, held),
                 core_format_size(stats.maximum_bytes, most),
                 raffia_page_kind_name(stats.pages.got_kind),
                 core_format_size(stats.pages.got_size, page));
}

static bool pool_resource_device(void *context, char name[RAFFIA_DEVICE_NAME_MAX])
{
    driver_device_name(((struct pool_resource *)context)->device, name);
    return true;
}

static const raffia_resource_ops pool_ops = {
    .struct_size = sizeof pool_ops,
    .allocate = pool_resource_allocate,
    .deallocate = pool_resource_deallocate,
    .properties = pool_resource_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = pool_resource_usable_size,
    .resize = pool_resource_resize,
    .find = pool_resource_find,
    .walk = pool_resource_walk,
    .describe = pool_resource_describe,
    .device = pool_resource_device,
};

static void end(struct pool_resource *self)
{
    raffia_pool_release(self->pool);
    core_free(self);
}

static void pool_resource_destroy(struct raffia_resource *resource)
{
    struct pool_resource *self = (struct pool_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    resource_intern_remove(&self->link);
    end(self);
}

raffia_status raffia_pool_resource_from_pool(raffia_pool *pool, raffia_resource **resource_p)
{
    if (!pool || !resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_pool_resource_from_pool: %s is NULL",
                          pool ? "resource_p" : "pool");
    struct pool_resource *self = core_calloc(1, sizeof *self);
    if (!self)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    resource_init(&self->base, &pool_ops, pool_resource_destroy);
    self->pool = raffia_pool_retain(pool);
    self->device = pool_device(pool);
    *resource_p = resource_intern(&self->base, &self->link, &(struct resource_key){{pool}});
    if (*resource_p != &self->base)
        end(self);
    return RAFFIA_OK;
}

raffia_status raffia_pool_resource_create(const raffia_pool_options *options,
                                          raffia_resource **resource_p)
{
    raffia_pool *pool;
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_pool_resource_create: resource_p is NULL");
    raffia_status status = raffia_pool_create(options, &pool);
    if (status)
        return status;
    status = raffia_pool_resource_from_pool(pool, resource_p);
    raffia_pool_release(pool);
    return status;
}

raffia_status raffia_pool_resource_pool(raffia_resource_ref ref, raffia_pool **pool_p)
{
    if (ref.ops != &pool_ops || !pool_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_pool_resource_pool: %s",
                          pool_p ? "the resource is no pool" : "pool_p is NULL");
    *pool_p = ((struct pool_resource *)ref.context)->pool;
    return RAFFIA_OK;
}
