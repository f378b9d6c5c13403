/*
 * What this process may have, whatever the machine has: setrlimit(2), and "ulimit" of a shell.
 */
#ifndef DRIVER_HOST_PROCESS_LIMITS_H
#define DRIVER_HOST_PROCESS_LIMITS_H

#include "driver/host/procfile.h"

/* The soft limit in a line of /proc/self/limits; HOST_UNLIMITED if there is none. */
uint64_t host_process_limit(const char *key);

/* What memory counts towards. */
enum host_counted {
    HOST_COUNTED_ADDRESSES = 1u << 0, /* RLIMIT_AS: every mapping when it is made */
    HOST_COUNTED_DATA = 1u << 1,      /* RLIMIT_DATA: private memory that can be written to */
};

#define HOST_LIMIT_TEXT_MAX 160

/* Writes which limit `bytes` more would exceed, how high it is and how much of it is used; "" if
 * none would be. `counted`: flags of enum host_counted. Returns `text`. */
const char *host_process_limit_text(size_t bytes, unsigned counted,
                                    char text[static HOST_LIMIT_TEXT_MAX]);

#endif
