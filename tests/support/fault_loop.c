#include "support/fault_loop.h"

#include "core/fault.h"
#include "core/memory.h"
#include "support/cmocka.h"
#include "support/process_memory.h"

#include <dirent.h>

static long open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    long count = 0;
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* The heap and thread stacks the C library keeps may grow by this much without being a leak. */
#define MAPPED_SLACK_BYTES ((size_t)192 << 20)

long fault_loop(fault_scenario scenario, void *context, long bound)
{
    /* Once without a fault: first-use caches (locale, thread stacks) are filled, and it must work.
     */
    raffia_status status = scenario(context);
    if (status)
        fail_msg("the scenario fails without a fault: %s", raffia_last_error());
    long memory = core_memory_live(), descriptors = open_descriptors();
    /* Mapped; the C library's own arenas make the number of mappings useless. */
    const size_t mapped = process_memory("VmSize");

    for (long n = 1;; n++) {
        if (n > bound)
            fail_msg("more than %ld calls: the scenario does not end", bound);
        core_fault_arm(n);
        status = scenario(context);
        const char *failed = core_fault_disarm();
        if (core_memory_live() != memory)
            fail_msg("call %ld (%s) failed: %ld blocks leaked", n, failed ? failed : "none",
                     core_memory_live() - memory);
        if (open_descriptors() != descriptors)
            fail_msg("call %ld (%s) failed: %ld descriptors leaked", n, failed ? failed : "none",
                     open_descriptors() - descriptors);
        if (process_memory("VmSize") > mapped + MAPPED_SLACK_BYTES)
            fail_msg("call %ld (%s) failed: %zu bytes of mappings leaked", n,
                     failed ? failed : "none", process_memory("VmSize") - mapped);
        if (!failed) {
            if (status)
                fail_msg("no fault, yet the scenario failed: %s", raffia_last_error());
            return n - 1;
        }
    }
}
