/* An owner of a resource that is not this library's: forwards, and counts blocks. */
#include "resource/owner.h"

#include "core/error.h"
#include "core/memory.h"

struct owner {
    struct raffia_resource base;
    raffia_resource_ref target;
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
    raffia_status status =
        owner->target.ops->deallocate(owner->target.context, stream, address, bytes, alignment);
    if (!status && address)
        resource_drop(&owner->base);
    return status;
}

static unsigned owner_properties(void *context)
{
    const raffia_resource_ref target = owner_of(context)->target;
    return target.ops->properties(target.context);
}

static bool owner_is_equal(void *context, void *other)
{
    return raffia_resource_is_equal(owner_of(context)->target, owner_of(other)->target);
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
    .is_equal = owner_is_equal,
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
    if (resource_is_inherited(resource))
        return;
    core_free(owner);
    if (RESOURCE_HAS(target.ops, release))
        target.ops->release(target.context);
}

static raffia_status wrap(raffia_resource_ref target, raffia_resource **resource_p)
{
    struct owner *owner = core_calloc(1, sizeof *owner);
    if (!owner)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    resource_init(&owner->base, &owner_ops, owner_destroy);
    owner->target = target;
    *resource_p = &owner->base;
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
    return wrap(target, resource_p);
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
    const bool retains = RESOURCE_HAS(ref.ops, retain) && RESOURCE_HAS(ref.ops, release);
    if (retains) {
        status = wrap(ref, resource_p);
        if (!status)
            ref.ops->retain(ref.context);
        return status;
    }
    return owner_borrow(ref, resource_p);
}

/* ---- borrowed ------------------------------------------------------------------------------- */

static void owner_let_go(struct raffia_resource *resource)
{
    if (!resource_is_inherited(resource))
        core_free(resource);
}

raffia_status owner_borrow(raffia_resource_ref ref, raffia_resource **resource_p)
{
    raffia_resource *made;
    raffia_status status = wrap(ref, &made);
    if (status)
        return status;
    made->destroy = owner_let_go; /* the target is not its to release */
    *resource_p = made;
    return RAFFIA_OK;
}

raffia_resource_ref owner_target(raffia_resource_ref ref)
{
    return ref.ops == &owner_ops ? owner_of(ref.context)->target : ref;
}
