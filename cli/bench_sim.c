#include "cli/bench_sim.h"

#include "core/checked.h"
#include "core/error.h"
#include "driver/sim/sim.h"

#include <string.h>

#define HUGE_BYTES ((size_t)2 << 20)

bool bench_sim_is(const char *device)
{
    return device && strncmp(device, "sim", 3) == 0;
}

raffia_status bench_sim_prepare(size_t bytes, size_t page_size)
{
    struct sim_config config = {.synchronous = true};
    const size_t largest = core_max(page_size, HUGE_BYTES);
    if (!core_align_up(bytes, largest, &config.capacity_bytes))
        return core_error(RAFFIA_ERROR_OVERFLOW, "a pool of %zu bytes is larger than any address",
                          bytes);
    if (largest > HUGE_BYTES)
        config.pages[config.page_count++] = (raffia_page_offer){RAFFIA_PAGE_DEVICE, largest};
    config.pages[config.page_count++] = (raffia_page_offer){RAFFIA_PAGE_DEVICE, HUGE_BYTES};
    config.pages[config.page_count++] = (raffia_page_offer){RAFFIA_PAGE_REGULAR, SIM_BASE_PAGE};
    return sim_configure(0, &config);
}
