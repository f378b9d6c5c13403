/*
 * Fault injection: "fail the n-th call".
 *
 * Every place that asks the outside world for something (memory, a system call, a driver call) asks
 * core_fault() first. A test arms it with n = 1, 2, 3, ... and repeats its scenario until it runs
 * through without the fault having fired; so each call has been seen to fail once. Release builds
 * compile all of it to nothing.
 */
#ifndef CORE_FAULT_H
#define CORE_FAULT_H

#include <stdbool.h>

#ifdef RAFFIA_FAULTS

/* True if this call must pretend to fail. `what` names it for the test's report. */
bool core_fault(const char *what);

/* Makes the n-th call of core_fault() from now on return true, once; n >= 1. */
void core_fault_arm(long n);

/* Ends the injection. Returns the name of the call that was failed, or NULL if none was reached. */
const char *core_fault_disarm(void);

#else

static inline bool core_fault(const char *what)
{
    (void)what;
    return false;
}

#endif

#endif
