#include "cli/bench_kernels.h"

#include "core/checked.h"
#include "core/error.h"
#include "driver/sim/sim.h"

#include <string.h>

/* Threads of a block; a multiple of the warp. */
#define BLOCK 256u

/* kernels/bench.ptx, ended by a NUL. */
extern const char bench_ptx[];
extern const size_t bench_ptx_bytes;

static void sim_chase(void **arguments, unsigned index)
{
    (void)index;
    const unsigned char *base = *(unsigned char **)arguments[0];
    uint64_t offset = *(uint64_t *)arguments[1], left = *(uint64_t *)arguments[2];
    uint64_t *out = *(uint64_t **)arguments[3];
    while (left--)
        memcpy(&offset, base + offset, sizeof offset);
    *out = offset;
}

static void sim_sweep(void **arguments, unsigned index)
{
    float *batch = *(float **)arguments[0];
    const float *weights = *(float **)arguments[2];
    uint64_t weight_count = *(uint64_t *)arguments[3], start = *(uint64_t *)arguments[4];
    if (index < *(uint64_t *)arguments[1])
        batch[index] += 0.5f * weights[(index + start) % weight_count];
}

static const struct sim_kernel sim_kernels[] = {
    {"raffia_chase", sim_chase, 4},
    {"raffia_sweep", sim_sweep, 5},
};

static raffia_status load_module(struct bench_device *device, driver_module *module_p)
{
    const struct driver *driver = device->device.driver;
    const int index = device->device.index;
    if (strcmp(driver->name, "cuda") == 0)
        return driver->module_load(index, bench_ptx, bench_ptx_bytes, module_p);
    if (driver == &sim_driver)
        return driver->module_load(index, sim_kernels, sizeof sim_kernels, module_p);
    return core_error(RAFFIA_ERROR_UNSUPPORTED, "the %s driver runs no code of the benchmark's",
                      driver->name);
}

raffia_status bench_kernels_load(struct bench_device *device, struct bench_kernels *kernels)
{
    struct bench_kernels loaded = {.device = device};
    const struct driver_device *on = &device->device;
    raffia_status status = load_module(device, &loaded.module);
    if (status)
        return status;
    status = on->driver->module_function(on->index, loaded.module, "raffia_chase", &loaded.chase);
    if (!status)
        status =
            on->driver->module_function(on->index, loaded.module, "raffia_sweep", &loaded.sweep);
    if (status)
        bench_kernels_unload(&loaded);
    else
        *kernels = loaded;
    return status;
}

void bench_kernels_unload(struct bench_kernels *kernels)
{
    if (kernels->module)
        (void)!kernels->device->device.driver->module_unload(kernels->device->device.index,
                                                             kernels->module);
    *kernels = (struct bench_kernels){0};
}

static raffia_status launch(const struct bench_kernels *kernels, driver_function function,
                            unsigned blocks, unsigned threads, void **arguments)
{
    const struct driver_device *on = &kernels->device->device;
    const struct driver_launch shape = {
        .grid = {blocks, 1, 1}, .block = {threads, 1, 1}, .arguments = arguments};
    return on->driver->launch(on->index, kernels->device->stream, function, &shape);
}

raffia_status bench_kernels_chase(const struct bench_kernels *kernels, const void *base,
                                  uint64_t start, uint64_t steps, void *out)
{
    void *arguments[] = {&base, &start, &steps, &out};
    return launch(kernels, kernels->chase, 1, 1, arguments);
}

raffia_status bench_kernels_sweep(const struct bench_kernels *kernels, float *batch, uint64_t count,
                                  const float *weights, uint64_t weight_count, uint64_t start)
{
    void *arguments[] = {&batch, &count, &weights, &weight_count, &start};
    const uint64_t blocks = count / BLOCK + (count % BLOCK != 0);
    if (blocks > INT32_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "a batch of %llu floats is too large",
                          (unsigned long long)count);
    return launch(kernels, kernels->sweep, (unsigned)blocks, BLOCK, arguments);
}
