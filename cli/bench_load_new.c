/* Measuring with a model that is made for it. */
#include "cli/bench_load_rounds.h"
#include "cli/nameless_model.h"

#define SEED 1u

raffia_status bench_load_measure_new(const char *directory, size_t bytes,
                                     const struct bench_options *plan, struct bench_report *report)
{
    struct model_shape shape;
    struct nameless_model model;
    raffia_status status = bench_load_check_memory(bytes);
    if (!status)
        status = model_shape_make(bytes, RAFFIA_DTYPE_BF16, &shape);
    if (status)
        return status;
    status = nameless_model_make(directory, &shape, SEED, &model);
    model_shape_free(&shape);
    if (status)
        return status;
    status = bench_load_measure(model.path, plan, report);
    nameless_model_close(&model);
    return status;
}
