/* What the host is as a device. */
#include "core/checked.h"
#include "core/sys.h"
#include "driver/host/facts.h"
#include "driver/host/verbs.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The first processor's block of /proc/cpuinfo is shorter. */
#define CPUINFO_BYTES 4096

raffia_status host_devices(int *count_p)
{
    *count_p = 1;
    return RAFFIA_OK;
}

raffia_status host_context_state(int device)
{
    (void)device;
    return RAFFIA_OK;
}

static bool read_model(char model[static RAFFIA_DEVICE_NAME_MAX])
{
    static const char key[] = "model name";
    char text[CPUINFO_BYTES];
    snprintf(model, RAFFIA_DEVICE_NAME_MAX, "unknown processor");
    if (sys_read_text("/proc/cpuinfo", text, sizeof text) <= 0)
        return false;
    char *name = strstr(text, key);
    if (!name)
        return false;
    name += strlen(key);
    name += strspn(name, " \t:");
    name[strcspn(name, "\n")] = '\0';
    snprintf(model, RAFFIA_DEVICE_NAME_MAX, "%.*s", RAFFIA_DEVICE_NAME_MAX - 1, name);
    return true;
}

/* It stays the same, and its file takes longer to read than all others: the kernel asks each
 * processor for its frequency. */
static void find_model(char model[static RAFFIA_DEVICE_NAME_MAX])
{
    enum { UNREAD, BEING_KEPT, KEPT };
    static atomic_int state;
    static char kept[RAFFIA_DEVICE_NAME_MAX];
    const bool may_keep = sys_root_is_real();
    if (may_keep && atomic_load_explicit(&state, memory_order_acquire) == KEPT) {
        memcpy(model, kept, sizeof kept);
        return;
    }
    int unread = UNREAD;
    if (read_model(model) && may_keep &&
        atomic_compare_exchange_strong(&state, &unread, BEING_KEPT)) {
        memcpy(kept, model, sizeof kept);
        atomic_store_explicit(&state, KEPT, memory_order_release);
    }
}

/* Largest first, and hugetlb, the stronger promise, before transparent at one size. */
static void read_offers(raffia_device_info *info)
{
    size_t sizes[HOST_POOLS_MAX];
    size_t count = core_min(host_hugetlb_sizes(sizes, HOST_POOLS_MAX), HOST_POOLS_MAX);
    const size_t transparent = host_thp_page_size();
    bool transparent_left = transparent > 0;
    size_t offers = 0;
    for (size_t i = 0; i < count; i++) {
        if (transparent_left && sizes[i] < transparent) {
            info->pages[offers++] = (raffia_page_offer){RAFFIA_PAGE_TRANSPARENT, transparent};
            transparent_left = false;
        }
        info->pages[offers++] = (raffia_page_offer){RAFFIA_PAGE_HUGETLB, sizes[i]};
    }
    if (transparent_left)
        info->pages[offers++] = (raffia_page_offer){RAFFIA_PAGE_TRANSPARENT, transparent};
    info->pages[offers++] = (raffia_page_offer){RAFFIA_PAGE_REGULAR, host_base_page_size()};
    info->page_count = offers;
}

static size_t known(uint64_t bytes)
{
    return bytes == HOST_UNLIMITED ? 0 : (size_t)bytes;
}

raffia_status host_device_info(int device, raffia_device_info *info)
{
    assert(device == 0);
    (void)device;
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "host");
    find_model(info->model);
    struct host_memory memory;
    host_memory_read(&memory);
    uint64_t total = memory.total < memory.cgroup.limit ? memory.total : memory.cgroup.limit;
    info->total_bytes = known(total);
    uint64_t room = host_fillable(host_memory_room(&memory));
    info->free_bytes = known(room < total ? room : total);
    info->numa_node = -1;
    info->cpu_accessible = true;
    info->verifies_pages = true;
    info->asynchronous = false;
    read_offers(info);
    return RAFFIA_OK;
}
