#include "cli/doctor_gpu.h"

#include "cli/json.h"
#include "cli/page_text.h"
#include "core/sys.h"
#include "core/text.h"
#include "driver/cuda/cuda_driver.h"

#include <raffia/pool.h>

#include <stdio.h>
#include <string.h>

/* Pinned for a moment. */
#define PIN_BYTES ((size_t)2 << 20)

/* Room for "pinned:" and the name of a device. */
#define PINNED_NAME_MAX (RAFFIA_DEVICE_NAME_MAX + 8)

/* First line of a file of the device's directory; "" if there is none. */
static void read_bus_file(const char *id, const char *file, char *text, size_t capacity)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", id, file);
    if (sys_read_text(path, text, capacity) <= 0)
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
}

static void read_link(int index, struct doctor_gpu *gpu)
{
    char id[CUDA_PCI_ID_MAX], speed[32], width[8];
    if (cuda_device_pci_id(index, id) || !id[0])
        return;
    read_bus_file(id, "current_link_speed", speed, sizeof speed);
    read_bus_file(id, "current_link_width", width, sizeof width);
    if (speed[0] && width[0])
        snprintf(gpu->link, sizeof gpu->link, "%s, %s lanes", speed, width);
}

static void try_pinning(struct doctor_gpu *gpu)
{
    char name[PINNED_NAME_MAX];
    snprintf(name, sizeof name, "pinned:%s", gpu->info.name);
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = name,
        .pages = RAFFIA_PAGES_OFF,
        .initial_bytes = PIN_BYTES,
        .flags = RAFFIA_POOL_FIXED,
    };
    raffia_pinned_usage usage = {0};
    raffia_pool *pool = NULL;
    gpu->pin_status = raffia_pool_create(&options, &pool);
    if (!gpu->pin_status)
        gpu->pin_status = raffia_device_query_pinned(gpu->info.name, &usage);
    if (gpu->pin_status)
        snprintf(gpu->pin_message, sizeof gpu->pin_message, "%s", raffia_last_error());
    else if (usage.pageable_bytes)
        snprintf(gpu->pin_message, sizeof gpu->pin_message,
                 "the driver registered none of it, and it stays pageable: see ulimit -l, and the "
                 "warnings of RAFFIA_LOG=info");
    raffia_pool_release(pool);
}

static bool examine(int index, struct doctor_gpu *gpu)
{
    const struct driver_device device = {&cuda_driver, index};
    *gpu = (struct doctor_gpu){0};
    if (cuda_driver.device_info(index, &gpu->info))
        return false;
    read_link(index, gpu);
    if (gpu->info.page_count)
        doctor_try_page(device, gpu->info.pages[gpu->info.page_count - 1], &gpu->trial);
    try_pinning(gpu);
    return true;
}

void doctor_gpus_examine(struct doctor_gpus *gpus)
{
    int count = 0;
    *gpus = (struct doctor_gpus){0};
    if (cuda_driver.devices(&count)) {
        snprintf(gpus->why, sizeof gpus->why, "%s", raffia_last_error());
        return;
    }
    for (int index = 0; index < count && gpus->count < DOCTOR_GPUS_MAX; index++) {
        if (examine(index, &gpus->items[gpus->count]))
            gpus->count++;
        else
            snprintf(gpus->why, sizeof gpus->why, "%s", raffia_last_error());
    }
    if (!count)
        snprintf(gpus->why, sizeof gpus->why, "NVIDIA's driver is there, but no GPU");
}

static void print_gpu(const struct doctor_gpu *gpu)
{
    char total[CORE_SIZE_TEXT_MAX], available[CORE_SIZE_TEXT_MAX], kind[PAGE_TEXT_MAX];
    printf("%-8s %s: %s, %s of %s free%s%s\n", "ok", gpu->info.name, gpu->info.model,
           core_format_size(gpu->info.free_bytes, available),
           core_format_size(gpu->info.total_bytes, total), gpu->link[0] ? ", link " : "",
           gpu->link);
    page_text_kind(gpu->trial.kind, gpu->trial.page_size, kind);
    if (gpu->trial.status)
        printf("%-8s %s: no %s page\n         why: %s\n", "problem", gpu->info.name, kind,
               gpu->trial.message);
    else
        printf("%-8s %s: %s made and mapped; %s\n", "ok", gpu->info.name, kind,
               gpu->trial.verified ? "its size was read back"
                                   : "the driver does not tell its page size");
    if (gpu->pin_message[0])
        printf("%-8s %s: host memory cannot be pinned\n         why: %s\n", "warning",
               gpu->info.name, gpu->pin_message);
    else
        printf("%-8s %s: host memory can be pinned\n", "ok", gpu->info.name);
}

void doctor_gpus_print(const struct doctor_gpus *gpus)
{
    printf("\nGPUs\n");
    for (size_t i = 0; i < gpus->count; i++)
        print_gpu(&gpus->items[i]);
    if (gpus->why[0])
        printf("%-8s %s\n", gpus->count ? "problem" : "none", gpus->why);
}

static json_t *json_gpu(const struct doctor_gpu *gpu)
{
    json_t *object = json_object();
    cli_json_text(object, "name", gpu->info.name);
    cli_json_text(object, "model", gpu->info.model);
    cli_json_count(object, "total_bytes", gpu->info.total_bytes);
    cli_json_count(object, "free_bytes", gpu->info.free_bytes);
    cli_json_set(object, "numa_node",
                 gpu->info.numa_node < 0 ? json_null() : json_integer(gpu->info.numa_node));
    cli_json_set(object, "link", gpu->link[0] ? json_string(gpu->link) : json_null());
    cli_json_count(object, "page_size", gpu->trial.page_size);
    cli_json_flag(object, "page_ok", gpu->trial.status == RAFFIA_OK);
    cli_json_flag(object, "page_verified", gpu->trial.verified);
    cli_json_flag(object, "pinning_ok", gpu->pin_message[0] == '\0');
    cli_json_text(object, "pinning_message", gpu->pin_message);
    return object;
}

json_t *doctor_gpus_json(const struct doctor_gpus *gpus)
{
    json_t *root = json_object(), *array = json_array();
    for (size_t i = 0; i < gpus->count; i++)
        cli_json_append(array, json_gpu(&gpus->items[i]));
    cli_json_set(root, "devices", array);
    cli_json_text(root, "why", gpus->why);
    return root;
}
