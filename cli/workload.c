#include "cli/workload.h"

#include "core/checked.h"
#include "core/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define STEP_BYTES    ((uint64_t)2 << 20)
#define STEPS         32u
#define GRANULE_BYTES 256u

const struct workload workloads[] = {
    {"pairs", 0},   {"lifo1", 0},  {"lifo64", 0}, {"mix80", 0},
    {"small80", 0}, {"tiny80", 0}, {"mt1", 1},    {"mt2", 2},
};
const size_t workload_count = sizeof workloads / sizeof *workloads;

const struct workload *workload_find(const char *name)
{
    for (size_t i = 0; i < workload_count; i++)
        if (strcmp(workloads[i].name, name) == 0)
            return &workloads[i];
    return NULL;
}

/* SplitMix64, which is in the public domain. */
static uint64_t draw(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t mixed = *state;
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* From GRANULE_BYTES to `most`, evenly on a logarithmic scale, in whole granules. */
static uint64_t draw_size(uint64_t *state, uint64_t most)
{
    const double share = (double)(draw(state) >> 11) * 0x1p-53;
    const double size = GRANULE_BYTES * pow((double)most / GRANULE_BYTES, share);
    const size_t rounded = core_align_up_unchecked((size_t)size, GRANULE_BYTES);
    return core_min(core_max(rounded, GRANULE_BYTES), most);
}

static uint64_t draw_steps(uint64_t *state)
{
    return (1 + draw(state) % STEPS) * STEP_BYTES;
}

/* A trace in the making; there is room for what is added. */
struct maker {
    struct trace trace;
    size_t live;
    uint64_t live_bytes;
};

static raffia_status start(struct maker *maker, size_t ops)
{
    *maker = (struct maker){.trace = {.form = TRACE_LINES}};
    maker->trace.ops = core_calloc(ops, sizeof *maker->trace.ops);
    return maker->trace.ops ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

/* Returns the block. */
static uint32_t add(struct maker *maker, uint64_t bytes)
{
    struct trace *trace = &maker->trace;
    trace->ops[trace->count++] = (struct trace_op){.bytes = bytes, .block = trace->blocks};
    trace->asked_bytes += bytes;
    maker->live_bytes += bytes;
    trace->live_max = core_max(trace->live_max, ++maker->live);
    if (maker->live_bytes > trace->peak_bytes) {
        trace->peak_bytes = maker->live_bytes;
        trace->peak_at = trace->count - 1;
    }
    return trace->blocks++;
}

static void release(struct maker *maker, uint32_t block, uint64_t bytes)
{
    struct trace *trace = &maker->trace;
    trace->ops[trace->count++] = (struct trace_op){bytes, block, true};
    maker->live--;
    maker->live_bytes -= bytes;
}

static void finish(struct maker *maker, struct trace *trace)
{
    maker->trace.live_end = maker->live;
    *trace = maker->trace;
}

static raffia_status make_pairs(struct trace *trace)
{
    enum { PAIRS = 10000, LIVE = 256, SEED = 11 };
    struct maker maker;
    uint64_t state = SEED, sizes[LIVE] = {0};
    raffia_status status = start(&maker, (size_t)2 * PAIRS);
    if (status)
        return status;
    for (uint32_t i = 0; i < PAIRS + LIVE; i++) {
        if (i >= LIVE)
            release(&maker, i - LIVE, sizes[i % LIVE]);
        if (i < PAIRS)
            add(&maker, sizes[i % LIVE] = draw_steps(&state));
    }
    finish(&maker, trace);
    return RAFFIA_OK;
}

/* `depth` blocks and their frees backwards, as often as makes a million blocks. */
static raffia_status make_lifo(uint32_t depth, struct trace *trace)
{
    enum { BLOCKS = 1000000, DEPTH_MAX = 64, SEED = 33 };
    struct maker maker;
    uint64_t state = SEED, sizes[DEPTH_MAX];
    raffia_status status = start(&maker, (size_t)2 * BLOCKS);
    if (status)
        return status;
    for (uint32_t first = 0; first < BLOCKS; first += depth) {
        for (uint32_t i = 0; i < depth; i++)
            add(&maker, sizes[i] = depth == 1 ? STEP_BYTES : draw_steps(&state));
        for (uint32_t i = depth; i-- > 0;)
            release(&maker, first + i, sizes[i]);
    }
    finish(&maker, trace);
    return RAFFIA_OK;
}

struct mix {
    size_t ops;
    uint64_t most; /* largest block */
    size_t range;  /* 80 % of it are kept full */
    uint64_t seed;
};

struct mix_block {
    uint64_t bytes;
    uint32_t block;
};

static raffia_status make_mix(const struct mix *mix, struct trace *trace)
{
    const uint64_t target = (uint64_t)((double)mix->range * 0.8);
    struct maker maker;
    raffia_status status = start(&maker, mix->ops);
    struct mix_block *live = status ? NULL : core_calloc(mix->ops, sizeof *live);
    if (!live) {
        if (!status)
            trace_clear(&maker.trace);
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    uint64_t state = mix->seed, next = draw_size(&state, mix->most);
    while (maker.trace.count < mix->ops) {
        if (maker.live_bytes + next <= target) {
            size_t place = maker.live;
            live[place] = (struct mix_block){next, add(&maker, next)};
            next = draw_size(&state, mix->most);
        } else {
            assert(maker.live > 0); /* no block alone is that large */
            struct mix_block *victim = &live[draw(&state) % maker.live];
            release(&maker, victim->block, victim->bytes);
            *victim = live[maker.live];
        }
    }
    core_free(live);
    finish(&maker, trace);
    return RAFFIA_OK;
}

raffia_status workload_make(const struct workload *workload, unsigned thread, struct trace *trace)
{
    const size_t range = WORKLOAD_RANGE_BYTES;
    if (strcmp(workload->name, "pairs") == 0)
        return make_pairs(trace);
    if (strcmp(workload->name, "lifo1") == 0)
        return make_lifo(1, trace);
    if (strcmp(workload->name, "lifo64") == 0)
        return make_lifo(64, trace);
    if (workload->threads) {
        const struct mix mix = {500000, (uint64_t)16 << 20, range / workload->threads,
                                900 + (uint64_t)thread};
        return make_mix(&mix, trace);
    }
    static const struct mix mix80 = {1000000, (uint64_t)256 << 20, WORKLOAD_RANGE_BYTES, 22};
    static const struct mix small80 = {1000000, (uint64_t)4 << 20, WORKLOAD_RANGE_BYTES, 25};
    static const struct mix tiny80 = {1000000, (uint64_t)16 << 10, (size_t)128 << 20, 26};
    return make_mix(strcmp(workload->name, "small80") == 0  ? &small80
                    : strcmp(workload->name, "tiny80") == 0 ? &tiny80
                                                            : &mix80,
                    trace);
}
