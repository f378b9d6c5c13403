/* An owner of a resource that is not this library's: forwards, and counts blocks. */
#include "resource/owner.h"

#include "core/error.h"
#include "core/memory.h"
#include "resource/intern.h"

struct owner {
    struct raffia_resource base;
    struct resource_link link;
    raffia_resource_ref target;
    bool borrows; /* the target is not its to release */
};

static struct owner *owner_of(void *context)
{
    return context;
}

static raffia_status owner_allocate(void *context, raffia_stream stream, size_t bytes,
                                    size_t alignment, void **address_p)
{
    struct owner *owner = context;
    if (resource_is_inherited(&owner->base))
        return resource_refuse_inherited(&owner->base);
    raffia_status status =
        owner->target.ops->allocate(owner->target.context, stream, bytes, alignment, address_p);
    if (!status && *address_p)
        resource_hold(&owner->base);
    return status;
}

static raffia_status owner_deallocate(void *context, raffia_stream stream, void *address,
                                      size_t bytes, size_t alignment)
{
    struct owner *owner = context;
    if (resource_is_inherited(&owner->base))
        return RAFFIA_OK;
    raffia_status status = resource_claim(&owner->base, address);
    if (status)
        return status;
    status =
        owner->target.ops->deallocate(owner->target.context, stream, address, bytes, alignment);
    return resource_settle(&owner->base, address, status);
}

static unsigned owner_properties(void *context)
{
    const raffia_resource_ref target = owner_of(context)->target;
    return target.ops->properties(target.context);
}

static raffia_status owner_usable_size(void *context, const void *address, size_t *bytes_p)
{
    return raffia_resource_usable_size(owner_of(context)->target, address, bytes_p);
}

static raffia_status owner_resize(void *context, raffia_stream stream, void *address, size_t bytes,
                                  size_t new_bytes, size_t alignment)
{
    return raffia_resize(owner_of(context)->target, stream, address, bytes, new_bytes, alignment);
}

static raffia_status owner_find(void *context, const void *address, raffia_block *block)
{
    return raffia_resource_find(owner_of(context)->target, address, block);
}

static raffia_status owner_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    return raffia_resource_walk(owner_of(context)->target, visitor, argument);
}

static bool owner_upstream(void *context, size_t index, raffia_resource_ref *ref_p)
{
    return raffia_resource_upstream(owner_of(context)->target, index, ref_p);
}

static void owner_describe(void *context, char *buffer, size_t capacity)
{
    raffia_resource_describe(owner_of(context)->target, buffer, capacity);
}

static bool owner_device(void *context, char name[RAFFIA_DEVICE_NAME_MAX])
{
    const raffia_resource_ref target = owner_of(context)->target;
    return RESOURCE_HAS(target.ops, device) && target.ops->device(target.context, name);
}

static const raffia_resource_ops owner_ops = {
    .struct_size = sizeof owner_ops,
    .allocate = owner_allocate,
    .deallocate = owner_deallocate,
    .properties = owner_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = owner_usable_size,
    .resize = owner_resize,
    .find = owner_find,
    .walk = owner_walk,
    .upstream = owner_upstream,
    .describe = owner_describe,
    .device = owner_device,
};

static void owner_destroy(struct raffia_resource *resource)
{
    struct owner *owner = (struct owner *)resource;
    const raffia_resource_ref target = owner->target;
    const bool borrows = owner->borrows;
    if (resource_is_inherited(resource))
        return;
    resource_intern_remove(&owner->link);
    core_free(owner);
    if (!borrows && RESOURCE_HAS(target.ops, release))
        target.ops->release(target.context);
}

/* *is_new_p: the owner is this call's; else it is one that was there, and keeps the target already.
 */
static raffia_status wrap(raffia_resource_ref target, bool borrows, bool *is_new_p,
                          raffia_resource **resource_p)
{
    struct owner *owner = core_calloc(1, sizeof *owner);
    if (!owner)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    resource_init(&owner->base, &owner_ops, owner_destroy);
    owner->target = target;
    owner->borrows = borrows;
    const struct resource_key key = {
        {target.ops, target.context, borrows ? &owner_ops : NULL, NULL}};
    *resource_p = resource_intern(&owner->base, &owner->link, &key);
    *is_new_p = *resource_p == &owner->base;
    if (!*is_new_p)
        core_free(owner);
    return RAFFIA_OK;
}

raffia_status raffia_resource_create(const raffia_resource_ops *ops, void *context,
                                     raffia_resource **resource_p)
{
    const raffia_resource_ref target = {ops, context};
    raffia_status status = resource_check(target, "raffia_resource_create");
    if (status)
        return status;
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_resource_create: resource_p is NULL");
    bool is_new;
    return wrap(target, false, &is_new, resource_p);
}

raffia_status raffia_resource_from_ref(raffia_resource_ref ref, raffia_resource **resource_p)
{
    raffia_status status = resource_check(ref, "raffia_resource_from_ref");
    if (status)
        return status;
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_resource_from_ref: resource_p is NULL");
    /* One of this copy's own: its context is the resource. */
    if (RESOURCE_HAS(ref.ops, retain) && ref.ops->retain == resource_context_retain) {
        *resource_p = raffia_resource_retain(ref.context);
        return RAFFIA_OK;
    }
    if (!RESOURCE_HAS(ref.ops, retain) || !RESOURCE_HAS(ref.ops, release))
        return owner_borrow(ref, resource_p);
    /* Retained before others can find the owner, and let go again if there is one. */
    bool is_new;
    ref.ops->retain(ref.context);
    status = wrap(ref, false, &is_new, resource_p);
    if (status || !is_new)
        ref.ops->release(ref.context);
    return status;
}

raffia_status owner_borrow(raffia_resource_ref ref, raffia_resource **resource_p)
{
    bool is_new;
    return wrap(ref, true, &is_new, resource_p);
}

raffia_resource_ref owner_target(raffia_resource_ref ref)
{
    return ref.ops == &owner_ops ? owner_of(ref.context)->target : ref;
}
