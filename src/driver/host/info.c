/* What the host is as a device. */
#include "core/checked.h"
#include "core/sys.h"
#include "driver/host/facts.h"
#include "driver/host/verbs.h"

#include <assert.h>
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

static void read_model(char model[static RAFFIA_DEVICE_NAME_MAX])
{
    static const char key[] = "model name";
    char text[CPUINFO_BYTES];
    snprintf(model, RAFFIA_DEVICE_NAME_MAX, "unknown processor");
    if (sys_read_text("/proc/cpuinfo", text, sizeof text) <= 0)
        return;
    char *name = strstr(text, key);
    if (!name)
        return;
    name += strlen(key);
    name += strspn(name, " \t:");
    name[strcspn(name, "\n")] = '\0';
    snprintf(model, RAFFIA_DEVICE_NAME_MAX, "%.*s", RAFFIA_DEVICE_NAME_MAX - 1, name);
}

/* Largest first, and hugetlb, the stronger promise, before transparent at one size. */
static void read_offers(raffia_device_info *info)
{
    size_t sizes[HOST_POOLS_MAX];
    size_t count = core_min(host_hugetlb_sizes(sizes, HOST_POOLS_MAX), HOST_POOLS_MAX);
    struct host_thp thp;
    host_thp_read(&thp);
    bool transparent_left = thp.present;
    size_t offers = 0;
    for (size_t i = 0; i < count; i++) {
        if (transparent_left && sizes[i] < thp.page_size) {
            info->pages[offers++] = (raffia_page_offer){RAFFIA_PAGE_TRANSPARENT, thp.page_size};
            transparent_left = false;
        }
        info->pages[offers++] = (raffia_page_offer){RAFFIA_PAGE_HUGETLB, sizes[i]};
    }
    if (transparent_left)
        info->pages[offers++] = (raffia_page_offer){RAFFIA_PAGE_TRANSPARENT, thp.page_size};
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
    read_model(info->model);
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
