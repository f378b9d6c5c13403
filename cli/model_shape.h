/*
 * The tensors of a language model of a wanted size: an embedding, layers of attention and
 * feed-forward projections with their norms, and an output head, named as such models name them.
 */
#ifndef CLI_MODEL_SHAPE_H
#define CLI_MODEL_SHAPE_H

#include <raffia/dtype.h>
#include <raffia/status.h>

/* Sizes that a shape can be made for. */
#define MODEL_SHAPE_BYTES_MIN ((size_t)64 << 10)
#define MODEL_SHAPE_BYTES_MAX ((size_t)4 << 40)

struct model_tensor {
    char *name;
    unsigned rank; /* 1 or 2 */
    uint64_t shape[2];
    uint64_t bytes;
};

struct model_shape {
    raffia_dtype dtype;
    uint64_t hidden;
    uint64_t layers;
    uint64_t vocabulary;
    uint64_t bytes; /* of all tensors */
    struct model_tensor *tensors;
    size_t count;
};

/*
 * A shape of at most `bytes`, and less by under two rows of the hidden size: 8 KiB for 1 GiB of
 * BF16. The dtype's elements are whole bytes.
 */
raffia_status model_shape_make(uint64_t bytes, raffia_dtype dtype, struct model_shape *shape);

void model_shape_free(struct model_shape *shape);

#endif
