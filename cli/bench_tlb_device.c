/*
 * A device does not tell its page sizes, so the probe looks for the reach of its translations: one
 * line in each 2 MiB, chased in random order, over more and more memory. The lines all fit into the
 * device's cache; what makes a step dearer as the memory grows is translation. The same number of
 * lines packed together is the control.
 */
#include "cli/bench_tlb_device.h"

#include "cli/bench_kernels.h"
#include "cli/bench_pool.h"
#include "cli/interrupt.h"
#include "cli/tlb_probe.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"

#include <stdio.h>

#define SPREAD_BYTES ((size_t)2 << 20) /* between lines that are spread */
#define PACKED_BYTES ((size_t)512)     /* between lines that are packed: no line is fetched along */
#define SMALLEST     ((size_t)32 << 20)
#define LARGEST      ((size_t)64 << 30)
#define GROWTH       4 /* each size over the one before */
#define SIZES_MAX    8
#define LINE_BYTES   128u
#define STEPS_MAX    ((uint64_t)1 << 18)

/* Of the device's free memory, for the pool and for the regular memory. */
#define SHARE 3

enum way { POOL, REGULAR, PACKED, WAYS };

struct bench {
    const struct bench_tlb_plan *plan;
    struct bench_report *report;
    struct bench_device device;
    struct bench_kernels kernels;
    size_t largest;
    size_t sizes[SIZES_MAX];
    size_t size_count;
    raffia_pool *pool;
    unsigned char *memory[WAYS];
    void *out; /* a line of device memory for the kernel's result */
    struct bench_row *rows[WAYS][SIZES_MAX];
};

static raffia_status choose_sizes(struct bench *bench)
{
    const size_t most = core_align_down(bench->device.info.free_bytes / SHARE, SPREAD_BYTES);
    bench->largest = bench->plan->bytes ? core_align_down(bench->plan->bytes, SPREAD_BYTES)
                                        : core_min(LARGEST, most);
    if (bench->largest > most || bench->largest < SMALLEST)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "%zu bytes (--size) are not between %zu and a third of what is free on "
                          "%s, %zu",
                          bench->largest, SMALLEST, bench->device.info.name, most);
    for (size_t size = SMALLEST; size <= bench->largest && bench->size_count < SIZES_MAX;
         size *= GROWTH)
        bench->sizes[bench->size_count++] = size;
    if (bench->sizes[bench->size_count - 1] < bench->largest && bench->size_count < SIZES_MAX)
        bench->sizes[bench->size_count++] = bench->largest;
    return RAFFIA_OK;
}

static raffia_status make_rows(struct bench *bench)
{
    static const char *const ways[WAYS] = {"chase.pool", "chase.regular", "chase.packed"};
    for (int way = 0; way < WAYS; way++)
        for (size_t i = 0; i < bench->size_count; i++) {
            char name[BENCH_NAME_MAX], size[CORE_SIZE_TEXT_MAX];
            snprintf(name, sizeof name, "%s.%s", ways[way],
                     core_format_size(bench->sizes[i], size));
            bench->rows[way][i] =
                bench_report_row(bench->report, name, 1, bench->plan->options.runs);
            if (!bench->rows[way][i])
                return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
        }
    return RAFFIA_OK;
}

static raffia_status make_memory(struct bench *bench)
{
    const struct driver_device *on = &bench->device.device;
    void *block, *regular;
    raffia_status status =
        bench_device_pool(&bench->device, bench->largest + SPREAD_BYTES, &bench->pool);
    if (!status)
        status = raffia_pool_alloc(bench->pool, bench->largest, 0, &block);
    if (status)
        return status;
    bench->memory[POOL] = bench->memory[PACKED] = block;
    status = raffia_pool_alloc(bench->pool, sizeof(uint64_t), 0, &bench->out);
    if (!status)
        status = on->driver->mem_alloc(on->index, bench->largest, &regular);
    if (!status)
        bench->memory[REGULAR] = regular;
    return status;
}

static void free_memory(struct bench *bench)
{
    const struct driver_device *on = &bench->device.device;
    if (bench->memory[REGULAR])
        (void)!on->driver->mem_free(on->index, bench->memory[REGULAR], bench->largest);
    if (bench->out)
        (void)!raffia_pool_free(bench->pool, bench->out);
    if (bench->memory[POOL])
        (void)!raffia_pool_free(bench->pool, bench->memory[POOL]);
    raffia_pool_release(bench->pool);
}

/* Where a line lies. Which line of the 2 MiB it is varies, so that they do not crowd into a few
 * sets of the cache. */
static uint64_t offset_of(enum way way, size_t line)
{
    if (way == PACKED)
        return line * PACKED_BYTES;
    const uint64_t lines = SPREAD_BYTES / LINE_BYTES;
    return line * SPREAD_BYTES + (line * UINT64_C(0x9e3779b97f4a7c15) >> 32) % lines * LINE_BYTES;
}

/* Writes the ring: each line holds the offset of the next. */
static raffia_status write_ring(struct bench *bench, enum way way, const uint32_t *order,
                                size_t lines, uint64_t *words)
{
    const struct driver_device *on = &bench->device.device;
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < lines; i++) {
        words[i] = offset_of(way, order[i]);
        status =
            on->driver->copy(on->index, bench->device.stream,
                             bench->memory[way] + offset_of(way, i), &words[i], sizeof words[i]);
    }
    raffia_status waited = bench_device_wait(&bench->device);
    return status ? status : waited;
}

static raffia_status run_sample(struct bench *bench, enum way way, size_t size, bool warm_up)
{
    const size_t lines = bench->sizes[size] / SPREAD_BYTES;
    /* Several times around, so that all but the first round finds its lines in the cache. */
    const uint64_t steps = core_min(core_max((uint64_t)lines * 8, STEPS_MAX / 16), STEPS_MAX);
    double started = core_clock_seconds();
    raffia_status status = bench_kernels_chase(&bench->kernels, bench->memory[way],
                                               offset_of(way, 0), steps, bench->out);
    raffia_status waited = bench_device_wait(&bench->device);
    if (!status && !waited && !warm_up)
        bench_row_add(bench->rows[way][size], (core_clock_seconds() - started) / (double)steps);
    return status ? status : waited;
}

/* All samples of one size: its rings are written, then the ways take turns. */
static raffia_status run_size(struct bench *bench, enum way way, size_t size)
{
    const size_t lines = bench->sizes[size] / SPREAD_BYTES;
    uint32_t *order = core_calloc(lines, sizeof *order);
    uint64_t *words = core_calloc(lines, sizeof *words);
    raffia_status status = order && words ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    if (!status) {
        probe_ring_order(order, lines);
        status = write_ring(bench, way, order, lines, words);
    }
    /* The first fetches the lines, and is dropped. */
    for (unsigned run = 0; !status && run <= bench->plan->options.runs; run++)
        status = run_sample(bench, way, size, run == 0);
    core_free(order);
    core_free(words);
    if (!status)
        status = cli_interrupt_check();
    return status;
}

static raffia_status add_results(struct bench *bench)
{
    struct bench_report *report = bench->report;
    const size_t last = bench->size_count - 1;
    bench_report_ratio(report, "tlb.device_regular_over_pool", bench->rows[REGULAR][last],
                       bench->rows[POOL][last], true);
    bench_report_ratio(report, "tlb.device_spread_over_packed", bench->rows[POOL][last],
                       bench->rows[PACKED][last], true);
    report->source = TLB_SOURCE_PROBE;
    bench_report_note(report, "one line in each 2 MiB is chased; packed: as many lines, 512 bytes "
                              "apart. Each way goes through its sizes by itself");
    if (!bench->device.info.verifies_pages)
        bench_report_note(report, "the device does not tell its page sizes (verified=false): these "
                                  "are times, and no page size is claimed");
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < bench->size_count; i++)
        status = bench_pool_show(bench->pool, bench->rows[POOL][i]);
    return status;
}

static raffia_status run(struct bench *bench)
{
    raffia_status status = bench_kernels_load(&bench->device, &bench->kernels);
    if (!status)
        status = choose_sizes(bench);
    if (!status)
        status = make_rows(bench);
    if (!status)
        status = make_memory(bench);
    for (int way = 0; way < WAYS; way++)
        for (size_t size = 0; !status && size < bench->size_count; size++)
            status = run_size(bench, (enum way)way, size);
    return status ? status : add_results(bench);
}

raffia_status bench_tlb_device_measure(const struct bench_tlb_plan *plan,
                                       struct bench_report *report)
{
    struct bench bench = {.plan = plan, .report = report};
    raffia_status status = bench_device_open(plan->options.device, &bench.device);
    if (status)
        return status;
    snprintf(report->title, sizeof report->title, "Chasing one line in each 2 MiB of %.40s (%.40s)",
             bench.device.info.name, bench.device.info.model);
    status = run(&bench);
    free_memory(&bench);
    bench_kernels_unload(&bench.kernels);
    bench_device_close(&bench.device);
    return status;
}
