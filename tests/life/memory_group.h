/*
 * A control group with a limit of memory, of either version, for children to live in.
 */
#ifndef LIFE_MEMORY_GROUP_H
#define LIFE_MEMORY_GROUP_H

#include <stdbool.h>
#include <stddef.h>

/* False if the machine does not let us. One at a time. */
bool memory_group_make(void);

/* Changes the limit, swap included. */
bool memory_group_limit(size_t bytes);

/* Moves the calling process into the group. False if it cannot. */
bool memory_group_enter(void);

/* Its processes have ended. */
void memory_group_remove(void);

#endif
