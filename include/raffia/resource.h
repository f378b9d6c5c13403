/**
 * @file resource.h
 * @brief A memory resource, borrowed: the table of operations that any allocator can fill in.
 *
 * This is RMM's and CCCL's model of a memory resource said in C: something that allocates and frees
 * in stream order, with equality and properties. A `raffia_resource_ref` does not own what it
 * points at: the target must outlive its last use.
 */
#ifndef RAFFIA_RESOURCE_H
#define RAFFIA_RESOURCE_H

#include <raffia/base.h>
#include <raffia/status.h>
#include <raffia/stream.h>

/** @addtogroup memory_resource
 *  @{ */

/** Where the memory of a resource may be touched. Flags. */
typedef enum raffia_resource_properties {
    RAFFIA_DEVICE_ACCESSIBLE = 1u << 0, /**< device code may use it */
    RAFFIA_HOST_ACCESSIBLE = 1u << 1,   /**< the CPU may use it */
} raffia_resource_properties;

/** Alignment that every resource gives when 0 is asked, and the one RMM uses. Bytes. */
#define RAFFIA_DEFAULT_ALIGNMENT 256u

/**
 * What a resource can do. Fill in struct_size and the first four functions; the table must live as
 * long as the resource.
 */
typedef struct raffia_resource_ops {
    size_t struct_size; /**< sizeof(raffia_resource_ops) of the caller's headers */

    /**
     * Allocates @p bytes aligned to @p alignment (a power of two) in the order of @p stream and
     * stores the address. 0 bytes may give NULL. Must be callable from several threads.
     */
    raffia_status (*allocate)(void *context, raffia_stream stream, size_t bytes, size_t alignment,
                              void **address_p);

    /** Frees what allocate() returned, given the same size and alignment. Cannot fail. */
    void (*deallocate)(void *context, raffia_stream stream, void *address, size_t bytes,
                       size_t alignment);

    /** Flags of #raffia_resource_properties; constant for the life of the resource. */
    unsigned (*properties)(void *context);

    /** Whether memory of one context can be freed through the other; both use this table. */
    bool (*is_equal)(void *context, void *other_context);
} raffia_resource_ops;

/** A resource, borrowed. `{NULL, NULL}` stands for none. */
typedef struct raffia_resource_ref {
    const raffia_resource_ops *ops;
    void *context;
} raffia_resource_ref;

/** @} */

#endif
