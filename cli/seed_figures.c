#include "cli/seed_figures.h"

const struct seed_figure *seed_figure(enum seed_headline headline)
{
    static const struct seed_figure figures[SEED_HEADLINES] = {
        [SEED_LOAD] = {"load", "loading a model file of 6.8 GB", 41.2, 18.7, "s", 2.2},
        [SEED_ALLOCATION] = {"allocation", "one allocation of 1 GB", 38, 4, "ms", 8.5},
        [SEED_TLB] = {"tlb", "TLB misses of a load", 12e6, 80e3, "misses", 150},
        [SEED_STEP] = {"first step", "the first training step", 32, 29, "ms", 1.09},
    };
    return &figures[headline];
}
