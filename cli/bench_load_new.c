/* Measuring with a model that is made for it. */
#include "cli/bench_load_rounds.h"
#include "cli/input.h"
#include "cli/model_maker.h"
#include "core/memory.h"

#include <stdio.h>
#include <unistd.h>

/* Room for "/proc/self/fd/" and any int. */
#define FD_PATH_MAX 40

static raffia_status make_model(const char *path, size_t bytes)
{
    struct model_shape shape;
    raffia_status status = model_shape_make(bytes, RAFFIA_DTYPE_BF16, &shape);
    if (status)
        return status;
    struct cli_progress progress;
    cli_progress_start(&progress, "making a model", shape.bytes);
    struct model_order order = {.path = path, .shape = &shape, .replace = true};
    /* Synced, so that the disk has nothing left to do while the clock runs. */
    struct model_writer writer = {
        .dtype = shape.dtype, .seed = 1, .durable = true, .progress = &progress};
    status = model_make(&order, &writer);
    cli_progress_end(&progress);
    model_shape_free(&shape);
    return status;
}

/* The model made here has no name while it is measured: nothing of it can be left behind. */
raffia_status bench_load_measure_new(const char *directory, size_t bytes,
                                     const struct bench_options *plan, struct bench_report *report)
{
    char *path = core_asprintf("%s/raffia-bench-%d.safetensors", directory, (int)getpid());
    if (!path)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = bench_load_check_memory(bytes);
    if (!status)
        status = make_model(path, bytes);
    if (!status) {
        int fd;
        status = input_open(path, &fd);
        unlink(path);
        if (!status) {
            char nameless[FD_PATH_MAX];
            snprintf(nameless, sizeof nameless, "/proc/self/fd/%d", fd);
            status = bench_load_measure(nameless, plan, report);
            close(fd);
        }
    }
    core_free(path);
    return status;
}
