/*
 * Size arithmetic that cannot wrap. Every number that comes from a caller or a file goes through
 * these: each returns false, and leaves the result alone, when the true result does not fit.
 */
#ifndef CORE_CHECKED_H
#define CORE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool core_add(size_t a, size_t b, size_t *sum_p)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *sum_p = sum;
    return true;
}

static inline bool core_multiply(size_t a, size_t b, size_t *product_p)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *product_p = product;
    return true;
}

static inline bool core_is_power_of_two(size_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* `unit` is a power of two, here and below. */
static inline bool core_is_aligned(size_t value, size_t unit)
{
    return (value & (unit - 1)) == 0;
}

static inline size_t core_align_down(size_t value, size_t unit)
{
    return value & ~(unit - 1);
}

static inline bool core_align_up(size_t value, size_t unit, size_t *aligned_p)
{
    size_t sum;
    if (!core_add(value, unit - 1, &sum))
        return false;
    *aligned_p = core_align_down(sum, unit);
    return true;
}

/* For numbers already known to be small: an address inside a range, a page count. */
static inline size_t core_align_up_unchecked(size_t value, size_t unit)
{
    return core_align_down(value + unit - 1, unit);
}

static inline size_t core_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t core_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
