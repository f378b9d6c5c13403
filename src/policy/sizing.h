/*
 * How large pools are by default. Pure arithmetic; the rules are SPEC B4 and B12.
 */
#ifndef POLICY_SIZING_H
#define POLICY_SIZING_H

#include <raffia/device.h>
#include <raffia/status.h>

/*
 * Size of a pool nobody gave a size: `share` of the device's total memory, at most `cap`, at most
 * what is free now, in whole pages (rounded down, at least one page).
 */
size_t policy_default_pool_bytes(const raffia_device_info *device, double share, size_t cap,
                                 size_t page_size);

/* What a pool wants of the weights it shall hold. */
#define POLICY_RESIDENT_PERCENT 120u
#define POLICY_ROTATING_PERCENT 130u

/* Room for one resident model of `weight_bytes`: x 1.2, in whole pages. False on overflow. */
bool policy_resident_model_bytes(size_t weight_bytes, size_t page_size, size_t *bytes_p);

/* Room for models that rotate, whose weights add up to `weight_bytes`: x 1.3, in whole pages. */
bool policy_rotating_models_bytes(size_t weight_bytes, size_t page_size, size_t *bytes_p);

/* Unit of growth for a pool that starts with `initial_bytes`: 256 MiB or less, at least a page. */
size_t policy_chunk_bytes(size_t initial_bytes, size_t page_size);

#endif
