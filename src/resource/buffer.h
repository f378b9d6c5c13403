/* A buffer from the inside. */
#ifndef RESOURCE_BUFFER_H
#define RESOURCE_BUFFER_H

#include "resource/resource.h"

#include <raffia/buffer.h>

struct raffia_buffer {
    raffia_resource *owner;
    struct driver_device device; /* whose streams and copies are used */
    char device_name[RAFFIA_DEVICE_NAME_MAX];
    raffia_stream stream;
    size_t alignment;
    void *data; /* NULL: capacity is 0 */
    size_t size, capacity;
};

#endif
