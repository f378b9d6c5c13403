/* Host memory pinned for a simulated GPU passes what every driver must pass. */
#include "driver/conformance.h"
#include "driver/pinned/pinned.h"
#include "driver/sim/sim.h"

#include <raffia/log.h>

#include <stdio.h>

static int run(const char *name, const struct sim_config *config)
{
    struct conformance subject = {.has_fault_points = true};
    if (sim_configure(0, config) || driver_open("pinned:sim:0", &subject.device)) {
        fprintf(stderr, "%s: %s\n", name, raffia_last_error());
        return 1;
    }
    int failed = conformance_run(name, &subject);
    raffia_pinned_usage usage;
    pinned_query(subject.device.index, &usage);
    if (!sim_is_idle() || usage.registered_bytes || usage.smaller_pieces_bytes ||
        usage.driver_allocated_bytes || usage.pageable_bytes) {
        struct sim_usage left;
        sim_query(0, &left);
        fprintf(stderr, "%s: something was left behind, or misused: %s\n", name, left.first_misuse);
        failed++;
    }
    sim_reset();
    return failed;
}

int main(void)
{
    raffia_log_set_level(RAFFIA_LOG_OFF); /* refusals are the point */
    const struct sim_config hidden = {.cpu_inaccessible = true};
    const struct sim_config synchronous = {.synchronous = true};
    int failed = run("memory pinned for a GPU", NULL);
    failed += run("memory pinned for a GPU whose own is hidden", &hidden);
    failed += run("memory pinned for a device without streams", &synchronous);
    return failed ? 1 : 0;
}
