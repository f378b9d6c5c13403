/* Asking the program for memory before it is told that there is none. */
#include "pool/pool_internal.h"

/* A callback that allocates is not called for what is then refused to it. */
static _Thread_local bool pressing;

raffia_status raffia_pool_on_pressure(raffia_pool *pool, raffia_pool_pressure callback,
                                      void *context)
{
    raffia_status status = pool_enter(pool);
    if (status)
        return status;
    core_lock_take(&pool->lock);
    pool->pressure.callback = callback;
    pool->pressure.context = context;
    core_lock_leave(&pool->lock);
    return RAFFIA_OK;
}

bool pool_press(struct raffia_pool *pool, const struct space_request *request, size_t bytes)
{
    if (pressing || (request && request->bytes > pool->range_bytes))
        return false;
    core_lock_take(&pool->lock);
    const raffia_pool_pressure callback = pool->pressure.callback;
    void *const context = pool->pressure.context;
    pool->pressure.calls += callback != NULL;
    core_lock_leave(&pool->lock);
    if (!callback)
        return false;
    struct core_error_record before;
    core_error_save(&before);
    pressing = true;
    const bool freed = callback(context, pool, bytes);
    pressing = false;
    core_error_restore(&before);
    return freed;
}
