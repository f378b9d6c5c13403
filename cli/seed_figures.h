/*
 * What the author of the pool's first description measured, on another machine, years ago: to set
 * beside our own numbers, never in place of them.
 */
#ifndef CLI_SEED_FIGURES_H
#define CLI_SEED_FIGURES_H

#include <raffia/base.h>

/* Says of a number that it is one of these. */
#define SEED_LABEL "seed figure, not measured here"

enum seed_headline {
    SEED_LOAD,
    SEED_ALLOCATION,
    SEED_TLB,
    SEED_STEP,
    SEED_HEADLINES,
};

struct seed_figure {
    const char *name;     /* "load" */
    const char *what;     /* "loading a model file of 6.8 GB" */
    double before, after; /* small pages, the pool */
    const char *unit;     /* of both */
    double ratio;         /* as its author rounded it */
};

const struct seed_figure *seed_figure(enum seed_headline headline);

#endif
