#include "cli/bench_alloc_pairs.h"

#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/memory.h"

#include <assert.h>

/* Knuth's multiplier for 64 bits; its high bits are as good as random. */
#define MULTIPLIER UINT64_C(6364136223846793005)
#define INCREMENT  UINT64_C(1442695040888963407)

void pair_sizes_make(size_t *sizes, size_t count, size_t largest)
{
    uint64_t steps = largest / PAIR_STEP_BYTES, state = 1;
    assert(steps > 0);
    for (size_t i = 0; i < count; i++) {
        state = state * MULTIPLIER + INCREMENT;
        sizes[i] = (size_t)((state >> 33) % steps + 1) * PAIR_STEP_BYTES;
    }
}

/* Between two looks at the interrupt flag; so many that looking takes no time. */
#define PAIRS_A_LOOK 64u

/* Parts of the pool. */
#define BLOCK_PART 8
#define LIVE_PART  2

raffia_status pair_load_make(size_t pool_bytes, size_t pairs, struct pair_load *load)
{
    size_t *sizes = core_calloc(pairs, sizeof *sizes);
    if (!sizes)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    const size_t largest = core_min(PAIR_BYTES_MAX, pool_bytes / BLOCK_PART);
    pair_sizes_make(sizes, pairs, core_max(largest, PAIR_STEP_BYTES));
    *load = (struct pair_load){
        .sizes = sizes,
        .pairs = pairs,
        .live_max = PAIR_LIVE_MAX,
        .live_bytes_max = pool_bytes / LIVE_PART,
    };
    return RAFFIA_OK;
}

/* Blocks alive, the oldest first. */
struct queue {
    void *blocks[PAIR_LIVE_MAX];
    size_t first; /* number of the oldest pair */
    size_t count;
    size_t bytes;
};

static double now_if(const struct pair_times *times)
{
    return times ? core_clock_seconds() : 0;
}

static raffia_status give_oldest(const struct pair_way *way, const struct pair_load *load,
                                 struct queue *queue, struct pair_times *times)
{
    size_t pair = queue->first;
    double before = now_if(times);
    raffia_status status =
        way->give(way->context, queue->blocks[pair % PAIR_LIVE_MAX], load->sizes[pair]);
    if (times)
        times->give[pair] = core_clock_seconds() - before;
    queue->first++;
    queue->count--;
    queue->bytes -= load->sizes[pair];
    return status;
}

static bool has_room(const struct pair_load *load, const struct queue *queue, size_t bytes)
{
    return queue->count == 0 ||
           (queue->count < load->live_max && queue->bytes + bytes <= load->live_bytes_max);
}

static raffia_status take_next(const struct pair_way *way, const struct pair_load *load,
                               struct queue *queue, struct pair_result *result,
                               struct pair_times *times)
{
    size_t pair = queue->first + queue->count, bytes = load->sizes[pair];
    raffia_status status = RAFFIA_OK;
    while (!status && !has_room(load, queue, bytes))
        status = give_oldest(way, load, queue, times);
    double spent = 0;
    while (!status) {
        double before = now_if(times);
        status = way->take(way->context, bytes, &queue->blocks[pair % PAIR_LIVE_MAX]);
        spent += now_if(times) - before;
        if (status != RAFFIA_ERROR_OUT_OF_MEMORY || queue->count == 0)
            break;
        result->refused++;
        status = give_oldest(way, load, queue, times);
    }
    if (status)
        return status;
    if (times)
        times->take[pair] = spent;
    queue->count++;
    queue->bytes += bytes;
    return RAFFIA_OK;
}

raffia_status pairs_run(const struct pair_way *way, const struct pair_load *load,
                        struct pair_result *result, struct pair_times *times)
{
    assert(load->live_max > 0 && load->live_max <= PAIR_LIVE_MAX);
    struct queue queue = {0};
    *result = (struct pair_result){0};
    raffia_status status = RAFFIA_OK;
    double started = core_clock_seconds();
    for (size_t i = 0; !status && i < load->pairs; i++) {
        status = take_next(way, load, &queue, result, times);
        if (!status && i % PAIRS_A_LOOK == 0)
            status = cli_interrupt_check();
    }
    while (!status && queue.count > 0)
        status = give_oldest(way, load, &queue, times);
    result->seconds = core_clock_seconds() - started;
    /* After a failure what is still alive is given back all the same; its first error stands. */
    while (queue.count > 0)
        (void)!give_oldest(way, load, &queue, times);
    return status;
}
