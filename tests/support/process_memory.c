#include "support/process_memory.h"

#include "support/cmocka.h"

#include <stdio.h>
#include <string.h>

size_t process_memory(const char *line)
{
    FILE *status = fopen("/proc/self/status", "r");
    assert_non_null(status);
    const size_t length = strlen(line);
    char text[256];
    size_t kb;
    bool found = false;
    while (!found && fgets(text, sizeof text, status))
        found = strncmp(text, line, length) == 0 && sscanf(text + length, ": %zu kB", &kb) == 1;
    fclose(status);
    if (!found)
        fail_msg("/proc/self/status has no line %s", line);
    return kb * 1024;
}
