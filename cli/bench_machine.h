/*
 * The machine that was measured, as far as it tells.
 */
#ifndef CLI_BENCH_MACHINE_H
#define CLI_BENCH_MACHINE_H

#include <raffia/device.h>

#include <jansson.h>

struct bench_machine {
    char cpu[RAFFIA_DEVICE_NAME_MAX];
    unsigned cores; /* that this process may run on */
    uint64_t memory_bytes;
    char kernel[72];
    char hypervisor[16]; /* "KVM"; one not known by name signs as it does; "" on bare metal */
};

void bench_machine_read(struct bench_machine *machine);

/* "AMD EPYC, 2 cores, 24 GiB, Linux 6.18, under KVM". */
#define BENCH_MACHINE_TEXT_MAX 320
const char *bench_machine_text(const struct bench_machine *machine,
                               char buffer[static BENCH_MACHINE_TEXT_MAX]);

json_t *bench_machine_json(const struct bench_machine *machine);

#endif
