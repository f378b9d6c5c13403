/*
 * Hugetlb pages of 2 MiB for a test, taken from the real machine and given back.
 */
#ifndef TESTS_DRIVER_HUGETLB_PAGES_H
#define TESTS_DRIVER_HUGETLB_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes the machine's pool exactly `pages` large. False, with nothing changed, if the process may
 * not, memory is too fragmented, or somebody who is no test uses the pool, which is told. Other
 * tests wait for their turn (hugetlb_turn.h) until hugetlb_pages_restore().
 */
bool hugetlb_pages_set(size_t pages);

/* Puts the pool back to what it was. Does nothing if nothing was changed. */
void hugetlb_pages_restore(void);

/* Pages free and not reserved. */
size_t hugetlb_pages_available(void);

/* Makes a version 2 control group that allows `limit` bytes in the file hugetlb.2MB.<suffix>, and
 * writes its cgroup.procs into `procs`. False if the machine does not let us. */
bool hugetlb_group_make(const char *suffix, size_t limit, char procs[static 256]);
void hugetlb_group_remove(void);

#endif
