/* What a GPU is as a device, and how it is. */
#include "core/checked.h"
#include "core/sys.h"
#include "driver/cuda/context.h"
#include "driver/cuda/cuda_driver.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

raffia_status cuda_devices(int *count_p)
{
    if (cuda_is_forked())
        return cuda_check(0, "devices");
    switch (cuda_library_open()) {
    case CUDA_READY:
        *count_p = cuda_library.device_count;
        return RAFFIA_OK;
    case CUDA_NO_DEVICE:
        *count_p = 0;
        return RAFFIA_OK;
    default:
        return raffia_last_status();
    }
}

/* The device's address on the bus, as the kernel writes it; "" if it cannot be told. */
static void read_pci_id(CUdevice handle, char id[static CUDA_PCI_ID_MAX])
{
    id[0] = '\0';
    if (cuda_library.cuDeviceGetPCIBusId(id, CUDA_PCI_ID_MAX, handle))
        id[0] = '\0';
    for (char *c = id; *c; c++)
        *c = (char)tolower((unsigned char)*c);
}

raffia_status cuda_device_pci_id(int index, char id[static CUDA_PCI_ID_MAX])
{
    CUdevice handle;
    raffia_status status = cuda_device_handle(index, &handle);
    if (!status)
        read_pci_id(handle, id);
    return status;
}

/* By the kernel's word; -1 where it has none, as in a virtual machine. */
static int numa_node(CUdevice handle)
{
    char id[CUDA_PCI_ID_MAX], path[96], text[32];
    read_pci_id(handle, id);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", id);
    if (sys_read_text(path, text, sizeof text) <= 0)
        return -1;
    char *end;
    const long node = strtol(text, &end, 10);
    return end != text && node >= 0 && node <= INT16_MAX ? (int)node : -1;
}

static void read_offers(const struct cuda_device *device, raffia_device_info *info)
{
    const size_t sizes[] = {device->recommended, device->granularity};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (core_is_power_of_two(sizes[i]) && (i == 0 || sizes[i] != sizes[0]))
            info->pages[info->page_count++] = (raffia_page_offer){RAFFIA_PAGE_DEVICE, sizes[i]};
}

raffia_status cuda_device_info(int index, raffia_device_info *info)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "device_info");
    if (status)
        return status;
    const struct cuda_device *device = scope.device;
    raffia_device_info found = {.asynchronous = true};
    size_t total = 0;
    CUresult result = CUDA_CALL(cuDeviceGetName, found.model, sizeof found.model, device->handle);
    if (!result)
        result = CUDA_CALL(cuMemGetInfo_v2, &found.free_bytes, &total);
    if (!result)
        result = CUDA_CALL(cuDeviceTotalMem_v2, &found.total_bytes, device->handle);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "cannot ask for the device's name and memory");
    found.free_bytes = core_min(found.free_bytes, found.total_bytes);
    found.numa_node = numa_node(device->handle);
    snprintf(found.name, sizeof found.name, "%s:%d", cuda_driver.name, index);
    read_offers(device, &found);
    *info = found;
    return RAFFIA_OK;
}

/* Any call answers with the error that lost the context; this one waits for nothing. */
raffia_status cuda_context_state(int index)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "context_state");
    if (status)
        return status;
    size_t available, total;
    CUresult result = CUDA_CALL(cuMemGetInfo_v2, &available, &total);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "the device cannot be used") : RAFFIA_OK;
}
