/*
 * A space beside a slow obvious model of it: an array with an entry for each granule. A step is
 * done to both, and every answer of the space is compared with the model's. Shared by the property
 * test and the fuzz target. On the first difference it says what differs on standard error and
 * aborts.
 */
#ifndef SUPPORT_SPACE_MODEL_H
#define SUPPORT_SPACE_MODEL_H

#include "space/space.h"

struct space_model;

enum space_model_verb {
    SPACE_MODEL_ADD = 0,
    SPACE_MODEL_REMOVE,
    SPACE_MODEL_ALLOCATE,
    SPACE_MODEL_FREE,
    SPACE_MODEL_FREE_STALE, /* a handle that was freed before, or was never one */
    SPACE_MODEL_RESIZE,
    SPACE_MODEL_SET_STATE,
    SPACE_MODEL_FIND,
    SPACE_MODEL_CONTAINING,
    SPACE_MODEL_IS_FREE,
    SPACE_MODEL_VERBS,
};

/* Any numbers make a step: what they mean is found modulo what there is. Most offsets and sizes
 * they stand for are whole granules within the range, some are not. */
struct space_model_step {
    enum space_model_verb verb; /* below SPACE_MODEL_VERBS */
    uint32_t a, b, c;
};

/* `granules` is the length of the range. All of it is absent. NULL without memory. */
struct space_model *space_model_create(size_t granule, uint32_t granules);
void space_model_destroy(struct space_model *model);

/* From now on any step may fail with OUT_OF_HOST_MEMORY, if it changes nothing; or must not. */
void space_model_allow_faults(struct space_model *model, bool allowed);

/* Does one step, compares its outcome and calls space_check(). Returns the outcome. */
raffia_status space_model_run(struct space_model *model, const struct space_model_step *step);

/* Compares all of it: each block and stretch, the counters, each granule's answer to the look-ups.
 */
void space_model_compare(struct space_model *model);

/* How many blocks there are now. */
uint32_t space_model_blocks(const struct space_model *model);

/* Frees every block, one step each. */
void space_model_free_all(struct space_model *model);

#endif
