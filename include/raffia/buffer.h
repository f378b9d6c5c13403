/**
 * @file buffer.h
 * @brief A piece of memory that keeps its resource, stream and device with it.
 *
 * The counterpart of RMM's `device_buffer` and `device_uvector`. What is in it is not initialised.
 * It owns its resource, so that nobody else need keep it; frees are ordered behind the stream set
 * last. No call waits for a stream: copies are done when the stream gets there, which on the host
 * is at once.
 *
 * Unlike other things a buffer is used by one thread at a time.
 */
#ifndef RAFFIA_BUFFER_H
#define RAFFIA_BUFFER_H

#include <raffia/base.h>
#include <raffia/dlpack.h>
#include <raffia/dtype.h>
#include <raffia/resource.h>
#include <raffia/status.h>
#include <raffia/stream.h>

/** @addtogroup buffer
 *  @{ */

/** A buffer. */
typedef struct raffia_buffer raffia_buffer;

/** How a buffer is made. */
typedef struct raffia_buffer_options {
    size_t struct_size;           /**< sizeof(raffia_buffer_options) */
    raffia_resource_ref resource; /**< none = the current resource of the device, as it is now */
    raffia_stream stream;         /**< in whose order it is allocated, copied and freed */
    size_t alignment;             /**< a power of two; 0 = #RAFFIA_DEFAULT_ALIGNMENT */
    const char *device;           /**< whose streams and copies; NULL = the resource's device, or if
                                       it does not say the default one */
} raffia_buffer_options;

/** Elements of one type in a buffer. It does not keep the buffer. */
typedef struct raffia_view {
    void *data;
    raffia_dtype dtype;
    size_t count; /**< elements */
    size_t bytes;
} raffia_view;

RAFFIA_BEGIN_DECLS

/**
 * @brief Makes a buffer of a size.
 * @param options  NULL = all defaults
 * @param bytes    size; 0 takes no memory
 * @param buffer_p receives the buffer, to be destroyed
 * @return what the resource answers; #RAFFIA_ERROR_NOT_FOUND for the device,
 *         #RAFFIA_ERROR_INVALID_ARGUMENT for the alignment, #RAFFIA_ERROR_OUT_OF_HOST_MEMORY
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_create(const raffia_buffer_options *options,
                                                               size_t bytes,
                                                               raffia_buffer **buffer_p);

/**
 * @brief The same, filled with @p bytes from @p source, which is host memory or the device's.
 *
 * As no call here waits, @p source must stay as it is until the stream has got there: until it, or
 * an event recorded on it afterwards, was waited for. On the host it has on return.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_buffer_create_from(const raffia_buffer_options *options, const void *source, size_t bytes,
                          raffia_buffer **buffer_p);

/**
 * @brief Copies a buffer: its size, not its capacity.
 *
 * @param source   on the same device, or one of the two is host memory. Both streams are kept in
 *                 order if they are the same; else the caller does
 * @param options  NULL = the resource, alignment and stream of @p source
 * @param buffer_p receives the copy
 * @return as raffia_buffer_create()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_copy(const raffia_buffer *source,
                                                             const raffia_buffer_options *options,
                                                             raffia_buffer **buffer_p);

/** @brief Frees the memory, in the order of the stream, and the buffer; NULL is ignored. */
RAFFIA_API void raffia_buffer_destroy(raffia_buffer *buffer);

/**
 * @brief Changes the size; what is common to both stays.
 *
 * Up to the capacity only the size changes. Beyond, the block grows in place if its resource can;
 * otherwise a new one of exactly the size is taken, and the content copied. On failure the buffer
 * is as before.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_resize(raffia_buffer *buffer, size_t bytes);

/** @brief Sees to it that the capacity is at least @p bytes; the size stays. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_reserve(raffia_buffer *buffer,
                                                                size_t bytes);

/** @brief Gives back what is beyond the size, by moving the content if need be. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_shrink(raffia_buffer *buffer);

/** @brief Changes the stream. What was submitted to the one before must be ordered by the caller.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_set_stream(raffia_buffer *buffer,
                                                                   raffia_stream stream);

/** @brief Start of the memory; NULL if the capacity is 0. */
RAFFIA_API void *raffia_buffer_data(const raffia_buffer *buffer);

/** @brief Size in bytes. */
RAFFIA_API size_t raffia_buffer_size(const raffia_buffer *buffer);

/** @brief Bytes that it can hold without another block. */
RAFFIA_API size_t raffia_buffer_capacity(const raffia_buffer *buffer);

/** @brief Stream set last. */
RAFFIA_API raffia_stream raffia_buffer_stream(const raffia_buffer *buffer);

/** @brief Its resource, borrowed. */
RAFFIA_API raffia_resource_ref raffia_buffer_resource(const raffia_buffer *buffer);

/** @brief Name of its device; lives as long as the buffer. */
RAFFIA_API const char *raffia_buffer_device(const raffia_buffer *buffer);

/**
 * @brief Looks at a part of the buffer as elements.
 * @param buffer the buffer
 * @param dtype  their type; elements of 4 or 6 bits are packed
 * @param offset where they begin, bytes; a multiple of the size of an element
 * @param count  how many; #RAFFIA_NONE = as many as there are to the end of the buffer
 * @param view   receives the view
 * @return #RAFFIA_ERROR_LIMIT if they reach beyond the buffer's size,
 *         #RAFFIA_ERROR_INVALID_ARGUMENT for the type or the offset, #RAFFIA_ERROR_OVERFLOW
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_view(const raffia_buffer *buffer,
                                                             raffia_dtype dtype, size_t offset,
                                                             size_t count, raffia_view *view);

/**
 * @brief Hands the buffer over as a DLPack tensor, dense and in row-major order.
 *
 * The tensor owns the buffer from then on: its deleter() destroys it. Work on the buffer's stream
 * is for the consumer to wait for, as DLPack has it.
 *
 * @param buffer   the buffer; on success it is not the caller's any more
 * @param dtype    type of the elements
 * @param shape    @p rank extents, none negative; may be NULL for rank 0
 * @param rank     number of dimensions, at most 32
 * @param tensor_p receives a `DLManagedTensorVersioned`
 * @return #RAFFIA_ERROR_LIMIT if the elements reach beyond the buffer's size,
 *         #RAFFIA_ERROR_INVALID_ARGUMENT, #RAFFIA_ERROR_OVERFLOW, #RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
 *         the buffer then stays the caller's
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_buffer_to_dlpack(raffia_buffer *buffer,
                                                                  raffia_dtype dtype,
                                                                  const int64_t *shape, size_t rank,
                                                                  raffia_dlpack_tensor **tensor_p);

RAFFIA_END_DECLS

/** The buffer's memory as a pointer to elements of a C type. */
#define RAFFIA_BUFFER_AS(type, buffer) ((type *)raffia_buffer_data(buffer))

/** How many elements of a C type the buffer's size holds. */
#define RAFFIA_BUFFER_COUNT(type, buffer) (raffia_buffer_size(buffer) / sizeof(type))

/** @} */

#endif
