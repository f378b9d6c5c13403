/*
 * What this process has cost the kernel so far.
 */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <raffia/base.h>

struct process_facts {
    uint64_t minor_faults;     /* pages got without reading a disk */
    uint64_t major_faults;     /* pages that had to be read */
    uint64_t page_table_bytes; /* VmPTE: tables that translate this process's addresses */
};

/* What cannot be read is 0. */
void process_facts_read(struct process_facts *facts);

#endif
