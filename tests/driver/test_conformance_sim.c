/* The simulated device passes what every driver must pass, as a GPU and as a host would be. */
#include "driver/conformance.h"
#include "driver/sim/sim.h"

#include <stdio.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static int run(const char *name, const struct sim_config *config)
{
    if (sim_configure(0, config)) {
        fprintf(stderr, "%s: %s\n", name, raffia_last_error());
        return 1;
    }
    const struct conformance subject = {.device = {&sim_driver, 0}, .has_fault_points = true};
    int failed = conformance_run(name, &subject);
    if (!sim_is_idle()) {
        struct sim_usage usage;
        sim_query(0, &usage);
        fprintf(stderr, "%s: something was left behind, or misused: %s\n", name,
                usage.first_misuse);
        failed++;
    }
    sim_reset();
    return failed;
}

int main(void)
{
    const struct sim_config host = {
        .capacity_bytes = 4 * GIB,
        .page_count = 4,
        .pages = {{RAFFIA_PAGE_HUGETLB, GIB},
                  {RAFFIA_PAGE_HUGETLB, 2 * MIB},
                  {RAFFIA_PAGE_TRANSPARENT, 2 * MIB},
                  {RAFFIA_PAGE_REGULAR, 4 * KIB}},
        .limits = {{RAFFIA_PAGE_HUGETLB, 2 * MIB, 2 * MIB, RAFFIA_REASON_POOL_EMPTY}},
        .synchronous = true,
        .commits_at_map = true,
    };
    const struct sim_config silent = {
        .page_count = 2,
        .pages = {{RAFFIA_PAGE_DEVICE, 64 * KIB}, {RAFFIA_PAGE_REGULAR, 4 * KIB}},
        .hides_page_sizes = true,
    };
    const struct sim_config hidden = {.cpu_inaccessible = true};
    int failed = run("a simulated GPU", NULL);
    failed += run("a simulated GPU whose memory the CPU cannot touch", &hidden);
    failed += run("a simulated host", &host);
    failed += run("a simulated GPU that does not tell its page sizes", &silent);
    return failed ? 1 : 0;
}
