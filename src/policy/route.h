/*
 * Is this request worth huge pages, and which pool shall serve it? Pure decisions: nothing here
 * allocates, asks the system or remembers (SPEC B2, B3, B15).
 */
#ifndef POLICY_ROUTE_H
#define POLICY_ROUTE_H

#include "policy/parameters.h"

#include <raffia/hint.h>
#include <raffia/pages.h>

#include <stdbool.h>

struct policy_request {
    size_t bytes;
    size_t alignment;       /* a power of two */
    unsigned hints;         /* raffia_hint */
    raffia_pages_mode mode; /* in force for this request; DEFAULT is as good as OFF */
    int numa_node;          /* that it shall be near to; -1: any */
};

enum policy_route {
    POLICY_REGULAR,
    POLICY_HUGE,
};

/* Why a route was taken. */
enum policy_cause {
    POLICY_BY_MODE,      /* nobody asked for huge pages */
    POLICY_BY_HINT,      /* the caller knows */
    POLICY_BY_ALIGNMENT, /* that of a huge page was asked for */
    POLICY_BY_SIZE,      /* above the threshold */
    POLICY_BY_DEFAULT,   /* nothing speaks for huge pages */
};

struct policy_decision {
    enum policy_route route;
    enum policy_cause cause;
};

struct policy_decision policy_route(const struct policy_request *request,
                                    const struct policy_parameters *parameters);

/* "mode", "hint", ... for the log. */
const char *policy_cause_name(enum policy_cause cause);

/* A pool that could serve a request, as far as the choice is concerned. */
struct policy_candidate {
    int numa_node;  /* it is bound to; -1: none */
    bool used_last; /* by the thread that asks: its caches are warm */
    size_t free_bytes;
};

/*
 * The index of the pool to ask first, or RAFFIA_NONE if there are none: one on the request's NUMA
 * node before others, then the one used last by this thread, then the one with the most free. A
 * pool that is bound to no node is as good as one on another node.
 */
size_t policy_choose_pool(const struct policy_request *request,
                          const struct policy_candidate *candidates, size_t count);

#endif
