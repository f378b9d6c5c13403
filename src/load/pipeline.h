/*
 * The pipeline: reader threads that take windows one after another, and the caller who waits,
 * reports progress and gives up when told to or when nothing comes any more.
 */
#ifndef LOAD_PIPELINE_H
#define LOAD_PIPELINE_H

#include "copy/staging.h"
#include "load/model.h"

/*
 * Reads every window of the model's plan into its destination and fills in the report's counters.
 * `ring` is NULL where the CPU writes to the destination; else it is closed here or, in the one
 * case below, by the last reader. `started` is when the load began, as core_clock_seconds() says.
 * On failure no thread is left and the model is still the caller's, but for one case: after
 * TIMED_OUT with memory of the loader's own *model_p is NULL, and the last reader to come back from
 * its read frees the model.
 */
raffia_status load_pipeline_run(raffia_model **model_p, const raffia_load_options *options,
                                struct staging *ring, double started);

#endif
