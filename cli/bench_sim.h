/*
 * The simulated device as a place for pools whose memory nobody touches.
 *
 * A pool's bookkeeping does not know whose memory it manages, so what it costs can be measured over
 * ranges that this machine could not fill: the device is synchronous, starts no thread, and its
 * pages hold memory only where they are touched. Driver calls are not those of a real device: rows
 * that have many in them mean nothing here.
 */
#ifndef CLI_BENCH_SIM_H
#define CLI_BENCH_SIM_H

#include <raffia/base.h>
#include <raffia/status.h>

#define BENCH_SIM_DEVICE "sim:0"

/* True for the names of simulated devices. */
bool bench_sim_is(const char *device);

/* Gives the device BENCH_SIM_DEVICE room for `bytes`, in pages of `page_size` (0 = 2 MiB) and the
 * smaller ones. Before any pool is made there. */
raffia_status bench_sim_prepare(size_t bytes, size_t page_size);

#endif
