/*
 * Writes one safetensors file whose tensors hold the pattern.
 */
#ifndef CLI_MODEL_FILE_H
#define CLI_MODEL_FILE_H

#include "cli/model_shape.h"
#include "cli/progress.h"

#include <raffia/status.h>

struct model_writer {
    raffia_dtype dtype;
    uint64_t seed;
    bool durable;                  /* wait for the disk */
    struct cli_progress *progress; /* may be NULL */
    uint64_t bytes_done;           /* over all files of the model */
};

/* The file appears whole or not at all. */
raffia_status model_file_write(struct model_writer *writer, const char *path,
                               const struct model_tensor *tensors, size_t count);

#endif
