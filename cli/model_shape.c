#include "cli/model_shape.h"

#include "core/memory.h"
#include "load/dtype.h"

#include <assert.h>

/* Layers take this share of the bytes, in percent; embedding and head take the rest. */
#define LAYER_SHARE 85

/* The hidden size doubles until a model of the wanted bytes has no more layers than this. */
#define LAYERS_WANTED 32
#define HIDDEN_MIN    16u
#define HIDDEN_MAX    8192u

/* Attention keys and values have a quarter of the hidden size, as with grouped queries; the
 * feed-forward part has three and a half times. In quarters of the hidden size: */
#define KEY_VALUE_QUARTERS    1
#define FEED_FORWARD_QUARTERS 14

#define TENSORS_PER_LAYER   9
#define TENSORS_BESIDE_THEM 3

/* Bytes of one element: every dtype here has whole ones. */
static uint64_t element_bytes(raffia_dtype dtype)
{
    assert(raffia_dtype_bits(dtype) % CATALOG_BYTE_BITS == 0);
    return raffia_dtype_bits(dtype) / CATALOG_BYTE_BITS;
}

static uint64_t layer_elements(uint64_t hidden)
{
    uint64_t quarter = hidden / 4;
    uint64_t attention = 2 * hidden * hidden + 2 * hidden * quarter * KEY_VALUE_QUARTERS;
    uint64_t feed_forward = 3 * hidden * quarter * FEED_FORWARD_QUARTERS;
    return attention + feed_forward + 2 * hidden;
}

static void choose_dimensions(uint64_t bytes, struct model_shape *shape)
{
    uint64_t elements = bytes / element_bytes(shape->dtype);
    uint64_t in_layers = elements / 100 * LAYER_SHARE;
    shape->hidden = HIDDEN_MIN;
    while (shape->hidden < HIDDEN_MAX && in_layers / layer_elements(shape->hidden) > LAYERS_WANTED)
        shape->hidden *= 2;
    shape->layers = in_layers / layer_elements(shape->hidden);
    uint64_t rest =
        elements - shape->layers * layer_elements(shape->hidden) - shape->hidden; /* final norm */
    shape->vocabulary = rest / (2 * shape->hidden);
}

/* Adds a tensor; rank 1 if `columns` is 0. `shape->count` counts those that have a name. */
static raffia_status add(struct model_shape *shape, char *name, uint64_t rows, uint64_t columns)
{
    if (!name)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    struct model_tensor *tensor = &shape->tensors[shape->count++];
    *tensor = (struct model_tensor){
        .name = name,
        .rank = columns ? 2 : 1,
        .shape = {rows, columns},
        .bytes = rows * (columns ? columns : 1) * element_bytes(shape->dtype),
    };
    shape->bytes += tensor->bytes;
    return RAFFIA_OK;
}

static raffia_status add_layer(struct model_shape *shape, uint64_t layer)
{
    const uint64_t hidden = shape->hidden, quarter = hidden / 4;
    const uint64_t narrow = quarter * KEY_VALUE_QUARTERS, wide = quarter * FEED_FORWARD_QUARTERS;
    const struct {
        const char *name;
        uint64_t rows, columns;
    } parts[TENSORS_PER_LAYER] = {
        {"input_layernorm", hidden, 0},       {"self_attn.q_proj", hidden, hidden},
        {"self_attn.k_proj", narrow, hidden}, {"self_attn.v_proj", narrow, hidden},
        {"self_attn.o_proj", hidden, hidden}, {"post_attention_layernorm", hidden, 0},
        {"mlp.gate_proj", wide, hidden},      {"mlp.up_proj", wide, hidden},
        {"mlp.down_proj", hidden, wide},
    };
    for (int i = 0; i < TENSORS_PER_LAYER; i++) {
        char *name =
            core_asprintf("model.layers.%llu.%s.weight", (unsigned long long)layer, parts[i].name);
        raffia_status status = add(shape, name, parts[i].rows, parts[i].columns);
        if (status)
            return status;
    }
    return RAFFIA_OK;
}

static raffia_status add_all(struct model_shape *shape)
{
    raffia_status status =
        add(shape, core_strdup("model.embed_tokens.weight"), shape->vocabulary, shape->hidden);
    for (uint64_t layer = 0; !status && layer < shape->layers; layer++)
        status = add_layer(shape, layer);
    if (!status)
        status = add(shape, core_strdup("model.norm.weight"), shape->hidden, 0);
    if (!status)
        status = add(shape, core_strdup("lm_head.weight"), shape->vocabulary, shape->hidden);
    return status;
}

raffia_status model_shape_make(uint64_t bytes, raffia_dtype dtype, struct model_shape *shape)
{
    assert(bytes >= MODEL_SHAPE_BYTES_MIN && bytes <= MODEL_SHAPE_BYTES_MAX);
    struct model_shape made = {.dtype = dtype};
    choose_dimensions(bytes, &made);
    size_t count = made.layers * TENSORS_PER_LAYER + TENSORS_BESIDE_THEM;
    made.tensors = core_calloc(count, sizeof *made.tensors);
    if (!made.tensors)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = add_all(&made);
    if (status) {
        model_shape_free(&made);
        return status;
    }
    assert(made.count == count && made.bytes <= bytes);
    *shape = made;
    return RAFFIA_OK;
}

void model_shape_free(struct model_shape *shape)
{
    for (size_t i = 0; i < shape->count; i++)
        core_free(shape->tensors[i].name);
    core_free(shape->tensors);
    *shape = (struct model_shape){0};
}
