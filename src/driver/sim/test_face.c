/* What tests do to the devices as a whole: configure, reset, poison, split pages, look in. */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "driver/sim/memory.h"
#include "driver/sim/queue.h"
#include "driver/sim/verbs.h"

#include <string.h>

/* So large that every sum of sizes on a device stays far from wrapping. */
#define CAPACITY_MAX ((size_t)1 << 46)

static raffia_status check_config(int index, const struct sim_config *config)
{
    if (index < 0 || index >= SIM_DEVICES_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim: device %d is not below %d", index,
                          SIM_DEVICES_MAX);
    if (config->capacity_bytes > CAPACITY_MAX || config->page_count > RAFFIA_PAGE_SIZES_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim: a capacity of %zu bytes or %zu kinds of pages are too many",
                          config->capacity_bytes, config->page_count);
    for (size_t i = 0; i < config->page_count; i++) {
        const raffia_page_offer *page = &config->pages[i];
        if (!core_is_power_of_two(page->size) || page->size < SIM_BASE_PAGE ||
            page->kind <= RAFFIA_PAGE_NONE || page->kind >= RAFFIA_PAGE_KIND_COUNT ||
            (i > 0 && page->size > config->pages[i - 1].size))
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "sim: pages of kind %d and %zu bytes in place %zu: sizes are powers "
                              "of two from %zu up, largest first",
                              (int)page->kind, page->size, i, SIM_BASE_PAGE);
    }
    return RAFFIA_OK;
}

static bool is_idle(const struct sim_device *device)
{
    if (device->ranges.count || device->blocks.count || device->registrations.count ||
        device->host_blocks.count || device->pool_blocks.count || device->pools.count ||
        device->chunks.count || device->events.count || device->modules.count)
        return false;
    for (const struct sim_stream *stream = device->all; stream; stream = stream->next)
        if (stream != device->default_stream || stream->first)
            return false;
    return true;
}

/* Whether everything that exists on the device would be just as good with the new configuration. */
static bool has_same_shape(const struct sim_config *old, const struct sim_config *new)
{
    bool same = old->page_count == new->page_count && old->synchronous == new->synchronous &&
                old->commits_at_map == new->commits_at_map &&
                old->cpu_inaccessible == new->cpu_inaccessible;
    for (size_t i = 0; i < old->page_count && same; i++)
        same = old->pages[i].kind == new->pages[i].kind && old->pages[i].size == new->pages[i].size;
    return same;
}

raffia_status sim_configure(int index, const struct sim_config *config)
{
    const struct sim_config defaults = {0};
    if (!config)
        config = &defaults;
    raffia_status status = check_config(index, config);
    if (status)
        return status;
    if (sim_is_forked())
        return core_error(RAFFIA_ERROR_FORKED, "sim: a forked child cannot configure a device");
    sim_acquire();
    struct sim_device *device = &sim_devices[index];
    struct sim_config whole = sim_config_whole(config);
    if (is_idle(device) || has_same_shape(&device->config, &whole)) {
        device->config = whole;
        if (index >= sim_device_count)
            sim_device_count = index + 1;
    } else {
        status = core_error(RAFFIA_ERROR_BUSY, "sim:%d is in use and cannot be configured", index);
    }
    sim_leave();
    return status;
}

raffia_status sim_set_devices(int count)
{
    if (count < 0 || count > SIM_DEVICES_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim: %d devices, at most %d", count,
                          SIM_DEVICES_MAX);
    if (sim_is_forked())
        return core_error(RAFFIA_ERROR_FORKED, "sim: a forked child cannot set the devices");
    sim_acquire();
    sim_device_count = count;
    sim_leave();
    return RAFFIA_OK;
}

void sim_reset(void)
{
    if (sim_is_forked())
        sim_adopt();
    sim_acquire();
    /* All streams first: the work of one device may touch another's memory. */
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        sim_streams_clear(&sim_devices[i]);
    for (int i = 0; i < SIM_DEVICES_MAX; i++) {
        sim_events_clear(&sim_devices[i]);
        sim_modules_clear(&sim_devices[i]);
        sim_device_clear(&sim_devices[i]);
    }
    sim_forget_configuration();
    sim_verbs_reset();
    sim_leave();
}

static bool is_running(const struct sim_device *device)
{
    for (const struct sim_stream *stream = device->all; stream; stream = stream->next)
        if (stream->running)
            return true;
    return false;
}

/* What runs is waited for: a device that lost its context touches no memory any more. */
void sim_poison(int index)
{
    if (index < 0 || index >= SIM_DEVICES_MAX || sim_is_forked())
        return;
    sim_acquire();
    sim_devices[index].poisoned = true;
    pthread_cond_broadcast(&sim_changed);
    while (is_running(&sim_devices[index]))
        pthread_cond_wait(&sim_changed, &sim_lock);
    sim_leave();
}

static raffia_status split(const struct sim_span *span, uintptr_t from, uintptr_t to)
{
    struct sim_mapping *mapping = span->owner;
    size_t page_size = mapping->chunk->page_size;
    if (!mapping->split)
        mapping->split = core_calloc(span->bytes / page_size, 1);
    if (!mapping->split)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    size_t first = (core_max(from, span->start) - span->start) / page_size;
    size_t last = (core_min(to, span->start + span->bytes) - 1 - span->start) / page_size;
    memset(mapping->split + first, 1, last - first + 1);
    return RAFFIA_OK;
}

raffia_status sim_split(int index, void *at, size_t bytes)
{
    uintptr_t end;
    if (index < 0 || index >= SIM_DEVICES_MAX || !bytes || !core_add((uintptr_t)at, bytes, &end))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "sim: cannot split %zu bytes at %p of %d",
                          bytes, at, index);
    if (sim_is_forked())
        return core_error(RAFFIA_ERROR_FORKED, "sim: a forked child cannot split pages");
    sim_acquire();
    const struct sim_spans *mappings = &sim_devices[index].mappings;
    raffia_status status = RAFFIA_OK;
    size_t found = 0;
    for (size_t i = 0; i < mappings->count && !status; i++) {
        const struct sim_span *span = &mappings->items[i];
        const struct sim_mapping *mapping = span->owner;
        if (span->start >= end || span->start + span->bytes <= (uintptr_t)at ||
            mapping->chunk->kind != RAFFIA_PAGE_TRANSPARENT)
            continue;
        found++;
        /* Pages delivered small are in pieces already. */
        if (mapping->page_size == mapping->chunk->page_size)
            status = split(span, (uintptr_t)at, end);
    }
    sim_leave();
    if (!status && !found)
        status = core_error(RAFFIA_ERROR_NOT_FOUND,
                            "sim:%d: no transparent pages in %zu bytes at %p", index, bytes, at);
    return status;
}

static void count_streams(const struct sim_device *device, struct sim_usage *usage)
{
    for (int i = 0; i < SIM_STREAMS_MAX; i++)
        usage->streams += device->slots[i] != NULL;
    for (const struct sim_stream *stream = device->all; stream; stream = stream->next)
        for (const struct sim_op *op = stream->first; op; op = op->next)
            usage->queued++;
}

static void count_pool_blocks(const struct sim_device *device, struct sim_usage *usage)
{
    for (size_t i = 0; i < device->pool_blocks.count; i++) {
        const struct sim_pool_block *block = device->pool_blocks.items[i].owner;
        usage->pool_blocks += block->live;
        usage->pool_block_bytes += block->live ? block->bytes : 0;
    }
}

void sim_query(int index, struct sim_usage *usage)
{
    *usage = (struct sim_usage){0};
    if (index < 0 || index >= SIM_DEVICES_MAX || sim_is_forked())
        return;
    sim_acquire();
    const struct sim_device *device = &sim_devices[index];
    *usage = (struct sim_usage){
        .ranges = device->ranges.count,
        .range_bytes = sim_spans_bytes(&device->ranges),
        .chunks = device->chunks.count,
        .chunk_bytes = device->chunk_bytes,
        .mappings = device->mappings.count,
        .mapped_bytes = sim_spans_bytes(&device->mappings),
        .blocks = device->blocks.count,
        .block_bytes = sim_spans_bytes(&device->blocks),
        .registrations = device->registrations.count,
        .registered_bytes = sim_spans_bytes(&device->registrations),
        .host_blocks = device->host_blocks.count,
        .host_block_bytes = sim_spans_bytes(&device->host_blocks),
        .pools = device->pools.count,
        .pool_bytes = sim_spans_bytes(&device->pool_blocks),
        .events = device->events.count,
        .modules = device->modules.count,
        .misuses = device->misuses,
    };
    memcpy(usage->first_misuse, device->first_misuse, sizeof usage->first_misuse);
    count_streams(device, usage);
    count_pool_blocks(device, usage);
    sim_leave();
}

bool sim_is_idle(void)
{
    if (sim_is_forked())
        return true;
    sim_acquire();
    bool idle = true;
    for (int i = 0; i < SIM_DEVICES_MAX; i++)
        idle = idle && is_idle(&sim_devices[i]) && !sim_devices[i].misuses;
    sim_leave();
    return idle;
}

void *sim_view(const void *at)
{
    if (sim_is_forked())
        return (void *)(uintptr_t)at;
    sim_acquire();
    void *real = sim_real_address(at);
    sim_leave();
    return real;
}
