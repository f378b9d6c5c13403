#include "copy/kernel.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/process.h"
#include "driver/sim/sim.h"

#include <raffia/copy.h>
#include <raffia/resources.h>

#include <stdio.h>
#include <string.h>

#define KEPT_MAX 64
#define WARP     32u
#define BLOCK    256u /* threads; a multiple of the warp */

/* kernels/copy.ptx, ended by a NUL. */
extern const char copy_ptx[];
extern const size_t copy_ptx_bytes;

/* ---- the simulated device's ------------------------------------------------------------------ */

static void sim_copy_piece(void **arguments, unsigned index)
{
    const struct copy_piece *table = *(struct copy_piece **)arguments[0];
    const uint64_t piece = index / WARP;
    if (index % WARP || piece >= *(uint64_t *)arguments[1])
        return; /* one lane of a warp does it all */
    struct copy_piece it;
    if (table) {
        memcpy(&it, (const struct copy_piece *)sim_view(table) + piece, sizeof it);
    } else {
        const uint64_t offset = piece * COPY_PIECE;
        it.to = *(uint64_t *)arguments[2] + offset;
        it.from = *(uint64_t *)arguments[3] + offset;
        it.bytes = core_min(*(uint64_t *)arguments[4] - offset, COPY_PIECE);
    }
    memcpy(sim_view((void *)(uintptr_t)it.to), sim_view((void *)(uintptr_t)it.from), it.bytes);
}

static const struct sim_kernel sim_kernels[] = {{"raffia_copy", sim_copy_piece, 5}};

/* ---- loading --------------------------------------------------------------------------------- */

struct kept {
    struct driver_device device; /* no driver: the entry is free */
    unsigned long generation;    /* of the process; see core/process.h */
    driver_module module;        /* NULL: it was refused, which is not tried again */
    driver_function function;
    raffia_resource *tables; /* NULL: not needed yet */
};

/* Guarded by the lock of the process, under which nothing is loaded or unloaded. */
static struct kept kept[KEPT_MAX];

/* The entry of a device or, if it has none, a free one, or that of a parent process. NULL: none is
 * left. */
static struct kept *find_entry(struct driver_device device)
{
    const unsigned long generation = core_fork_generation();
    struct kept *place = NULL;
    for (int i = 0; i < KEPT_MAX; i++) {
        const bool used = kept[i].device.driver && kept[i].generation == generation;
        if (used && kept[i].device.driver == device.driver && kept[i].device.index == device.index)
            return &kept[i];
        if (!place && !used)
            place = &kept[i];
    }
    return place;
}

static bool recall(struct driver_device device, struct kept *found)
{
    core_process_lock();
    const struct kept *entry = find_entry(device);
    const bool there = entry && entry->device.driver == device.driver &&
                       entry->generation == core_fork_generation();
    if (there)
        *found = *entry;
    core_process_unlock();
    return there;
}

/* False if another thread was faster, whose entry is then in *mine, or there is no room. */
static bool keep(struct kept *mine, bool *room_p)
{
    core_process_lock();
    struct kept *entry = find_entry(mine->device);
    const bool taken = entry && entry->device.driver && entry->generation == mine->generation;
    *room_p = entry;
    if (taken)
        *mine = *entry;
    else if (entry)
        *entry = *mine;
    core_process_unlock();
    return entry && !taken;
}

static raffia_status load(struct kept *mine)
{
    const struct driver *driver = mine->device.driver;
    const int index = mine->device.index;
    if (!(driver->capabilities & DRIVER_CAN_LAUNCH))
        return core_error(RAFFIA_ERROR_UNSUPPORTED, "the %s driver runs no kernels", driver->name);
    raffia_status status =
        driver == &sim_driver
            ? driver->module_load(index, sim_kernels, sizeof sim_kernels, &mine->module)
            : driver->module_load(index, copy_ptx, copy_ptx_bytes, &mine->module);
    if (status)
        return status;
    status = driver->module_function(index, mine->module, "raffia_copy", &mine->function);
    if (status) {
        (void)!driver->module_unload(index, mine->module);
        mine->module = NULL;
    }
    return status;
}

/* What may pass by itself is tried again; a kernel that the driver does not take is not. */
static bool is_final(raffia_status status)
{
    return status != RAFFIA_ERROR_OUT_OF_MEMORY && status != RAFFIA_ERROR_OUT_OF_HOST_MEMORY &&
           status != RAFFIA_ERROR_FORKED;
}

static raffia_status load_first(struct driver_device device, driver_function *kernel_p)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    bool room;
    struct kept mine = {.device = device, .generation = core_fork_generation()};
    raffia_status status = load(&mine);
    if (status) {
        if (is_final(status) && keep(&mine, &room))
            core_log_warn("copies on %s make no use of a kernel: %s",
                          driver_device_name(device, name), raffia_last_error());
        return status;
    }
    const driver_module loaded = mine.module;
    if (!keep(&mine, &room)) {
        (void)!device.driver->module_unload(device.index, loaded);
        if (!room)
            return core_error(RAFFIA_ERROR_LIMIT, "kernels are kept for %d devices already",
                              KEPT_MAX);
    }
    *kernel_p = mine.function;
    return RAFFIA_OK;
}

raffia_status copy_kernel_find(struct driver_device device, driver_function *kernel_p)
{
    struct kept found;
    if (!recall(device, &found))
        return load_first(device, kernel_p);
    if (!found.module)
        return core_error(RAFFIA_ERROR_UNSUPPORTED, "the %s driver did not take the copy kernel",
                          device.driver->name);
    *kernel_p = found.function;
    return RAFFIA_OK;
}

void raffia_copy_release_kernels(void)
{
    for (int i = 0; i < KEPT_MAX; i++) {
        core_process_lock();
        const struct kept entry = kept[i];
        kept[i] = (struct kept){0};
        core_process_unlock();
        if (!entry.module || entry.generation != core_fork_generation())
            continue;
        raffia_resource_release(entry.tables);
        (void)!entry.device.driver->module_unload(entry.device.index, entry.module);
    }
}

/* ---- memory for tables ----------------------------------------------------------------------- */

#define TABLES_MAX   ((size_t)64 << 20)
#define TABLES_CHUNK ((size_t)4 << 20)

static raffia_status make_tables(struct driver_device device, raffia_resource **resource_p)
{
    char name[RAFFIA_DEVICE_NAME_MAX], pinned[RAFFIA_DEVICE_NAME_MAX];
    snprintf(pinned, sizeof pinned, "pinned:%.50s", driver_device_name(device, name));
    const raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = pinned,
        .name = "copy tables",
        .initial_bytes = RAFFIA_NONE,
        .maximum_bytes = TABLES_MAX,
        .chunk_bytes = TABLES_CHUNK,
    };
    return raffia_pool_resource_create(&options, resource_p);
}

raffia_status copy_kernel_tables(struct driver_device device, raffia_resource **resource_p)
{
    struct kept found;
    raffia_resource *made, *spare = NULL;
    if (recall(device, &found) && found.tables) {
        *resource_p = raffia_resource_retain(found.tables);
        return RAFFIA_OK;
    }
    raffia_status status = make_tables(device, &made);
    if (status)
        return status;
    core_process_lock();
    struct kept *entry = find_entry(device);
    if (entry && entry->device.driver == device.driver && !entry->tables)
        entry->tables = raffia_resource_retain(made);
    else if (entry && entry->tables) {
        spare = made;
        made = raffia_resource_retain(entry->tables);
    }
    core_process_unlock();
    raffia_resource_release(spare);
    *resource_p = made;
    return RAFFIA_OK;
}

/* ---- launching ------------------------------------------------------------------------------- */

static raffia_status launch(struct driver_device device, driver_stream stream,
                            driver_function kernel, void **arguments, size_t pieces)
{
    const size_t blocks = (pieces * WARP + BLOCK - 1) / BLOCK;
    const struct driver_launch shape = {
        .grid = {(unsigned)blocks, 1, 1}, .block = {BLOCK, 1, 1}, .arguments = arguments};
    return device.driver->launch(device.index, stream, kernel, &shape);
}

raffia_status copy_kernel_gather(struct driver_device device, driver_stream stream,
                                 driver_function kernel, const struct copy_piece *table,
                                 size_t count)
{
    uint64_t at = (uintptr_t)table, pieces = count, none = 0;
    void *arguments[] = {&at, &pieces, &none, &none, &none};
    return launch(device, stream, kernel, arguments, count);
}

raffia_status copy_kernel_one(struct driver_device device, driver_stream stream,
                              driver_function kernel, const struct driver_copy *copy)
{
    const size_t count = (copy->bytes - 1) / COPY_PIECE + 1;
    uint64_t none = 0, pieces = count, to = (uintptr_t)copy->destination,
             from = (uintptr_t)copy->source, bytes = copy->bytes;
    void *arguments[] = {&none, &pieces, &to, &from, &bytes};
    return launch(device, stream, kernel, arguments, count);
}
