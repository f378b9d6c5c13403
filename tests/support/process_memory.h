/* What the kernel says of this process's memory. */
#ifndef SUPPORT_PROCESS_MEMORY_H
#define SUPPORT_PROCESS_MEMORY_H

#include <stddef.h>

/* Bytes of a line of /proc/self/status that is in kB, as "VmSize"; fails the test if there is none.
 */
size_t process_memory(const char *line);

#endif
