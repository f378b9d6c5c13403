/*
 * What one step of `raffia bench step` computes: arithmetic that sweeps a batch, and gathers from
 * weights at random. It gives the same bits wherever the memory lies.
 */
#ifndef CLI_STEP_WORK_H
#define CLI_STEP_WORK_H

#include <raffia/base.h>

/* Fills memory with numbers between 0 and 1 that depend on the place and the seed alone. */
void step_fill(float *numbers, size_t count, uint32_t seed);

/* batch[i] = factor * weights[(i + start) modulo weight_count] + batch[i]: reads both in order and
 * writes the batch. */
void step_sweep(float *batch, size_t batch_count, const float *weights, size_t weight_count,
                size_t start, float factor);

/* The sum of `count` weights at random places, in an order that the seed decides. */
float step_gather(const float *weights, size_t weight_count, size_t count, uint64_t seed);

#endif
