/**
 * @file dlpack.h
 * @brief The exchange format of tensors between frameworks, as far as Raffia gives it out.
 *
 * These are the layouts and numbers of DLPack 1.1, written down anew from its header
 * (https://github.com/dmlc/dlpack, include/dlpack/dlpack.h, commit 007cef0e) under names of our
 * own, so that both headers can be included. A pointer to a #raffia_dlpack_tensor is a pointer to a
 * `DLManagedTensorVersioned`.
 */
#ifndef RAFFIA_DLPACK_H
#define RAFFIA_DLPACK_H

#include <raffia/base.h>

/** @addtogroup dlpack
 *  @{ */

#define RAFFIA_DLPACK_MAJOR 1u /**< the layout */
#define RAFFIA_DLPACK_MINOR 1u /**< the numbers */

/** `DLDeviceType`, those of use here. */
typedef enum raffia_dlpack_device {
    RAFFIA_DLPACK_CPU = 1,
    RAFFIA_DLPACK_CUDA = 2,
    RAFFIA_DLPACK_CUDA_HOST = 3, /**< pinned host memory */
    RAFFIA_DLPACK_EXTENSION = 12 /**< a device no framework knows: the simulated one */
} raffia_dlpack_device;

/** `DLDataTypeCode`. */
typedef enum raffia_dlpack_code {
    RAFFIA_DLPACK_INT = 0,
    RAFFIA_DLPACK_UINT = 1,
    RAFFIA_DLPACK_FLOAT = 2,
    RAFFIA_DLPACK_BFLOAT = 4,
    RAFFIA_DLPACK_COMPLEX = 5,
    RAFFIA_DLPACK_BOOL = 6,
    RAFFIA_DLPACK_FLOAT8_E4M3FN = 10,
    RAFFIA_DLPACK_FLOAT8_E4M3FNUZ = 11,
    RAFFIA_DLPACK_FLOAT8_E5M2 = 12,
    RAFFIA_DLPACK_FLOAT8_E5M2FNUZ = 13,
    RAFFIA_DLPACK_FLOAT8_E8M0FNU = 14,
    RAFFIA_DLPACK_FLOAT6_E2M3FN = 15,
    RAFFIA_DLPACK_FLOAT6_E3M2FN = 16,
    RAFFIA_DLPACK_FLOAT4_E2M1FN = 17
} raffia_dlpack_code;

/** `DLTensor`: where the elements are, and how they lie. */
typedef struct raffia_dlpack_view {
    void *data;
    struct {
        int32_t type; /**< #raffia_dlpack_device */
        int32_t index;
    } device;
    int32_t rank;
    struct {
        uint8_t code; /**< #raffia_dlpack_code */
        uint8_t bits; /**< of one element */
        uint16_t lanes;
    } dtype;
    int64_t *shape;
    int64_t *strides; /**< in elements */
    uint64_t byte_offset;
} raffia_dlpack_view;

/** `DLManagedTensorVersioned`: a view that keeps its memory alive until deleter() is called. */
typedef struct raffia_dlpack_tensor {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct raffia_dlpack_tensor *self);
    uint64_t flags; /**< bit 0: read-only */
    raffia_dlpack_view view;
} raffia_dlpack_tensor;

/** @} */

#endif
