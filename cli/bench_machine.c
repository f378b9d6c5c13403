#include "cli/bench_machine.h"

#include "cli/format.h"
#include "cli/json.h"
#include "core/parallel.h"
#include "core/text.h"

#include <raffia/device.h>

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
#define SIGNATURE_BYTES (3 * sizeof(unsigned))

/* What hypervisors sign with is not what people call them. */
static const char *hypervisor_name(const char *signature)
{
    static const struct {
        const char *signature, *name;
    } known[] = {
        {"KVMKVMKVM", "KVM"},           {"Linux KVM Hv", "KVM"},   {"Microsoft Hv", "Hyper-V"},
        {"VMwareVMware", "VMware"},     {"XenVMMXenVMM", "Xen"},   {"TCGTCGTCGTCG", "QEMU"},
        {"VBoxVBoxVBox", "VirtualBox"}, {"bhyve bhyve ", "bhyve"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(signature, known[i].signature) == 0)
            return known[i].name;
    return signature;
}

/* A guest sees a bit that no real CPU sets, and then the hypervisor's signature. */
static void read_hypervisor(struct bench_machine *machine)
{
    const unsigned features_leaf = 1, hypervisor_bit = 1u << 31, signature_leaf = 0x40000000u;
    unsigned a, b, c, d;
    if (!__get_cpuid(features_leaf, &a, &b, &c, &d) || !(c & hypervisor_bit))
        return;
    __cpuid(signature_leaf, a, b, c, d);
    const unsigned words[] = {b, c, d};
    char signature[SIGNATURE_BYTES + 1] = "";
    memcpy(signature, words, SIGNATURE_BYTES);
    snprintf(machine->hypervisor, sizeof machine->hypervisor, "%s", hypervisor_name(signature));
}
#else
static void read_hypervisor(struct bench_machine *machine)
{
    (void)machine;
}
#endif

void bench_machine_read(struct bench_machine *machine)
{
    *machine = (struct bench_machine){.cores = core_cpu_count()};
    raffia_device_info host;
    snprintf(machine->cpu, sizeof machine->cpu, "%s",
             raffia_device_query("host", &host) ? "unknown CPU" : host.model);
    read_hypervisor(machine);
    struct sysinfo memory;
    if (sysinfo(&memory) == 0)
        machine->memory_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    struct utsname names;
    if (uname(&names) == 0)
        snprintf(machine->kernel, sizeof machine->kernel, "%.64s", names.release);
}

const char *bench_machine_text(const struct bench_machine *machine,
                               char buffer[static BENCH_MACHINE_TEXT_MAX])
{
    char memory[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, BENCH_MACHINE_TEXT_MAX, "%s, %u core%s, %s, Linux %s%s%s", machine->cpu,
             machine->cores, cli_plural(machine->cores),
             core_format_size(machine->memory_bytes, memory), machine->kernel,
             machine->hypervisor[0] ? ", under " : "", machine->hypervisor);
    return buffer;
}

json_t *bench_machine_json(const struct bench_machine *machine)
{
    json_t *object = json_object();
    cli_json_text(object, "cpu", machine->cpu);
    cli_json_count(object, "cores", machine->cores);
    cli_json_count(object, "memory_bytes", machine->memory_bytes);
    cli_json_text(object, "kernel", machine->kernel);
    cli_json_text(object, "hypervisor", machine->hypervisor[0] ? machine->hypervisor : NULL);
    return object;
}
