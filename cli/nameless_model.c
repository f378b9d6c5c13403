#include "cli/nameless_model.h"

#include "cli/input.h"
#include "cli/model_maker.h"
#include "core/memory.h"

#include <stdio.h>
#include <unistd.h>

static raffia_status write_model(const char *path, const struct model_shape *shape, uint64_t seed)
{
    struct cli_progress progress;
    cli_progress_start(&progress, "making a model", shape->bytes);
    struct model_order order = {.path = path, .shape = shape, .replace = true};
    /* Synced, so that the disk has nothing left to do while the clock runs. */
    struct model_writer writer = {
        .dtype = shape->dtype, .seed = seed, .durable = true, .progress = &progress};
    raffia_status status = model_make(&order, &writer);
    cli_progress_end(&progress);
    return status;
}

raffia_status nameless_model_make(const char *directory, const struct model_shape *shape,
                                  uint64_t seed, struct nameless_model *model)
{
    char *path = core_asprintf("%s/raffia-bench-%d-%llu.safetensors", directory, (int)getpid(),
                               (unsigned long long)seed);
    if (!path)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = write_model(path, shape, seed);
    if (!status) {
        status = input_open(path, &model->fd);
        unlink(path);
    }
    if (!status)
        snprintf(model->path, sizeof model->path, "/proc/self/fd/%d", model->fd);
    core_free(path);
    return status;
}

void nameless_model_close(struct nameless_model *model)
{
    close(model->fd);
}
