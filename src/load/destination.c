/* Room for a model: a pool of its own, or the caller's pool, resource or memory. */
#include "load/destination.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "load/catalog_show.h"
#include "policy/sizing.h"
#include "pool/pool.h"
#include "resource/order.h"
#include "resource/resource.h"

/* Notes whose memory it is, and that it is to be reached by copies if the CPU cannot touch it. */
static raffia_status note_device(struct driver_device device, struct load_destination *destination)
{
    bool accessible = false;
    raffia_status status = driver_cpu_accessible(device, &accessible);
    if (status)
        return status;
    destination->device = device;
    destination->staged = !accessible;
    return RAFFIA_OK;
}

static raffia_status take_memory(const raffia_load_options *options, size_t needed,
                                 struct load_destination *destination)
{
    if (!core_is_aligned((uintptr_t)options->memory, RAFFIA_TENSOR_ALIGNMENT))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the memory at %p does not start at a multiple of %u bytes",
                          options->memory, RAFFIA_TENSOR_ALIGNMENT);
    if (options->memory_bytes < needed)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "the memory has %zu bytes but this selection needs %zu, as "
                          "raffia_model_bytes_needed() of an inspected model says",
                          options->memory_bytes, needed);
    destination->kind = LOAD_DESTINATION_MEMORY;
    destination->base = options->memory;
    return RAFFIA_OK;
}

static raffia_status check_resource(raffia_resource_ref resource)
{
    return resource_check(resource, "load options");
}

/* A resource does not say whose memory it gives; the option `device` does. */
static raffia_status note_resource(const raffia_load_options *options, raffia_resource_ref resource,
                                   struct load_destination *destination)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    const unsigned properties = raffia_resource_properties_of(resource);
    if (properties & RAFFIA_HOST_ACCESSIBLE)
        return RAFFIA_OK;
    raffia_status status = driver_open(options->device, &destination->device);
    if (status)
        return status;
    if (!(properties & RAFFIA_DEVICE_ACCESSIBLE) ||
        !(destination->device.driver->capabilities & DRIVER_CAN_REGISTER))
        return core_error(
            RAFFIA_ERROR_UNSUPPORTED,
            "the CPU cannot write to the resource's memory, and it cannot be memory "
            "of device '%s'; give one that is host-accessible, or say with the option "
            "`device` whose memory it is",
            driver_device_name(destination->device, name));
    destination->staged = true;
    return RAFFIA_OK;
}

/* Page alignment lets O_DIRECT read into place; it is no loss where a resource has less. */
static raffia_status allocate_from(raffia_resource_ref resource, size_t needed,
                                   struct load_destination *destination)
{
    void *address = NULL;
    size_t alignment = LOAD_CONGRUENCE;
    raffia_status status = raffia_allocate(resource, NULL, needed, alignment, &address);
    if (status == RAFFIA_ERROR_INVALID_ARGUMENT || status == RAFFIA_ERROR_UNSUPPORTED) {
        alignment = RAFFIA_TENSOR_ALIGNMENT;
        status = raffia_allocate(resource, NULL, needed, alignment, &address);
    }
    if (status)
        return core_error_prefix_as(status, "the resource gave no %zu bytes for the model", needed);
    destination->alignment = alignment;
    destination->base = address;
    return RAFFIA_OK;
}

/* The block is the default stream's, but the CPU and streams of the load's own write it. */
static raffia_status wait_for_memory(const struct load_destination *destination)
{
    struct resource_order order;
    resource_order_init(&order, raffia_resource_as_ref(destination->resource));
    if (!order.device.driver && destination->device.driver) {
        order.device = destination->device;
        order.asynchronous = order.device.driver->capabilities & DRIVER_IS_ASYNCHRONOUS;
    }
    return resource_order_drain(&order, NULL);
}

static raffia_status take_from_resource(const raffia_load_options *options, size_t needed,
                                        struct load_destination *destination)
{
    const raffia_resource_ref resource =
        options->resource.ops ? options->resource : options->resources.output;
    raffia_status status = check_resource(resource);
    if (!status)
        status = note_resource(options, resource, destination);
    if (!status)
        status = raffia_resource_from_ref(resource, &destination->resource);
    if (!status)
        status = allocate_from(raffia_resource_as_ref(destination->resource), needed, destination);
    if (status)
        return status;
    destination->kind = LOAD_DESTINATION_RESOURCE;
    return wait_for_memory(destination);
}

static raffia_status make_pool(const raffia_load_options *options, size_t needed,
                               raffia_pool **pool_p)
{
    raffia_pool_options pool_options = {
        .struct_size = sizeof pool_options,
        .device = options->device,
        .name = "model",
        .pages = options->pages,
        .page_size = options->page_size,
        .initial_bytes = needed,
        .chunk_bytes = needed, /* weights stay: one chunk, and one answer from the system */
        .threads = options->threads,
    };
    /* The pool rounds up to the pages it gets. */
    if (!policy_resident_model_bytes(needed, 1, &pool_options.maximum_bytes))
        return core_error(RAFFIA_ERROR_OVERFLOW,
                          "a pool for a model of %zu bytes does not fit into the address space",
                          needed);
    return raffia_pool_create(&pool_options, pool_p);
}

static raffia_status alloc_each(const struct load_plan *plan, struct load_destination *destination)
{
    destination->blocks = core_calloc(plan->item_count, sizeof *destination->blocks);
    if (!destination->blocks)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    destination->bytes = 0;
    for (size_t i = 0; i < plan->item_count; i++) {
        size_t bytes = (size_t)plan->items[i].bytes;
        void *address;
        raffia_status status =
            raffia_pool_alloc(destination->pool, bytes, RAFFIA_TENSOR_ALIGNMENT, &address);
        if (status)
            return core_error_prefix("no block for tensor '%s' of %zu bytes, number %zu of %zu",
                                     catalog_show(plan->items[i].name).text, bytes, i + 1,
                                     plan->item_count);
        destination->blocks[destination->block_count++] = address;
        /* Blocks never add up to more than the pool, which fits the address space. */
        destination->bytes += core_align_up_unchecked(bytes, RAFFIA_TENSOR_ALIGNMENT);
    }
    return RAFFIA_OK;
}

/* `destination` holds the pool; what was allocated on failure is the caller's to free. */
static raffia_status alloc_blocks(const struct load_plan *plan,
                                  struct load_destination *destination)
{
    void *base;
    raffia_status status =
        raffia_pool_alloc(destination->pool, plan->needed, LOAD_CONGRUENCE, &base);
    if (!status) {
        destination->base = base;
        return RAFFIA_OK;
    }
    if (status != RAFFIA_ERROR_OUT_OF_MEMORY || destination->kind == LOAD_DESTINATION_OWN_POOL)
        return core_error_prefix("no room for a model of %zu bytes in the pool", plan->needed);
    core_log_info("the pool has no %zu bytes in one piece for the model; each of its %zu tensors "
                  "gets a block of its own",
                  plan->needed, plan->item_count);
    return alloc_each(plan, destination);
}

static raffia_status take_from_pool(const raffia_load_options *options,
                                    const struct load_plan *plan,
                                    struct load_destination *destination)
{
    raffia_status status = RAFFIA_OK;
    if (options->pool)
        destination->pool = raffia_pool_retain(options->pool);
    else
        status = make_pool(options, plan->needed, &destination->pool);
    if (status)
        return status;
    destination->kind = options->pool ? LOAD_DESTINATION_POOL : LOAD_DESTINATION_OWN_POOL;
    status = note_device(pool_device(destination->pool), destination);
    if (status)
        return status;
    return alloc_blocks(plan, destination);
}

raffia_status load_destination_make(const raffia_load_options *options,
                                    const struct load_plan *plan,
                                    struct load_destination *destination)
{
    struct load_destination made = {.bytes = plan->needed};
    raffia_status status = RAFFIA_OK;
    if (options->memory)
        status = take_memory(options, plan->needed, &made);
    else if (plan->needed == 0)
        made.kind = LOAD_DESTINATION_NONE;
    else if (options->resource.ops || options->resources.output.ops)
        status = take_from_resource(options, plan->needed, &made);
    else
        status = take_from_pool(options, plan, &made);
    if (status)
        load_destination_free(&made);
    else
        *destination = made;
    return status;
}

unsigned char *load_destination_address(const struct load_destination *destination,
                                        const struct load_plan *plan, size_t item)
{
    return destination->blocks ? destination->blocks[item]
                               : destination->base + plan->items[item].offset;
}

void load_destination_report(const struct load_destination *destination, raffia_page_report *pages)
{
    raffia_pool_stats stats;
    if (!destination->pool)
        return;
    if (raffia_pool_query(destination->pool, &stats))
        core_log_warn("the pages of a loaded model are unknown: %s", raffia_last_error());
    else
        *pages = stats.pages;
}

static void free_block(raffia_pool *pool, void *address)
{
    if (raffia_pool_free(pool, address))
        core_log_error("a model's block cannot be given back to its pool: %s", raffia_last_error());
}

void load_destination_free(struct load_destination *destination)
{
    if (destination->kind == LOAD_DESTINATION_RESOURCE &&
        raffia_deallocate(raffia_resource_as_ref(destination->resource), NULL, destination->base,
                          destination->bytes, destination->alignment))
        core_log_error("a model's block cannot be given back to its resource: %s",
                       raffia_last_error());
    raffia_resource_release(destination->resource);
    if (destination->pool) {
        if (destination->base)
            free_block(destination->pool, destination->base);
        for (size_t i = 0; i < destination->block_count; i++)
            free_block(destination->pool, destination->blocks[i]);
        raffia_pool_release(destination->pool);
    }
    core_free(destination->blocks);
    *destination = (struct load_destination){0};
}
