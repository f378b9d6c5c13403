#include "load/safetensors_tensor.h"

#include "core/checked.h"
#include "core/error.h"
#include "load/catalog_json.h"
#include "load/catalog_show.h"
#include "load/dtype.h"

#include <stdio.h>

/* Room for a shape in a message; a longer one is cut. */
#define SHAPE_TEXT_MAX 160

struct shape_shown {
    char text[SHAPE_TEXT_MAX];
};

static struct shape_shown show_shape(const struct catalog_tensor *tensor)
{
    struct shape_shown shown = {"["};
    size_t used = 1, room = sizeof shown.text - sizeof ", ...]";
    for (unsigned i = 0; i < tensor->rank; i++) {
        char extent[32];
        int length = snprintf(extent, sizeof extent, "%s%llu", i ? ", " : "",
                              (unsigned long long)tensor->shape[i]);
        if (used + (size_t)length > room) {
            used += (size_t)snprintf(shown.text + used, sizeof shown.text - used, ", ...");
            break;
        }
        used += (size_t)snprintf(shown.text + used, sizeof shown.text - used, "%s", extent);
    }
    snprintf(shown.text + used, sizeof shown.text - used, "]");
    return shown;
}

static raffia_status parse_dtype(const json_t *value, struct catalog_tensor *tensor)
{
    if (!json_is_string(value))
        return core_error(RAFFIA_ERROR_FORMAT, "dtype is %s%s", catalog_json_kind(value),
                          value ? ", not a string" : "");
    const char *name = json_string_value(value);
    tensor->dtype = catalog_dtype_find(name);
    if (tensor->dtype == RAFFIA_DTYPE_NONE)
        return core_error(RAFFIA_ERROR_FORMAT, "dtype '%s' is unknown", catalog_show(name).text);
    return RAFFIA_OK;
}

static raffia_status parse_shape(const json_t *value, struct catalog_text *text,
                                 struct catalog_tensor *tensor)
{
    if (!json_is_array(value))
        return core_error(RAFFIA_ERROR_FORMAT, "shape is %s%s", catalog_json_kind(value),
                          value ? ", not an array" : "");
    size_t rank = json_array_size(value);
    if (rank > RAFFIA_TENSOR_RANK_MAX)
        return core_error(RAFFIA_ERROR_LIMIT, "shape has %zu dimensions; at most %u are supported",
                          rank, RAFFIA_TENSOR_RANK_MAX);
    uint64_t *shape = catalog_text_shape(text, rank);
    if (!shape)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < rank; i++) {
        const json_t *extent = json_array_get(value, i);
        if (!catalog_json_unsigned(extent, &shape[i]))
            return core_error(RAFFIA_ERROR_FORMAT,
                              "shape: extent %zu is %s, not an unsigned whole number", i,
                              catalog_json_kind(extent));
    }
    tensor->rank = (unsigned)rank;
    tensor->shape = shape;
    return RAFFIA_OK;
}

static raffia_status parse_offsets(const json_t *value, struct catalog_tensor *tensor)
{
    if (!json_is_array(value))
        return core_error(RAFFIA_ERROR_FORMAT, "data_offsets is %s%s", catalog_json_kind(value),
                          value ? ", not an array" : "");
    if (json_array_size(value) != 2)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "data_offsets has %zu entries; it must be [begin, end]",
                          json_array_size(value));
    uint64_t ends[2];
    for (size_t i = 0; i < 2; i++) {
        const json_t *end = json_array_get(value, i);
        if (!catalog_json_unsigned(end, &ends[i]))
            return core_error(RAFFIA_ERROR_FORMAT,
                              "data_offsets: entry %zu is %s, not an unsigned whole number", i,
                              catalog_json_kind(end));
    }
    if (ends[1] < ends[0])
        return core_error(RAFFIA_ERROR_FORMAT, "data_offsets [%llu, %llu] end before they begin",
                          (unsigned long long)ends[0], (unsigned long long)ends[1]);
    tensor->offset = ends[0];
    tensor->bytes = ends[1] - ends[0];
    return RAFFIA_OK;
}

/* What the shape takes must be what the offsets span. */
static raffia_status check_size(const struct catalog_tensor *tensor)
{
    size_t elements = 1, bits;
    bool fits = true;
    for (unsigned i = 0; i < tensor->rank && fits; i++)
        fits = core_multiply(elements, tensor->shape[i], &elements);
    const char *dtype = raffia_dtype_name(tensor->dtype);
    if (!fits || !core_multiply(elements, raffia_dtype_bits(tensor->dtype), &bits))
        return core_error(RAFFIA_ERROR_FORMAT, "shape %s of %s overflows the largest size",
                          show_shape(tensor).text, dtype);
    if (bits % CATALOG_BYTE_BITS)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "shape %s of %s takes %zu bits, which is not a whole number of bytes",
                          show_shape(tensor).text, dtype, bits);
    if (bits / CATALOG_BYTE_BITS != tensor->bytes)
        return core_error(RAFFIA_ERROR_FORMAT,
                          "data_offsets [%llu, %llu] span %llu bytes, but shape %s of %s takes %zu",
                          (unsigned long long)tensor->offset,
                          (unsigned long long)(tensor->offset + tensor->bytes),
                          (unsigned long long)tensor->bytes, show_shape(tensor).text, dtype,
                          bits / CATALOG_BYTE_BITS);
    return RAFFIA_OK;
}

raffia_status safetensors_tensor_parse(const json_t *description, struct catalog_text *text,
                                       struct catalog_tensor *tensor)
{
    if (!json_is_object(description))
        return core_error(RAFFIA_ERROR_FORMAT, "its description is %s, not an object",
                          catalog_json_kind(description));
    raffia_status status = parse_dtype(json_object_get(description, "dtype"), tensor);
    if (!status)
        status = parse_shape(json_object_get(description, "shape"), text, tensor);
    if (!status)
        status = parse_offsets(json_object_get(description, "data_offsets"), tensor);
    return status ? status : check_size(tensor);
}
