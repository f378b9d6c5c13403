/* The regular path: ordinary memory, copies and fills. */
#include "core/error.h"
#include "core/fault.h"
#include "core/text.h"
#include "driver/host/process_limits.h"
#include "driver/host/verbs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What CUDA's allocator promises, so that layouts do not depend on the device. */
#define REGULAR_ALIGNMENT 256

static raffia_status refuse(size_t bytes)
{
    char text[CORE_SIZE_TEXT_MAX], limit[HOST_LIMIT_TEXT_MAX];
    host_process_limit_text(bytes, HOST_COUNTED_ADDRESSES | HOST_COUNTED_DATA, limit);
    return core_error(RAFFIA_ERROR_OUT_OF_MEMORY, "the C library has no %s of ordinary memory%s%s",
                      core_format_size(bytes, text), *limit ? ": " : "", limit);
}

/* The C library maps large blocks by itself and keeps small ones; both are what a program would
 * have got without us. */
raffia_status host_mem_alloc(int device, size_t bytes, void **address_p)
{
    assert(device == 0);
    (void)device;
    void *address = NULL;
    if (bytes == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "an allocation of 0 bytes");
    if (bytes > PTRDIFF_MAX || core_fault("posix_memalign") ||
        posix_memalign(&address, REGULAR_ALIGNMENT, bytes))
        return refuse(bytes);
    *address_p = address;
    return RAFFIA_OK;
}

raffia_status host_mem_free(int device, void *address, size_t bytes)
{
    (void)device;
    (void)bytes;
    free(address);
    return RAFFIA_OK;
}

raffia_status host_copy(int device, driver_stream stream, void *destination, const void *source,
                        size_t bytes)
{
    (void)device;
    raffia_status status = host_check_stream(stream);
    if (!status && bytes)
        memmove(destination, source, bytes);
    return status;
}

raffia_status host_copy_batch(int device, driver_stream stream, const struct driver_copy *copies,
                              size_t count)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < count && !status; i++)
        status =
            host_copy(device, stream, copies[i].destination, copies[i].source, copies[i].bytes);
    return status;
}

raffia_status host_fill_memory(int device, driver_stream stream, void *destination,
                               unsigned char value, size_t bytes)
{
    (void)device;
    raffia_status status = host_check_stream(stream);
    if (!status && bytes)
        memset(destination, value, bytes);
    return status;
}
