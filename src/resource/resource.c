/* Owners and refs, and the calls that every resource answers. */
#include "resource/resource.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"

#include <assert.h>
#include <string.h>

/* ---- what resources have in common ---------------------------------------------------------- */

void resource_init(struct raffia_resource *resource, const raffia_resource_ops *ops,
                   void (*destroy)(struct raffia_resource *resource))
{
    resource->ops = ops;
    resource->context = resource;
    resource->destroy = destroy;
    atomic_init(&resource->holds, RESOURCE_OWNER);
    resource->generation = core_fork_generation();
}

void resource_context_retain(void *context)
{
    resource_retain(context);
}

void resource_context_release(void *context)
{
    resource_release(context);
}

/* As in resource_count(). */
static bool replace(struct raffia_resource *resource, long *before_p, long after)
{
    if (!__libc_single_threaded)
        return atomic_compare_exchange_weak_explicit(&resource->holds, before_p, after,
                                                     memory_order_acq_rel, memory_order_relaxed);
    atomic_store_explicit(&resource->holds, after, memory_order_relaxed);
    return true;
}

static raffia_status refuse_claim(struct raffia_resource *resource, const void *address)
{
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    return core_error(
        RAFFIA_ERROR_BAD_ADDRESS,
        "%p is freed through a resource without live blocks (%s): it was freed "
        "before, or allocated by another resource",
        address, raffia_resource_describe(raffia_resource_as_ref(resource), line, sizeof line));
}

raffia_status resource_claim(struct raffia_resource *resource, const void *address)
{
    long before = atomic_load_explicit(&resource->holds, memory_order_relaxed);
    if (!address)
        return RAFFIA_OK;
    do
        if (before < RESOURCE_BLOCK)
            return refuse_claim(resource, address);
    while (!replace(resource, &before, before - RESOURCE_BLOCK + RESOURCE_OWNER));
    return RAFFIA_OK;
}

#undef resource_refuse_size
raffia_status resource_refuse_size(const void *address, size_t bytes, size_t alignment, size_t has)
{
    if (alignment <= RAFFIA_DEFAULT_ALIGNMENT)
        return core_error(
            RAFFIA_ERROR_INVALID_ARGUMENT,
            "cannot free %p as a block of %zu bytes: the one there has %zu, and stays "
            "as it is",
            address, bytes, has);
    return core_error(
        RAFFIA_ERROR_INVALID_ARGUMENT,
        "cannot free %p as a block of %zu bytes aligned to %zu: the one there has %zu "
        "with the room for its alignment, and stays as it is",
        address, bytes, alignment, has);
}

raffia_status resource_explain_refusal(raffia_resource_ref ref, const void *address, size_t bytes,
                                       raffia_status status)
{
    raffia_block block = {0};
    struct core_error_record cause;
    core_error_save(&cause);
    if (!RESOURCE_HAS(ref.ops, find) || ref.ops->find(ref.context, address, &block) ||
        block.address != address || block.requested_bytes == bytes) {
        core_error_restore(&cause);
        return status;
    }
    return resource_refuse_size(address, bytes, RAFFIA_DEFAULT_ALIGNMENT, block.requested_bytes);
}

bool resource_is_same(void *context, void *other)
{
    return context == other;
}

raffia_status resource_usable_size_by(raffia_status (*find)(void *context, const void *address,
                                                            raffia_block *block),
                                      void *context, const void *address, size_t *bytes_p)
{
    raffia_block block = {0};
    raffia_status status = find(context, address, &block);
    if (!status && block.address != address)
        return core_error(RAFFIA_ERROR_BAD_ADDRESS, "%p lies inside the block at %p", address,
                          block.address);
    if (!status)
        *bytes_p = block.bytes;
    return status;
}

#undef resource_refuse_inherited
raffia_status resource_refuse_inherited(const struct raffia_resource *resource)
{
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    return core_error(
        RAFFIA_ERROR_FORKED,
        "%s belongs to the parent of this forked process: make another one here",
        raffia_resource_describe(raffia_resource_as_ref(resource), line, sizeof line));
}

raffia_status resource_check_alignment(size_t alignment)
{
    if (core_is_power_of_two(alignment))
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "an alignment of %zu bytes is not a power of two", alignment);
}

/* ---- refs ----------------------------------------------------------------------------------- */

#define OPS_MIN (offsetof(raffia_resource_ops, is_equal) + sizeof(void *))

raffia_status resource_check(raffia_resource_ref ref, const char *what)
{
    const raffia_resource_ops *ops = ref.ops;
    if (!ops)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%s: there is no resource", what);
    if (ops->struct_size < OPS_MIN || !ops->allocate || !ops->deallocate || !ops->properties ||
        !ops->is_equal)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%s: the resource's table of operations is incomplete: struct_size is "
                          "%zu where %zu is the least, or one of the first four functions is NULL",
                          what, ops->struct_size, OPS_MIN);
    return RAFFIA_OK;
}

unsigned raffia_resource_properties_of(raffia_resource_ref ref)
{
    return ref.ops ? ref.ops->properties(ref.context) : 0;
}

bool raffia_resource_is_equal(raffia_resource_ref a, raffia_resource_ref b)
{
    if (a.ops != b.ops)
        return false;
    return !a.ops || a.context == b.context || a.ops->is_equal(a.context, b.context);
}

/* Who writes a resource cannot record a sentence: this is said in his place. `recorded` is
 * core_error_count() from before he was called, as what failed earlier may have failed alike. */
static raffia_status explain(raffia_status status, unsigned long recorded, const char *what,
                             size_t bytes)
{
    if (core_error_count() != recorded && raffia_last_status() == status)
        return status;
    return core_error(status, "a resource was asked to %s %zu bytes and answered: %s", what, bytes,
                      raffia_status_text(status));
}

static raffia_status explain_question(raffia_status status, unsigned long recorded,
                                      const char *what)
{
    if (!status || (core_error_count() != recorded && raffia_last_status() == status))
        return status;
    return core_error(status, "a resource was asked to %s and answered: %s", what,
                      raffia_status_text(status));
}

static raffia_status refuse_misaligned(raffia_resource_ref ref, raffia_stream stream, size_t bytes,
                                       size_t alignment, void *address)
{
    (void)ref.ops->deallocate(ref.context, stream, address, bytes, alignment);
    return core_error(RAFFIA_ERROR_CORRUPT,
                      "a resource returned address %p for %zu bytes aligned to %zu", address, bytes,
                      alignment);
}

raffia_status raffia_allocate(raffia_resource_ref ref, raffia_stream stream, size_t bytes,
                              size_t alignment, void **address_p)
{
    raffia_status status = resource_check(ref, "raffia_allocate");
    if (status)
        return status;
    if (!address_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_allocate: address_p is NULL");
    if (!alignment)
        alignment = RAFFIA_DEFAULT_ALIGNMENT;
    else if (!core_is_power_of_two(alignment))
        return resource_check_alignment(alignment);
    void *address = NULL;
    const unsigned long recorded = core_error_count();
    status = ref.ops->allocate(ref.context, stream, bytes, alignment, &address);
    if (status)
        return explain(status, recorded, "allocate", bytes);
    if (!core_is_aligned((uintptr_t)address, alignment) || (!address && bytes))
        return refuse_misaligned(ref, stream, bytes, alignment, address);
    *address_p = address;
    return RAFFIA_OK;
}

raffia_status raffia_deallocate(raffia_resource_ref ref, raffia_stream stream, void *address,
                                size_t bytes, size_t alignment)
{
    raffia_status status = resource_check(ref, "raffia_deallocate");
    if (status)
        return status;
    if (!alignment)
        alignment = RAFFIA_DEFAULT_ALIGNMENT;
    const unsigned long recorded = core_error_count();
    status = ref.ops->deallocate(ref.context, stream, address, bytes, alignment);
    return status ? explain(status, recorded, "free", bytes) : RAFFIA_OK;
}

/* ---- optional entries ----------------------------------------------------------------------- */

static raffia_status refuse_entry(raffia_resource_ref ref, const char *what)
{
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    return core_error(RAFFIA_ERROR_UNSUPPORTED, "%s cannot %s",
                      raffia_resource_describe(ref, line, sizeof line), what);
}

raffia_status raffia_resize(raffia_resource_ref ref, raffia_stream stream, void *address,
                            size_t bytes, size_t new_bytes, size_t alignment)
{
    raffia_status status = resource_check(ref, "raffia_resize");
    if (status)
        return status;
    if (!RESOURCE_HAS(ref.ops, resize))
        return refuse_entry(ref, "resize blocks in place");
    if (!alignment)
        alignment = RAFFIA_DEFAULT_ALIGNMENT;
    const unsigned long recorded = core_error_count();
    status = ref.ops->resize(ref.context, stream, address, bytes, new_bytes, alignment);
    return status ? explain(status, recorded, "resize a block to", new_bytes) : RAFFIA_OK;
}

raffia_status raffia_resource_usable_size(raffia_resource_ref ref, const void *address,
                                          size_t *bytes_p)
{
    raffia_status status = resource_check(ref, "raffia_resource_usable_size");
    if (status)
        return status;
    if (!bytes_p)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_resource_usable_size: bytes_p is NULL");
    if (!RESOURCE_HAS(ref.ops, usable_size))
        return refuse_entry(ref, "tell the usable size of a block");
    const unsigned long recorded = core_error_count();
    return explain_question(ref.ops->usable_size(ref.context, address, bytes_p), recorded,
                            "tell the usable size of a block");
}

raffia_status raffia_resource_find(raffia_resource_ref ref, const void *address,
                                   raffia_block *block)
{
    raffia_status status = resource_check(ref, "raffia_resource_find");
    if (status)
        return status;
    if (!block)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_resource_find: block is NULL");
    if (!RESOURCE_HAS(ref.ops, find))
        return refuse_entry(ref, "tell whose block an address is in");
    const unsigned long recorded = core_error_count();
    return explain_question(ref.ops->find(ref.context, address, block), recorded,
                            "tell whose block an address is in");
}

raffia_status raffia_resource_walk(raffia_resource_ref ref, raffia_block_visitor visitor,
                                   void *context)
{
    raffia_status status = resource_check(ref, "raffia_resource_walk");
    if (status)
        return status;
    if (!visitor)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_resource_walk: visitor is NULL");
    if (!RESOURCE_HAS(ref.ops, walk))
        return refuse_entry(ref, "list its blocks");
    const unsigned long recorded = core_error_count();
    return explain_question(ref.ops->walk(ref.context, visitor, context), recorded,
                            "list its blocks");
}

/* ---- owners --------------------------------------------------------------------------------- */

raffia_resource *raffia_resource_retain(raffia_resource *resource)
{
    if (resource)
        resource_retain(resource);
    return resource;
}

void raffia_resource_release(raffia_resource *resource)
{
    if (resource)
        resource_release(resource);
}

raffia_resource_ref raffia_resource_as_ref(const raffia_resource *resource)
{
    return resource ? (raffia_resource_ref){resource->ops, resource->context}
                    : (raffia_resource_ref){NULL, NULL};
}
