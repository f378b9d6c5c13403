/*
 * Is this request worth huge pages? A pure decision: nothing here allocates, asks the system or
 * remembers (SPEC B2, B3, B15).
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

/*
 * What the rule comes to for requests without hints, worked out beforehand for those who are asked
 * often. Nothing exceeds the limits of a mode that wants no huge pages.
 */
struct policy_limits {
    size_t bytes_above;    /* larger requests use huge pages */
    size_t alignment_from; /* and those aligned to so much or more */
};

struct policy_limits policy_limits_for(raffia_pages_mode mode,
                                       const struct policy_parameters *parameters);

static inline bool policy_exceeds(const struct policy_limits *limits, size_t bytes,
                                  size_t alignment)
{
    return alignment >= limits->alignment_from || bytes > limits->bytes_above;
}

/* "mode", "hint", ... for the log. */
const char *policy_cause_name(enum policy_cause cause);

#endif
