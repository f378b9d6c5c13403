/*
 * The pool of a device number, by the calls of raffia/umd.h, on this machine's memory.
 */
#ifndef CLI_BENCH_UMD_H
#define CLI_BENCH_UMD_H

#include "cli/bench_options.h"

#include <raffia/status.h>
#include <raffia/umd.h>

/* The host is the only device of its driver. */
#define BENCH_UMD_DEVICE 0

/* Builds the pool, with the settings of the process made to say what the options do. They and the
 * pool are given back by bench_umd_close(). */
raffia_status bench_umd_open(size_t bytes, const struct bench_options *options);
raffia_status bench_umd_close(void);

#endif
