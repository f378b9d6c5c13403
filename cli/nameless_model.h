/*
 * Models that are made for a benchmark. They lose their name as soon as they are complete: nothing
 * of them can be left behind.
 */
#ifndef CLI_NAMELESS_MODEL_H
#define CLI_NAMELESS_MODEL_H

#include "cli/model_shape.h"

#include <raffia/status.h>

/* Room for "/proc/self/fd/" and any int. */
#define NAMELESS_PATH_MAX 40

struct nameless_model {
    int fd;
    char path[NAMELESS_PATH_MAX]; /* leads to it while `fd` is open */
};

/* Makes a model of that shape in the directory, one file whose content follows from the seed. */
raffia_status nameless_model_make(const char *directory, const struct model_shape *shape,
                                  uint64_t seed, struct nameless_model *model);

/* Gives its bytes back to the disk. */
void nameless_model_close(struct nameless_model *model);

#endif
