/*
 * Files that are not in the page cache, and the fastest plain way to read them: what a cold load is
 * measured against.
 */
#ifndef CLI_COLD_READ_H
#define CLI_COLD_READ_H

#include "cli/model_summary.h"

/* Asks the kernel to drop what it has cached of the files. Pages in use elsewhere stay. */
raffia_status cold_evict(const struct model_summary *files);

/*
 * Reads all bytes of all files with O_DIRECT, several threads each into a buffer of its own over
 * and over, and nothing else. UNSUPPORTED where the file system refuses.
 */
raffia_status cold_read(const struct model_summary *files, unsigned threads, double *seconds_p);

#endif
