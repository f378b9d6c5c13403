/* Names, patterns and slices. */
#include "load/select.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "load/catalog_show.h"
#include "load/dtype.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#define NONE SIZE_MAX

static bool is_pattern(const char *name)
{
    return strpbrk(name, "*?[\\") != NULL;
}

static size_t find_exact(const struct catalog *catalog, const char *name)
{
    size_t low = 0, high = catalog->tensor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, catalog->tensors[middle].name);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NONE;
}

/* The first tensor from index `from` on that goes by `name`. Plain names are found by halving, so
 * that a list of all names of a large model stays cheap. */
static size_t next_match(const struct catalog *catalog, const char *name, size_t from)
{
    if (!is_pattern(name)) {
        size_t found = find_exact(catalog, name);
        return found >= from ? found : NONE;
    }
    for (size_t i = from; i < catalog->tensor_count; i++)
        if (strcmp(name, catalog->tensors[i].name) == 0 ||
            fnmatch(name, catalog->tensors[i].name, 0) == 0)
            return i;
    return NONE;
}

static raffia_status matches_nothing(const char *what, const char *name)
{
    return core_error(RAFFIA_ERROR_NOT_FOUND, "%s '%s' matches no tensor%s", what,
                      catalog_show(name).text,
                      is_pattern(name) ? "" : "; names are compared letter by letter");
}

/* What is known of each tensor of the catalog while choosing. */
struct choice {
    bool chosen;
    const raffia_tensor_slice *slice; /* NULL: the whole tensor */
};

static raffia_status choose(const struct catalog *catalog, const raffia_load_options *options,
                            struct choice *choices)
{
    for (size_t i = 0; options->name_count == 0 && i < catalog->tensor_count; i++)
        choices[i].chosen = true;
    for (size_t n = 0; n < options->name_count; n++) {
        const char *name = options->names[n];
        size_t i = next_match(catalog, name, 0);
        if (i == NONE)
            return matches_nothing("name", name);
        for (; i != NONE; i = next_match(catalog, name, i + 1))
            choices[i].chosen = true;
    }
    for (size_t s = 0; s < options->slice_count; s++) {
        const raffia_tensor_slice *slice = &options->slices[s];
        bool matched = false;
        for (size_t i = next_match(catalog, slice->name, 0); i != NONE;
             i = next_match(catalog, slice->name, i + 1)) {
            if (!choices[i].chosen)
                continue;
            matched = true;
            if (!choices[i].slice)
                choices[i].slice = slice;
        }
        if (!matched)
            return matches_nothing("slice", slice->name);
    }
    return RAFFIA_OK;
}

static raffia_status check_slice(const struct catalog_tensor *tensor,
                                 const raffia_tensor_slice *slice)
{
    if (slice->dimension >= tensor->rank)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "tensor '%s': the slice cuts dimension %u, but the tensor has %u",
                          catalog_show(tensor->name).text, slice->dimension, tensor->rank);
    uint64_t extent = tensor->shape[slice->dimension];
    if (slice->begin > slice->end || slice->end > extent)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "tensor '%s': the slice %" PRIu64 "..%" PRIu64
                          " of dimension %u is not within 0..%" PRIu64,
                          catalog_show(tensor->name).text, slice->begin, slice->end,
                          slice->dimension, extent);
    return RAFFIA_OK;
}

/* Products of the extents on either side of the dimension that is cut. The tensor is not empty, so
 * neither exceeds the number of its elements. */
static uint64_t extents_product(const uint64_t *shape, unsigned from, unsigned to)
{
    uint64_t product = 1;
    for (unsigned i = from; i < to; i++)
        product *= shape[i];
    return product;
}

static raffia_status cut(const struct catalog_tensor *tensor, const raffia_tensor_slice *slice,
                         struct load_selected *selected)
{
    unsigned dimension = slice->dimension;
    uint64_t extent = tensor->shape[dimension];
    uint64_t outer = extents_product(tensor->shape, 0, dimension);
    uint64_t inner = extents_product(tensor->shape, dimension + 1, tensor->rank);
    uint64_t inner_bits, row_bits;
    if (__builtin_mul_overflow(inner, raffia_dtype_bits(tensor->dtype), &inner_bits) ||
        __builtin_mul_overflow(inner_bits, extent, &row_bits))
        return core_error(RAFFIA_ERROR_OVERFLOW, "tensor '%s': its size in bits exceeds 64 bits",
                          catalog_show(tensor->name).text);
    uint64_t begin_bits = slice->begin * inner_bits, end_bits = slice->end * inner_bits;
    if (begin_bits % CATALOG_BYTE_BITS || end_bits % CATALOG_BYTE_BITS ||
        (outer > 1 && row_bits % CATALOG_BYTE_BITS))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "tensor '%s': the slice %" PRIu64 "..%" PRIu64
                          " of dimension %u does not begin and end at whole bytes; elements of "
                          "type %s have %u bits",
                          catalog_show(tensor->name).text, slice->begin, slice->end, dimension,
                          raffia_dtype_name(tensor->dtype), raffia_dtype_bits(tensor->dtype));
    selected->piece_bytes = (end_bits - begin_bits) / CATALOG_BYTE_BITS;
    selected->piece_stride = row_bits / CATALOG_BYTE_BITS;
    selected->bytes = outer * selected->piece_bytes;
    selected->file_offset = tensor->offset + begin_bits / CATALOG_BYTE_BITS;
    if (outer > 1 && outer * selected->piece_stride != tensor->bytes)
        return core_error(RAFFIA_ERROR_CORRUPT,
                          "tensor '%s': %" PRIu64 " bytes do not fit its shape",
                          catalog_show(tensor->name).text, tensor->bytes);
    return RAFFIA_OK;
}

static void take_one_piece(struct load_selected *selected, uint64_t bytes)
{
    selected->bytes = bytes;
    selected->piece_bytes = selected->piece_stride = bytes;
}

/* `shape` has room for the rank of the tensor if a slice is taken. */
static raffia_status take(const struct catalog_tensor *tensor, const raffia_tensor_slice *slice,
                          uint64_t *shape, struct load_selected *selected)
{
    *selected = (struct load_selected){
        .tensor = tensor, .shape = tensor->shape, .file_offset = tensor->offset};
    take_one_piece(selected, tensor->bytes);
    if (!slice)
        return RAFFIA_OK;
    raffia_status status = check_slice(tensor, slice);
    if (status)
        return status;
    memcpy(shape, tensor->shape, tensor->rank * sizeof *shape);
    shape[slice->dimension] = slice->end - slice->begin;
    selected->shape = shape;
    if (tensor->bytes == 0)
        return RAFFIA_OK;
    status = cut(tensor, slice, selected);
    if (status)
        return status;
    /* A cut that leaves nothing, or leaves the rows whole, is one stretch of the file. */
    if (selected->bytes == 0 || selected->piece_bytes == selected->piece_stride)
        take_one_piece(selected, selected->bytes);
    return RAFFIA_OK;
}

static raffia_status take_all(const struct catalog *catalog, const struct choice *choices,
                              struct load_selection *selection)
{
    uint64_t *shape = selection->shapes;
    for (size_t i = 0; i < catalog->tensor_count; i++) {
        if (!choices[i].chosen)
            continue;
        struct load_selected *selected = &selection->tensors[selection->count];
        raffia_status status = take(&catalog->tensors[i], choices[i].slice, shape, selected);
        if (status)
            return status;
        if (__builtin_add_overflow(selection->bytes, selected->bytes, &selection->bytes))
            return core_error(RAFFIA_ERROR_OVERFLOW,
                              "the tensors together have more than 2^64 bytes");
        selection->count++;
        if (choices[i].slice)
            shape += catalog->tensors[i].rank;
    }
    return RAFFIA_OK;
}

raffia_status load_select(const struct catalog *catalog, const raffia_load_options *options,
                          struct load_selection *selection)
{
    struct load_selection made = {0};
    raffia_status status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    /* One more than needed: a model may have no tensors, and malloc(0) may return NULL. */
    struct choice *choices = core_calloc(catalog->tensor_count + 1, sizeof *choices);
    if (!choices)
        return status;
    status = choose(catalog, options, choices);
    if (status)
        goto free_choices;
    size_t chosen = 0, ranks = 0;
    for (size_t i = 0; i < catalog->tensor_count; i++) {
        chosen += choices[i].chosen;
        ranks += choices[i].slice ? catalog->tensors[i].rank : 0;
    }
    status = RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    made.tensors = core_calloc(chosen + 1, sizeof *made.tensors);
    made.shapes = made.tensors ? core_calloc(ranks + 1, sizeof *made.shapes) : NULL;
    if (made.shapes)
        status = take_all(catalog, choices, &made);
    if (status)
        load_selection_free(&made);
    else
        *selection = made;
free_choices:
    core_free(choices);
    return status;
}

void load_selection_free(struct load_selection *selection)
{
    core_free(selection->tensors);
    core_free(selection->shapes);
    *selection = (struct load_selection){0};
}
