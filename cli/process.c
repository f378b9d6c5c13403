#include "cli/process.h"

#include "core/memory.h"
#include "driver/host/procfile.h"

#include <sys/resource.h>

static uint64_t page_table_bytes(void)
{
    char *status = host_read_whole("/proc/self/status");
    uint64_t bytes = 0;
    if (status)
        host_find_kilobytes(status, "VmPTE:", &bytes);
    core_free(status);
    return bytes;
}

void process_facts_read(struct process_facts *facts)
{
    struct rusage usage;
    *facts = (struct process_facts){.page_table_bytes = page_table_bytes()};
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        facts->minor_faults = (uint64_t)usage.ru_minflt;
        facts->major_faults = (uint64_t)usage.ru_majflt;
    }
}
