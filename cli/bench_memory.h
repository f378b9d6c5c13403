/*
 * Memory as a program has it that knows nothing of pools, and how much of it a benchmark may take.
 */
#ifndef CLI_BENCH_MEMORY_H
#define CLI_BENCH_MEMORY_H

#include <raffia/base.h>
#include <raffia/status.h>

/* New anonymous memory in pages of the machine's base size, none of them there yet. */
raffia_status bench_memory_map(size_t bytes, unsigned char **memory_p);
void bench_memory_unmap(unsigned char *memory, size_t bytes);

/* Writes one byte to each base page; each thread takes its share. CANCELLED if the user interrupted
 * the command. */
raffia_status bench_memory_touch(unsigned char *memory, size_t bytes, unsigned threads);

/*
 * Touches as much memory as what follows will take, and frees it. A virtual machine's host provides
 * memory when it is touched first, and takes free memory back after a while (page reporting): what
 * that costs is the host's doing and tells nothing about pages.
 */
void bench_memory_warm(size_t bytes, bool huge);

/* What may be taken now. */
raffia_status bench_memory_free(size_t *bytes_p);

/* Fails, with a sentence that names `what` and the option that asks for less, unless `bytes` are
 * free. */
raffia_status bench_memory_check(size_t bytes, const char *what, const char *option);

/* The largest multiple of 2 MiB, at least one, that is at most `bytes` and 1/`share` of the free
 * memory. */
raffia_status bench_memory_choose(size_t bytes, size_t share, size_t *bytes_p);

#endif
