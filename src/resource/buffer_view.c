/* Buffers seen as elements: views, and DLPack tensors. */
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "resource/buffer.h"

#include <stdlib.h>
#include <string.h>

#define RANK_MAX 32u

/* One row for each element type; raffia_dtype has the order. Types are those of the numbers' own
 * definitions: safetensors' F8_E4M3 is DLPack's e4m3fn, and so on. */
static const struct type {
    uint8_t code, bits;
} types[RAFFIA_DTYPE_COUNT] = {
    [RAFFIA_DTYPE_BOOL] = {RAFFIA_DLPACK_BOOL, 8},
    [RAFFIA_DTYPE_U8] = {RAFFIA_DLPACK_UINT, 8},
    [RAFFIA_DTYPE_I8] = {RAFFIA_DLPACK_INT, 8},
    [RAFFIA_DTYPE_U16] = {RAFFIA_DLPACK_UINT, 16},
    [RAFFIA_DTYPE_I16] = {RAFFIA_DLPACK_INT, 16},
    [RAFFIA_DTYPE_U32] = {RAFFIA_DLPACK_UINT, 32},
    [RAFFIA_DTYPE_I32] = {RAFFIA_DLPACK_INT, 32},
    [RAFFIA_DTYPE_U64] = {RAFFIA_DLPACK_UINT, 64},
    [RAFFIA_DTYPE_I64] = {RAFFIA_DLPACK_INT, 64},
    [RAFFIA_DTYPE_F16] = {RAFFIA_DLPACK_FLOAT, 16},
    [RAFFIA_DTYPE_BF16] = {RAFFIA_DLPACK_BFLOAT, 16},
    [RAFFIA_DTYPE_F32] = {RAFFIA_DLPACK_FLOAT, 32},
    [RAFFIA_DTYPE_F64] = {RAFFIA_DLPACK_FLOAT, 64},
    [RAFFIA_DTYPE_C64] = {RAFFIA_DLPACK_COMPLEX, 64},
    [RAFFIA_DTYPE_F8_E4M3] = {RAFFIA_DLPACK_FLOAT8_E4M3FN, 8},
    [RAFFIA_DTYPE_F8_E5M2] = {RAFFIA_DLPACK_FLOAT8_E5M2, 8},
    [RAFFIA_DTYPE_F8_E8M0] = {RAFFIA_DLPACK_FLOAT8_E8M0FNU, 8},
    [RAFFIA_DTYPE_F8_E4M3FNUZ] = {RAFFIA_DLPACK_FLOAT8_E4M3FNUZ, 8},
    [RAFFIA_DTYPE_F8_E5M2FNUZ] = {RAFFIA_DLPACK_FLOAT8_E5M2FNUZ, 8},
    [RAFFIA_DTYPE_F6_E2M3] = {RAFFIA_DLPACK_FLOAT6_E2M3FN, 6},
    [RAFFIA_DTYPE_F6_E3M2] = {RAFFIA_DLPACK_FLOAT6_E3M2FN, 6},
    [RAFFIA_DTYPE_F4] = {RAFFIA_DLPACK_FLOAT4_E2M1FN, 4},
};

static raffia_status check_dtype(raffia_dtype dtype)
{
    if ((unsigned)dtype < RAFFIA_DTYPE_COUNT && types[dtype].bits)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%d is no type of elements", (int)dtype);
}

/* Bytes that so many elements take, packed. */
static bool bytes_of(size_t count, unsigned bits, size_t *bytes_p)
{
    size_t whole, rest;
    /* In groups of 8 elements, which are whole bytes whatever the type. */
    if (!core_multiply(count / 8, bits, &whole))
        return false;
    rest = (count % 8 * bits + 7) / 8;
    return core_add(whole, rest, bytes_p);
}

static raffia_status check_room(const raffia_buffer *buffer, size_t offset, size_t count,
                                unsigned bits, size_t *bytes_p)
{
    if (!bytes_of(count, bits, bytes_p))
        return core_error(RAFFIA_ERROR_OVERFLOW, "%zu elements of %u bits exceed the address space",
                          count, bits);
    if (offset > buffer->size || *bytes_p > buffer->size - offset)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "%zu elements of %u bits from byte %zu on reach beyond the %zu bytes of "
                          "the buffer",
                          count, bits, offset, buffer->size);
    return RAFFIA_OK;
}

/* As many as fit. */
static size_t count_of(size_t bytes, unsigned bits)
{
    return bytes / bits * 8 + bytes % bits * 8 / bits;
}

raffia_status raffia_buffer_view(const raffia_buffer *buffer, raffia_dtype dtype, size_t offset,
                                 size_t count, raffia_view *view)
{
    size_t bytes;
    if (!buffer || !view)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_buffer_view: %s is NULL",
                          buffer ? "view" : "buffer");
    raffia_status status = check_dtype(dtype);
    if (status)
        return status;
    const unsigned bits = types[dtype].bits;
    if (bits >= 8 && offset % (bits / 8))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "elements of %u bytes cannot begin at byte %zu", bits / 8, offset);
    if (count == RAFFIA_NONE)
        count = offset < buffer->size ? count_of(buffer->size - offset, bits) : 0;
    status = check_room(buffer, offset, count, bits, &bytes);
    if (status)
        return status;
    *view = (raffia_view){
        .data = buffer->data ? (char *)buffer->data + offset : NULL,
        .dtype = dtype,
        .count = count,
        .bytes = bytes,
    };
    return RAFFIA_OK;
}

/* ---- DLPack --------------------------------------------------------------------------------- */

struct export
{
    raffia_dlpack_tensor tensor;
    int64_t extents[]; /* shape, then strides */
};

static void end_export(raffia_dlpack_tensor *tensor)
{
    if (!tensor)
        return;
    raffia_buffer_destroy(tensor->context);
    core_free(tensor);
}

static raffia_status count_elements(const int64_t *shape, size_t rank, size_t *count_p)
{
    size_t count = 1;
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < 0)
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "extent %zu of a tensor is negative: %lld", i, (long long)shape[i]);
        empty |= shape[i] == 0;
        if (shape[i] && !core_multiply(count, (size_t)shape[i], &count))
            return core_error(RAFFIA_ERROR_OVERFLOW,
                              "the number of elements of a tensor of %zu dimensions is too large",
                              rank);
    }
    *count_p = empty ? 0 : count;
    return count > INT64_MAX
               ? core_error(RAFFIA_ERROR_OVERFLOW,
                            "a tensor of %zu elements has strides beyond 63 bits", count)
               : RAFFIA_OK;
}

static int32_t device_type(const raffia_buffer *buffer)
{
    const char *name = buffer->device.driver->name;
    if (strcmp(name, "host") == 0)
        return RAFFIA_DLPACK_CPU;
    if (strcmp(name, "cuda") == 0)
        return RAFFIA_DLPACK_CUDA;
    return strcmp(name, "pinned") == 0 ? RAFFIA_DLPACK_CUDA_HOST : RAFFIA_DLPACK_EXTENSION;
}

static void fill(struct export *export, const raffia_buffer *buffer, struct type type,
                 const int64_t *shape, size_t rank, size_t count)
{
    raffia_dlpack_view *view = &export->tensor.view;
    int64_t stride = 1;
    view->data = count ? buffer->data : NULL;
    view->device.type = device_type(buffer);
    view->device.index =
        view->device.type == RAFFIA_DLPACK_CUDA || view->device.type == RAFFIA_DLPACK_EXTENSION
            ? buffer->device.index
            : 0;
    view->rank = (int32_t)rank;
    view->dtype.code = type.code;
    view->dtype.bits = type.bits;
    view->dtype.lanes = 1;
    view->shape = export->extents;
    view->strides = export->extents + rank;
    for (size_t i = rank; i-- > 0;) {
        view->shape[i] = shape[i];
        view->strides[i] = stride;
        stride *= shape[i] ? shape[i] : 1;
    }
}

raffia_status raffia_buffer_to_dlpack(raffia_buffer *buffer, raffia_dtype dtype,
                                      const int64_t *shape, size_t rank,
                                      raffia_dlpack_tensor **tensor_p)
{
    size_t count, bytes;
    if (!buffer || !tensor_p || (rank && !shape) || rank > RANK_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_buffer_to_dlpack: %s",
                          !buffer           ? "there is no buffer"
                          : !tensor_p       ? "tensor_p is NULL"
                          : rank > RANK_MAX ? "there are more than 32 dimensions"
                                            : "shape is NULL");
    raffia_status status = check_dtype(dtype);
    if (!status)
        status = count_elements(shape, rank, &count);
    if (!status)
        status = check_room(buffer, 0, count, types[dtype].bits, &bytes);
    if (status)
        return status;
    struct export *export = core_calloc(1, sizeof *export + 2 * rank * sizeof *export->extents);
    if (!export)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    export->tensor.version.major = RAFFIA_DLPACK_MAJOR;
    export->tensor.version.minor = RAFFIA_DLPACK_MINOR;
    export->tensor.context = buffer;
    export->tensor.deleter = end_export;
    fill(export, buffer, types[dtype], shape, rank, count);
    *tensor_p = &export->tensor;
    return RAFFIA_OK;
}
