#include "driver/sim/state.h"

#include "core/error.h"
#include "core/settings.h"
#include "core/text.h"
#include "driver/sim/memory.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#undef sim_misuse /* the analyser's version is for callers */

#define DEFAULT_CAPACITY ((size_t)1 << 30)
#define DEFAULT_DEVICES  2
#define DEFAULT_PAGE     ((size_t)2 << 20)

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_changed = PTHREAD_COND_INITIALIZER;
struct sim_device sim_devices[SIM_DEVICES_MAX];
int sim_device_count;

static bool prepared; /* the defaults are filled in */
static atomic_int owner;

bool sim_is_forked(void)
{
    int self = getpid(), seen = 0;
    return !atomic_compare_exchange_strong(&owner, &seen, self) && seen != self;
}

/* What the parent had stays behind unfreed: its threads are not here, and its lock may be held by
 * one of them. */
void sim_adopt(void)
{
    pthread_mutex_init(&sim_lock, NULL);
    pthread_cond_init(&sim_changed, NULL);
    memset(sim_devices, 0, sizeof sim_devices);
    prepared = false;
    atomic_store(&owner, getpid());
}

void sim_acquire(void)
{
    pthread_mutex_lock(&sim_lock);
    if (prepared)
        return;
    /* Without the lock: a bad setting is logged, and the log's sink may be anybody's. */
    pthread_mutex_unlock(&sim_lock);
    const struct sim_config defaults = {
        .cpu_inaccessible = core_setting_choice(CORE_SETTING_SIM_MEMORY) == CORE_SIM_MEMORY_HIDDEN};
    pthread_mutex_lock(&sim_lock);
    if (prepared)
        return;
    for (int i = 0; i < SIM_DEVICES_MAX; i++) {
        sim_devices[i].index = i;
        sim_devices[i].config = sim_config_whole(&defaults);
    }
    sim_device_count = DEFAULT_DEVICES;
    prepared = true;
}

void sim_leave(void)
{
    pthread_mutex_unlock(&sim_lock);
}

void sim_pause(unsigned microseconds)
{
    struct timespec pause = {.tv_sec = microseconds / 1000000u,
                             .tv_nsec = (long)(microseconds % 1000000u) * 1000};
    nanosleep(&pause, NULL);
}

void sim_forget_configuration(void)
{
    prepared = false;
}

struct sim_config sim_config_whole(const struct sim_config *config)
{
    struct sim_config whole = *config;
    if (!whole.capacity_bytes)
        whole.capacity_bytes = DEFAULT_CAPACITY;
    if (!whole.page_count) {
        whole.page_count = 2;
        whole.pages[0] = (raffia_page_offer){RAFFIA_PAGE_DEVICE, DEFAULT_PAGE};
        whole.pages[1] = (raffia_page_offer){RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE};
    }
    return whole;
}

void sim_device_clear(struct sim_device *device)
{
    sim_chunks_clear(device);
    sim_regular_clear(device);
    sim_host_blocks_clear(device);
    sim_pools_clear(device);
    for (size_t i = 0; i < device->ranges.count; i++) {
        const struct sim_span *range = &device->ranges.items[i];
        munmap((void *)range->start, range->bytes);
        if (range->owner)
            munmap(range->owner, range->bytes);
    }
    sim_spans_clear(&device->ranges);
    sim_spans_clear(&device->registrations);
    *device = (struct sim_device){0};
}

raffia_status sim_misuse(struct sim_device *device, const char *format, ...)
{
    char text[sizeof device->first_misuse];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (device->misuses++ == 0)
        memcpy(device->first_misuse, text, sizeof text);
    return core_error_native(RAFFIA_ERROR_DRIVER, "SIM_MISUSE", "sim:%d: %s", device->index, text);
}

/* mmap(2) itself, without a fault point, for the same reason as sys_munmap(): it can fail only when
 * the process has used up its mappings. */
raffia_status sim_make_bare(void *at, size_t bytes)
{
    if (mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        return core_error_errno(RAFFIA_ERROR_DRIVER, errno,
                                "sim: cannot take %zu bytes at %p out of the address space", bytes,
                                at);
    return RAFFIA_OK;
}

size_t sim_free_memory(const struct sim_device *device)
{
    size_t capacity = device->config.capacity_bytes;
    return capacity > device->used_bytes ? capacity - device->used_bytes : 0;
}

raffia_status sim_take_memory(struct sim_device *device, size_t bytes)
{
    size_t capacity = device->config.capacity_bytes, available = sim_free_memory(device);
    if (bytes > available) {
        char asked[CORE_SIZE_TEXT_MAX], free[CORE_SIZE_TEXT_MAX], all[CORE_SIZE_TEXT_MAX];
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "sim:%d: %s were asked for and %s of %s are free", device->index,
                          core_format_size(bytes, asked), core_format_size(available, free),
                          core_format_size(capacity, all));
    }
    device->used_bytes += bytes;
    return RAFFIA_OK;
}

void sim_give_memory(struct sim_device *device, size_t bytes)
{
    device->used_bytes -= bytes;
}
