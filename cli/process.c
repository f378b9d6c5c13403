#include "cli/process.h"

#include "core/sys.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t page_table_bytes(void)
{
    static const char key[] = "\nVmPTE:";
    char text[4096];
    if (sys_read_text("/proc/self/status", text, sizeof text) < 0)
        return 0;
    const char *line = strstr(text, key);
    return line ? strtoull(line + sizeof key - 1, NULL, 10) * 1024 : 0;
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
