/*
 * "Fail the n-th call until none fails": runs a scenario again and again, each time with a later
 * call made to fail, until it runs through untouched.
 */
#ifndef SUPPORT_FAULT_LOOP_H
#define SUPPORT_FAULT_LOOP_H

#include <raffia/status.h>

/*
 * One run. It must leave the process as it was, whatever happens, and return the status of the
 * first call that failed. Asserting success inside is wrong; asserting that results are right when
 * a call did succeed is the point.
 */
typedef raffia_status (*fault_scenario)(void *context);

/*
 * Runs the scenario with the 1st, 2nd, 3rd, ... call failing. Asserts after each run that no
 * bookkeeping memory, no file descriptor and no mapping was left behind, and that a run whose fault
 * did not fire succeeded. A run may well succeed although its fault fired: falling back is allowed.
 * Returns the number of calls that were failed; fails the test beyond `bound` of them.
 */
long fault_loop(fault_scenario scenario, void *context, long bound);

#endif
