/* Code: modules are tables of C functions, launched on a stream's worker. */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "driver/sim/memory.h"
#include "driver/sim/queue.h"
#include "driver/sim/verbs.h"

#include <limits.h>
#include <string.h>

/* Most kernels of one module. */
#define KERNELS_MAX 1024u

struct driver_function {
    char name[SIM_NAME_MAX];
    void (*function)(void **arguments, unsigned index);
    unsigned parameters;
};

struct driver_module {
    size_t count;
    struct driver_function functions[];
};

static raffia_status check_image(const struct sim_device *device, const struct sim_kernel *kernels,
                                 size_t bytes)
{
    size_t count = bytes / sizeof *kernels;
    if (!kernels || !count || bytes % sizeof *kernels || count > KERNELS_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: an image of %zu bytes is not a table of 1 to %u kernels",
                          device->index, bytes, KERNELS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!kernels[i].name || strlen(kernels[i].name) >= SIM_NAME_MAX || !kernels[i].function ||
            kernels[i].parameters > SIM_ARGUMENTS_MAX)
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "sim:%d: kernel %zu of the image lacks a function or a name of at "
                              "most %d characters, or has more than %d parameters",
                              device->index, i, SIM_NAME_MAX - 1, SIM_ARGUMENTS_MAX);
    return RAFFIA_OK;
}

static raffia_status load(struct sim_device *device, const struct sim_kernel *kernels, size_t bytes,
                          driver_module *module_p)
{
    raffia_status status = check_image(device, kernels, bytes);
    if (!status)
        status = sim_spans_reserve(&device->modules, 1);
    if (status)
        return status;
    size_t count = bytes / sizeof *kernels;
    size_t module_bytes = sizeof(struct driver_module) + count * sizeof(struct driver_function);
    struct driver_module *module = core_calloc(1, module_bytes);
    if (!module)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    module->count = count;
    for (size_t i = 0; i < count; i++) {
        memcpy(module->functions[i].name, kernels[i].name, strlen(kernels[i].name) + 1);
        module->functions[i].function = kernels[i].function;
        module->functions[i].parameters = kernels[i].parameters;
    }
    sim_spans_insert(&device->modules, module, module_bytes, module);
    *module_p = module;
    return RAFFIA_OK;
}

raffia_status sim_module_load(int index, const void *image, size_t bytes, driver_module *module_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_module_load, index, NULL, &device);
    if (status)
        return status;
    status = load(device, image, bytes, module_p);
    sim_leave();
    return status;
}

static bool is_queued(const struct sim_device *device, const struct driver_module *module)
{
    for (const struct sim_stream *stream = device->all; stream; stream = stream->next)
        for (const struct sim_op *op = stream->first; op; op = op->next)
            if (op->module == module)
                return true;
    return false;
}

raffia_status sim_module_unload(int index, driver_module module)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_module_unload, index, NULL, &device);
    if (status)
        return status;
    if (!sim_spans_exactly(&device->modules, module))
        status = sim_misuse(device, "module_unload of %p, which is not a module", (void *)module);
    else if (is_queued(device, module))
        status = sim_misuse(device, "module_unload of a module with a launch still queued");
    if (!status) {
        sim_spans_remove(&device->modules, module);
        core_free(module);
    }
    sim_leave();
    return status;
}

static raffia_status find_function(struct sim_device *device, driver_module module,
                                   const char *name, driver_function *function_p)
{
    if (!sim_spans_exactly(&device->modules, module))
        return sim_misuse(device, "module_function of %p, which is not a module", (void *)module);
    for (size_t i = 0; i < module->count; i++)
        if (!strcmp(module->functions[i].name, name)) {
            *function_p = &module->functions[i];
            return RAFFIA_OK;
        }
    return core_error(RAFFIA_ERROR_NOT_FOUND, "sim:%d: the module has no function '%s'",
                      device->index, name);
}

raffia_status sim_module_function(int index, driver_module module, const char *name,
                                  driver_function *function_p)
{
    struct sim_device *device;
    raffia_status status = sim_enter(SIM_VERB_module_function, index, NULL, &device);
    if (status)
        return status;
    status = find_function(device, module, name, function_p);
    sim_leave();
    return status;
}

/* Threads of the whole grid; 0 if there are none, or too many to count. */
static unsigned count_threads(const struct driver_launch *launch)
{
    size_t count = 1;
    for (int i = 0; i < 3; i++)
        if (!core_multiply(count, launch->grid[i], &count) ||
            !core_multiply(count, launch->block[i], &count))
            return 0;
    return count <= UINT_MAX ? (unsigned)count : 0;
}

/* Copies the arguments, and notes which of them point into device memory. */
static raffia_status take_arguments(struct sim_device *device, struct sim_op *op,
                                    const struct driver_function *function, void **arguments)
{
    op->piece_count = 0;
    for (unsigned i = 0; i < function->parameters; i++) {
        memcpy(&op->arguments[i], arguments[i], sizeof op->arguments[i]);
        void *pointer = (void *)(uintptr_t)op->arguments[i];
        if (!sim_is_device_memory(pointer))
            continue;
        raffia_status status = sim_check_touch(device, pointer, 1, false, "launch");
        if (status)
            return status;
        op->pieces[op->piece_count++] = (struct driver_copy){NULL, pointer, 1};
    }
    return RAFFIA_OK;
}

static raffia_status launch(struct sim_device *device, driver_stream handle,
                            driver_function function, const struct driver_launch *how)
{
    const struct sim_span *module = sim_spans_at(&device->modules, function);
    if (!module)
        return sim_misuse(device, "launch of %p, which is not a function of a module",
                          (void *)function);
    unsigned threads = count_threads(how);
    if (!threads)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "sim:%d: a launch of '%s' on no thread, or more than %u", device->index,
                          function->name, UINT_MAX);
    struct sim_stream *stream;
    raffia_status status = sim_stream_find_open(device, handle, "launch", &stream);
    if (status)
        return status;
    struct sim_op *op = sim_op_create(SIM_OP_LAUNCH, function->parameters);
    if (!op)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    op->module = module->owner;
    op->function = function->function;
    op->threads = threads;
    status = take_arguments(device, op, function, how->arguments);
    if (status) {
        sim_op_free(op);
        return status;
    }
    sim_stream_submit(stream, op);
    return RAFFIA_OK;
}

raffia_status sim_launch(int index, driver_stream handle, driver_function function,
                         const struct driver_launch *how)
{
    struct sim_device *device;
    raffia_status status = sim_enter_ordered(SIM_VERB_launch, index, &device);
    if (status)
        return status;
    status = launch(device, handle, function, how);
    sim_leave();
    return status;
}

void sim_modules_clear(struct sim_device *device)
{
    for (size_t i = 0; i < device->modules.count; i++)
        core_free(device->modules.items[i].owner);
    sim_spans_clear(&device->modules);
}
