#include "resource/adaptor.h"

#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "resource/owner.h"

#include <string.h>

raffia_status resource_adaptor_make(size_t bytes, raffia_resource_ref upstream,
                                    const raffia_resource_ops *ops,
                                    void (*destroy)(struct raffia_resource *), const char *what,
                                    raffia_resource **resource_p, void *adaptor_pp)
{
    raffia_status status = resource_check(upstream, what);
    if (status)
        return status;
    if (!resource_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%s: resource_p is NULL", what);
    status = resource_check_depth(upstream, what);
    if (status)
        return status;
    struct resource_adaptor *adaptor = core_calloc(1, bytes);
    if (!adaptor)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    status = raffia_resource_from_ref(upstream, &adaptor->owner);
    if (status) {
        core_free(adaptor);
        return status;
    }
    adaptor->upstream = owner_target(raffia_resource_as_ref(adaptor->owner));
    resource_init(&adaptor->base, ops, destroy);
    memcpy(adaptor_pp, &(void *){adaptor}, sizeof(void *));
    return RAFFIA_OK;
}

void resource_adaptor_end(struct resource_adaptor *adaptor)
{
    raffia_resource *owner = adaptor->owner;
    core_free(adaptor);
    raffia_resource_release(owner);
}

void resource_adaptor_give_back(const struct resource_adaptor *adaptor, void *address, size_t bytes,
                                size_t alignment)
{
    struct core_error_record before;
    core_error_save(&before);
    if (resource_adaptor_deallocate(adaptor, NULL, address, bytes, alignment) &&
        resource_adaptor_deallocate(adaptor, NULL, address, bytes, alignment))
        core_log_error("%zu bytes at %p are lost: %s", bytes, address, raffia_last_error());
    core_error_restore(&before);
}

raffia_status resource_adaptor_free(struct resource_adaptor *adaptor, raffia_stream stream,
                                    void *address, size_t bytes, size_t alignment)
{
    raffia_status status = resource_claim(&adaptor->base, address);
    if (status)
        return status;
    status = resource_adaptor_deallocate(adaptor, stream, address, bytes, alignment);
    return resource_settle(&adaptor->base, address, status);
}

void resource_adaptor_destroy(struct raffia_resource *resource)
{
    if (!resource_is_inherited(resource))
        resource_adaptor_end((struct resource_adaptor *)resource);
}

static raffia_resource_ref upstream_of(void *context)
{
    return ((struct resource_adaptor *)context)->upstream;
}

unsigned resource_adaptor_properties(void *context)
{
    return raffia_resource_properties_of(upstream_of(context));
}

raffia_status resource_adaptor_usable_size(void *context, const void *address, size_t *bytes_p)
{
    return raffia_resource_usable_size(upstream_of(context), address, bytes_p);
}

raffia_status resource_adaptor_resize(void *context, raffia_stream stream, void *address,
                                      size_t bytes, size_t new_bytes, size_t alignment)
{
    return raffia_resize(upstream_of(context), stream, address, bytes, new_bytes, alignment);
}

raffia_status resource_adaptor_find(void *context, const void *address, raffia_block *block)
{
    return raffia_resource_find(upstream_of(context), address, block);
}

raffia_status resource_adaptor_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    return raffia_resource_walk(upstream_of(context), visitor, argument);
}

bool resource_adaptor_upstream(void *context, size_t index, raffia_resource_ref *ref_p)
{
    if (index)
        return false;
    *ref_p = upstream_of(context);
    return true;
}
