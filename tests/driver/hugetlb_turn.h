/*
 * Turns at the machine's pool of 2 MiB pages, between the tests of all runs on the machine.
 *
 * A test that this is linked into takes pages where there are some: it waits before its main()
 * until nobody counts them, and shares the pool with others of its kind until it ends. One that
 * sets pages aside and counts them wants the pool for itself meanwhile. The tests of the command do
 * so for as long as they run (tests/cli/conftest.py).
 */
#ifndef TESTS_DRIVER_HUGETLB_TURN_H
#define TESTS_DRIVER_HUGETLB_TURN_H

#include <stdbool.h>

/* Waits until no other test uses the pool, and keeps them all waiting. False, with nothing changed,
 * if the process may not: then it may not change the pool either. */
bool hugetlb_turn_alone(void);

/* Shares the pool again. */
void hugetlb_turn_share(void);

#endif
