/*
 * Processes that may die: what a test of life and death does to a process it does to a child.
 */
#ifndef LIFE_CHILD_H
#define LIFE_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns the exit code. Runs with default signal handlers: those of cmocka belong to the parent.
 */
typedef int (*child_body)(void *context);

/* Forks a child that runs `body`, and ends it by SIGALRM if it takes too long (a deadlock does). */
pid_t child_start(child_body body, void *context);

/* Its exit code, or minus the signal that ended it. */
int child_wait(pid_t child);

int child_run(child_body body, void *context);

/* Becomes this very program again, with one argument. Returns only if it cannot. */
int child_become(const char *argument);

/* Says on standard error what was expected in vain, with the last error; returns 1. */
int child_complain(const char *file, int line, const char *expected);

/* In a child or a thread, where cmocka's assertions would jump into the wrong stack. */
#define EXPECT(what)                                                                               \
    do {                                                                                           \
        if (!(what))                                                                               \
            return child_complain(__FILE__, __LINE__, #what);                                      \
    } while (0)

#endif
