/* The end of a stream, told to every pool. */
#include "pool/order.h"
#include "pool/registry.h"

struct retirement {
    struct driver_device device; /* that makes the stream */
    uint64_t id;
    driver_stream handle;
    raffia_status status; /* the first that is not a success */
    struct core_error_record failure;
};

/* Ids are told apart across the devices of a driver, and pinned memory's streams are its GPU's.
 * Another driver may give the same id to a stream of its own. */
static bool has_its_streams(const raffia_pool *pool, struct driver_device device)
{
    const struct driver_device own = driver_stream_owner(pool->device);
    return own.driver == device.driver && own.index == device.index;
}

static bool retire(void *context, raffia_pool *pool)
{
    struct retirement *retirement = context;
    if (!pool->order || !has_its_streams(pool, retirement->device))
        return true;
    raffia_status status = pool_order_retire(pool, retirement->id, retirement->handle);
    if (status && !retirement->status) {
        retirement->status = status;
        core_error_save(&retirement->failure);
    }
    return true;
}

raffia_status raffia_stream_retire(const char *device_name, raffia_stream stream)
{
    struct driver_device device;
    struct retirement retirement = {.handle = stream};
    raffia_status status = driver_open(device_name, &device);
    if (!status)
        status = device.driver->stream_id(device.index, stream, &retirement.id);
    if (status)
        return status;
    if (!(device.driver->capabilities & DRIVER_IS_ASYNCHRONOUS))
        return RAFFIA_OK;
    retirement.device = driver_stream_owner(device);
    pool_registry_for_each(retire, &retirement);
    pool_order_reap();
    if (retirement.status)
        return core_error_restore(&retirement.failure);
    return device.driver->stream_retire(device.index, stream);
}
