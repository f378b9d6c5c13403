#include "cli/bench_machine.h"

#include "cli/json.h"
#include "core/parallel.h"
#include "core/sys.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The first CPU's line of /proc/cpuinfo fits into this. */
#define CPUINFO_BYTES 4096

static void read_cpu(struct bench_machine *machine)
{
    static const char key[] = "\nmodel name\t: ";
    char text[CPUINFO_BYTES];
    snprintf(machine->cpu, sizeof machine->cpu, "unknown CPU");
    if (sys_read_text("/proc/cpuinfo", text, sizeof text) < 0)
        return;
    const char *line = strstr(text, key);
    if (!line)
        return;
    line += sizeof key - 1;
    snprintf(machine->cpu, sizeof machine->cpu, "%.*s", (int)strcspn(line, "\n"), line);
}

#if defined(__x86_64__)
/* A guest sees a bit that no real CPU sets, and then the hypervisor's signature. */
static void read_hypervisor(char *name)
{
    const unsigned features_leaf = 1, hypervisor_bit = 1u << 31, signature_leaf = 0x40000000u;
    unsigned a, b, c, d;
    if (!__get_cpuid(features_leaf, &a, &b, &c, &d) || !(c & hypervisor_bit))
        return;
    __cpuid(signature_leaf, a, b, c, d);
    memcpy(name, &b, sizeof b);
    memcpy(name + sizeof b, &c, sizeof c);
    memcpy(name + sizeof b + sizeof c, &d, sizeof d);
}
#else
static void read_hypervisor(char *name)
{
    name[0] = '\0';
}
#endif

void bench_machine_read(struct bench_machine *machine)
{
    *machine = (struct bench_machine){.cores = core_cpu_count()};
    read_cpu(machine);
    read_hypervisor(machine->hypervisor);
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
             machine->cores, machine->cores == 1 ? "" : "s",
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
