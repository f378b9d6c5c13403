/* The host's memory passes what every driver must pass. */
#include "driver/conformance.h"
#include "driver/host/host.h"

int main(void)
{
    const struct conformance subject = {.device = {&host_driver, 0}, .has_fault_points = true};
    return conformance_run("host", &subject) ? 1 : 0;
}
