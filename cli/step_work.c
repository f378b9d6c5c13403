#include "cli/step_work.h"

#include "core/checked.h"

/* Knuth's multiplier for 64 bits; the high bits of what it makes are as good as random. */
#define MULTIPLIER UINT64_C(6364136223846793005)
#define INCREMENT  UINT64_C(1442695040888963407)

/* A multiplier for 32 bits that spreads neighbours apart. */
#define SPREAD 0x9e3779b1u

void step_fill(float *numbers, size_t count, uint32_t seed)
{
    const float scale = 1.0f / (1 << 24);
    for (size_t i = 0; i < count; i++)
        numbers[i] = (float)(((uint32_t)i + seed) * SPREAD >> 8) * scale;
}

void step_sweep(float *batch, size_t batch_count, const float *weights, size_t weight_count,
                size_t start, float factor)
{
    size_t at = start % weight_count;
    for (size_t done = 0; done < batch_count;) {
        size_t length = core_min(batch_count - done, weight_count - at);
        for (size_t i = 0; i < length; i++)
            batch[done + i] = factor * weights[at + i] + batch[done + i];
        done += length;
        at = 0;
    }
}

float step_gather(const float *weights, size_t weight_count, size_t count, uint64_t seed)
{
    /* Several sums side by side, added in a fixed order: additions need not wait for each other. */
    float sums[4] = {0};
    uint64_t state = seed;
    for (size_t i = 0; i < count; i++) {
        state = state * MULTIPLIER + INCREMENT;
        sums[i % 4] += weights[(state >> 32) * (uint64_t)weight_count >> 32];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
