/* Default sizes of pools. */
#include "policy/sizing.h"

#include "core/checked.h"

#define LARGEST_CHUNK ((size_t)256 << 20)

size_t policy_default_pool_bytes(const raffia_device_info *device, double share, size_t cap,
                                 size_t page_size)
{
    size_t bytes = (size_t)((double)device->total_bytes * share);
    bytes = core_min(core_min(bytes, cap), device->free_bytes);
    return core_max(core_align_down(bytes, page_size), page_size);
}

/* weight_bytes * percent / 100, rounded up to whole pages. */
static bool scaled_up(size_t weight_bytes, size_t percent, size_t page_size, size_t *bytes_p)
{
    const size_t tenths = (percent - 100) / 10;
    size_t extra;
    if (!core_multiply(weight_bytes, tenths, &extra) || !core_add(extra, 9, &extra) ||
        !core_add(weight_bytes, extra / 10, &extra))
        return false;
    return core_align_up(extra, page_size, bytes_p);
}

_Static_assert(POLICY_RESIDENT_PERCENT % 10 == 0 && POLICY_ROTATING_PERCENT % 10 == 0,
               "shares are counted in tenths");

bool policy_resident_model_bytes(size_t weight_bytes, size_t page_size, size_t *bytes_p)
{
    return scaled_up(weight_bytes, POLICY_RESIDENT_PERCENT, page_size, bytes_p);
}

bool policy_rotating_models_bytes(size_t weight_bytes, size_t page_size, size_t *bytes_p)
{
    return scaled_up(weight_bytes, POLICY_ROTATING_PERCENT, page_size, bytes_p);
}

size_t policy_chunk_bytes(size_t initial_bytes, size_t page_size)
{
    size_t wanted = initial_bytes ? core_min(initial_bytes, LARGEST_CHUNK) : LARGEST_CHUNK;
    return core_max(core_align_up_unchecked(wanted, page_size), page_size);
}
