/* Counts bytes and blocks, on a stack of counters. */
#include "core/error.h"
#include "core/lock.h"
#include "resource/adaptor.h"

#include <raffia/adaptors.h>

#include <stdio.h>

struct statistics_resource {
    struct resource_adaptor adaptor;
    /* Guards the rest: peaks are exact, so that all counters change together. */
    struct core_lock lock;
    unsigned top;
    raffia_statistics levels[RAFFIA_STATISTICS_LEVELS_MAX];
};

static void add(raffia_counter *counter, int64_t amount)
{
    counter->value += amount;
    counter->total += amount;
    if (counter->value > counter->peak)
        counter->peak = counter->value;
}

static void count(struct statistics_resource *self, size_t bytes)
{
    core_lock_take(&self->lock);
    raffia_statistics *level = &self->levels[self->top];
    add(&level->bytes, (int64_t)bytes);
    add(&level->blocks, 1);
    core_lock_leave(&self->lock);
}

/* With sign +1 takes a free back that was refused. */
static void count_free(struct statistics_resource *self, size_t bytes, int sign)
{
    core_lock_take(&self->lock);
    raffia_statistics *level = &self->levels[self->top];
    level->bytes.value += sign * (int64_t)bytes;
    level->blocks.value += sign;
    core_lock_leave(&self->lock);
}

static raffia_status statistics_allocate(void *context, raffia_stream stream, size_t bytes,
                                         size_t alignment, void **address_p)
{
    struct statistics_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, address_p);
    if (status)
        return status;
    count(self, bytes);
    if (*address_p)
        resource_hold(&self->adaptor.base);
    return RAFFIA_OK;
}

/* Counted before upstream has the block: another thread may get it at once, and the peak would then
 * count both. */
static raffia_status statistics_deallocate(void *context, raffia_stream stream, void *address,
                                           size_t bytes, size_t alignment)
{
    struct statistics_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    raffia_status status = resource_claim(&self->adaptor.base, address);
    if (status)
        return status;
    count_free(self, bytes, -1);
    status = resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, alignment);
    if (status)
        count_free(self, bytes, 1);
    return resource_settle(&self->adaptor.base, address, status);
}

static void statistics_describe(void *context, char *buffer, size_t capacity)
{
    struct statistics_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base)) { /* and maybe its lock is held for ever */
        snprintf(buffer, capacity, "statistics adaptor, of another process");
        return;
    }
    core_lock_take(&self->lock);
    const raffia_statistics top = self->levels[self->top];
    const unsigned level = self->top;
    core_lock_leave(&self->lock);
    snprintf(buffer, capacity,
             "statistics adaptor, level %u: %lld bytes in %lld blocks, at most %lld", level,
             (long long)top.bytes.value, (long long)top.blocks.value, (long long)top.bytes.peak);
}

static const raffia_resource_ops statistics_ops = {
    .struct_size = sizeof statistics_ops,
    .allocate = statistics_allocate,
    .deallocate = statistics_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = resource_adaptor_usable_size,
    .find = resource_adaptor_find,
    .walk = resource_adaptor_walk,
    .upstream = resource_adaptor_upstream,
    .describe = statistics_describe,
};

raffia_status raffia_statistics_resource_create(raffia_resource_ref upstream,
                                                raffia_resource **resource_p)
{
    struct statistics_resource *self;
    raffia_status status =
        resource_adaptor_make(sizeof *self, upstream, &statistics_ops, resource_adaptor_destroy,
                              "raffia_statistics_resource_create", resource_p, &self);
    if (!status)
        *resource_p = &self->adaptor.base;
    return status;
}

static raffia_status enter(raffia_resource_ref ref, const char *what,
                           struct statistics_resource **self_p)
{
    if (ref.ops != &statistics_ops)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%s: the resource is no statistics adaptor", what);
    struct statistics_resource *self = ref.context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    *self_p = self;
    return RAFFIA_OK;
}

raffia_status raffia_statistics_get(raffia_resource_ref statistics, raffia_statistics *counters)
{
    struct statistics_resource *self;
    raffia_status status = enter(statistics, "raffia_statistics_get", &self);
    if (status)
        return status;
    if (!counters)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_statistics_get: counters is NULL");
    core_lock_take(&self->lock);
    *counters = self->levels[self->top];
    core_lock_leave(&self->lock);
    return RAFFIA_OK;
}

raffia_status raffia_statistics_push(raffia_resource_ref statistics, raffia_statistics *previous)
{
    struct statistics_resource *self;
    raffia_status status = enter(statistics, "raffia_statistics_push", &self);
    if (status)
        return status;
    core_lock_take(&self->lock);
    const bool full = self->top + 1 == RAFFIA_STATISTICS_LEVELS_MAX;
    const raffia_statistics before = self->levels[self->top];
    if (!full)
        self->levels[++self->top] = (raffia_statistics){0};
    core_lock_leave(&self->lock);
    if (full)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "the statistics adaptor has %u levels of counters already",
                          RAFFIA_STATISTICS_LEVELS_MAX);
    if (previous)
        *previous = before;
    return RAFFIA_OK;
}

static void fold(raffia_counter *below, const raffia_counter *above)
{
    const int64_t peak = below->value + above->peak;
    if (peak > below->peak)
        below->peak = peak;
    below->value += above->value;
    below->total += above->total;
}

raffia_status raffia_statistics_pop(raffia_resource_ref statistics, raffia_statistics *popped)
{
    struct statistics_resource *self;
    raffia_status status = enter(statistics, "raffia_statistics_pop", &self);
    if (status)
        return status;
    core_lock_take(&self->lock);
    const bool last = self->top == 0;
    const raffia_statistics above = self->levels[self->top];
    if (!last) {
        raffia_statistics *below = &self->levels[--self->top];
        fold(&below->bytes, &above.bytes);
        fold(&below->blocks, &above.blocks);
    }
    core_lock_leave(&self->lock);
    if (last)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "the last counters of a statistics adaptor stay: nothing was pushed that "
                          "could be popped");
    if (popped)
        *popped = above;
    return RAFFIA_OK;
}
