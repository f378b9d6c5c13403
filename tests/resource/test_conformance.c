/* Every resource passes the suite on the host, and on simulated devices whose memory the CPU can
 * and cannot touch. */
#include "driver/sim/sim.h"
#include "resource/conformance.h"

/* Each stays as it is while blocks of the initial resource, which lives on, are there. */
static void set_up_seen(void)
{
    assert_ok(sim_configure(0, &(struct sim_config){.capacity_bytes = 8 * GIB}));
}

static void set_up_hidden(void)
{
    assert_ok(sim_configure(
        1, &(struct sim_config){.capacity_bytes = 8 * GIB, .cpu_inaccessible = true}));
}

static const char *misuse_of(int device)
{
    static struct sim_usage usage;
    sim_query(device, &usage);
    return usage.first_misuse;
}

static const char *misuse_of_seen(void)
{
    return misuse_of(0);
}

static const char *misuse_of_hidden(void)
{
    return misuse_of(1);
}

int main(void)
{
    static const struct conformance_device devices[] = {
        {.name = "host"},
        {.name = "sim:0", .set_up = set_up_seen, .misuse = misuse_of_seen},
        {.name = "sim:1", .hidden = true, .set_up = set_up_hidden, .misuse = misuse_of_hidden},
    };
    return conformance_run("every resource", devices, sizeof devices / sizeof *devices);
}
