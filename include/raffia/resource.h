/**
 * @file resource.h
 * @brief Memory resources: something that allocates and frees in stream order.
 *
 * This is the model of a memory resource of RMM and CCCL (`cuda::mr`) said in C. There are two
 * types, so that a declaration says who keeps what alive:
 *
 *  - a #raffia_resource_ref *borrows*: a table of operations and a context, passed by value. What
 *    it points at must outlive its last use;
 *  - a #raffia_resource *owns*: raffia_resource_retain() and raffia_resource_release() count its
 *    owners, and live blocks count too. When the last owner has gone while blocks are live, the
 *    teardown waits for the last of them to be freed; until then frees through the resource are
 *    legal, and nothing else is.
 *
 * Either is given where a ref is wanted: `raffia_ref(x)` takes both.
 *
 * Resources of this library that are equal are one and the same: asked twice for the memory of a
 * device, for the resource of a pool or for an owner of a ref, the library gives the same owner.
 *
 * **Writing a resource.** Fill in a #raffia_resource_ops, whose first four functions are required,
 * and use `{&ops, context}` as a ref, or hand it to raffia_resource_create() to get an owner.
 *
 * **Frees are checked.** A free through a resource that did not allocate the block is an error
 * (#RAFFIA_ERROR_BAD_ADDRESS) that changes nothing. The resources that hold memory know their
 * blocks by address, which they need anyway, so this costs nothing extra: pool, device, host,
 * fixed-size and arena find every foreign address, second free and interior pointer. The tracking
 * adaptor does too. They know the size of each block as well: a free with another one is an error
 * (#RAFFIA_ERROR_INVALID_ARGUMENT) that changes nothing either. That also tells a block of an arena
 * or a fixed-size resource from the block of upstream that it is cut from, if both start at the
 * same address; it does not where the one is all of the other. Adaptors that only count (limiting,
 * statistics) pass address and size on; two of them over the *same* upstream cannot tell each
 * other's blocks apart except where a count would fall below zero, and neither can the resource of
 * a pool and the pool itself, or a binning resource and its bins. Put a tracking adaptor on top of
 * each to find such a mistake. A callback resource has its count alone. Whatever is freed by
 * mistake, no resource ends while it has an owner.
 *
 * **The alignment of a free** must be that of the allocation, as RMM has it, and a program that
 * gives another one is wrong everywhere. It is looked at only where it says how much memory the
 * block takes: device, host and pinned host memory and the driver's own pool take more for an
 * alignment beyond 256, and refuse a free with another one (#RAFFIA_ERROR_INVALID_ARGUMENT; 256 and
 * all below are the same to them). The aligned adaptor knows by it which block of upstream to free.
 * A pool, an arena and a fixed-size resource have the block by its address and its size, and free
 * it whatever the alignment. Adaptors and binning resources pass it on to what decides.
 *
 * **Fork.** A forked child does not own its parent's resources: allocating through one answers
 * #RAFFIA_ERROR_FORKED, freeing and releasing do nothing.
 *
 * Every function may be called from several threads at once.
 */
#ifndef RAFFIA_RESOURCE_H
#define RAFFIA_RESOURCE_H

#include <raffia/base.h>
#include <raffia/device.h>
#include <raffia/pool.h>
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

/** Longest line of raffia_resource_describe(), its NUL included. */
#define RAFFIA_RESOURCE_TEXT_MAX 256u

/** Most resources one above the other: walks follow no more, and one more of this library is
 * refused with #RAFFIA_ERROR_LIMIT. */
#define RAFFIA_RESOURCE_DEPTH_MAX 32u

struct raffia_resource_ref;

/**
 * What a resource can do. Fill in struct_size and the first four functions; the table must live as
 * long as the resource. The others may be NULL.
 */
typedef struct raffia_resource_ops {
    size_t struct_size; /**< sizeof(raffia_resource_ops) of the caller's headers */

    /**
     * Allocates @p bytes aligned to @p alignment (a power of two) in the order of @p stream and
     * stores the address. 0 bytes may give NULL. Must be callable from several threads.
     */
    raffia_status (*allocate)(void *context, raffia_stream stream, size_t bytes, size_t alignment,
                              void **address_p);

    /**
     * Frees what allocate() returned, given the same size and alignment, in the order of @p stream.
     * NULL is a success. It must not fail for want of anything: the only failures are an address
     * that is no live block of this resource, a size or an alignment that is not that of the block
     * (#RAFFIA_ERROR_INVALID_ARGUMENT), and a stream that cannot be used; nothing is then changed.
     */
    raffia_status (*deallocate)(void *context, raffia_stream stream, void *address, size_t bytes,
                                size_t alignment);

    /** Flags of #raffia_resource_properties; constant for the life of the resource. */
    unsigned (*properties)(void *context);

    /** Whether memory of one context can be freed through the other; both use this table. */
    bool (*is_equal)(void *context, void *other_context);

    /** Adds an owner of the context; with release(), or not at all. */
    void (*retain)(void *context);

    /** Drops an owner of the context; the last one to go ends it. */
    void (*release)(void *context);

    /** Bytes that may be used in the live block that starts at @p address. */
    raffia_status (*usable_size)(void *context, const void *address, size_t *bytes_p);

    /**
     * Changes the size of a live block without moving it. #RAFFIA_ERROR_OUT_OF_MEMORY if there is
     * no room behind it; the block is then as before.
     */
    raffia_status (*resize)(void *context, raffia_stream stream, void *address, size_t bytes,
                            size_t new_bytes, size_t alignment);

    /** Describes the live block that contains @p address; #RAFFIA_ERROR_BAD_ADDRESS if none. */
    raffia_status (*find)(void *context, const void *address, raffia_block *block);

    /** Visits live blocks until the visitor returns false. It must not call the resource. */
    raffia_status (*walk)(void *context, raffia_block_visitor visitor, void *argument);

    /** Stores the resource below, by index; false where there is none. */
    bool (*upstream)(void *context, size_t index, struct raffia_resource_ref *ref_p);

    /** Writes one line: what the resource is, and its parameters. Ended by a NUL. */
    void (*describe)(void *context, char *buffer, size_t capacity);

    /** Writes the name of the device whose memory it is; see device.h. False if it has none. */
    bool (*device)(void *context, char name[RAFFIA_DEVICE_NAME_MAX]);
} raffia_resource_ops;

/** A resource, borrowed. `{NULL, NULL}` stands for none. */
typedef struct raffia_resource_ref {
    const raffia_resource_ops *ops;
    void *context;
} raffia_resource_ref;

/** A resource, owned. */
typedef struct raffia_resource raffia_resource;

/** Called for each resource of a stack, from the top; return false to stop. */
typedef bool (*raffia_resource_visitor)(void *context, size_t depth, raffia_resource_ref ref);

RAFFIA_BEGIN_DECLS

/* ---- owners and refs ------------------------------------------------------------------------ */

/** @brief Adds an owner. Returns @p resource; NULL gives NULL. */
RAFFIA_API raffia_resource *raffia_resource_retain(raffia_resource *resource);

/** @brief Drops an owner; NULL is ignored. See the top of this page for live blocks. */
RAFFIA_API void raffia_resource_release(raffia_resource *resource);

/** @brief Borrows from an owner; NULL gives `{NULL, NULL}`. The owner must outlive the ref. */
RAFFIA_API raffia_resource_ref raffia_resource_as_ref(const raffia_resource *resource);

/** @brief Gives the ref back as it is; what `raffia_ref()` calls for a ref. */
static inline raffia_resource_ref raffia_ref_of_ref(raffia_resource_ref ref)
{
    return ref;
}

/**
 * @brief Makes an owner from a ref.
 *
 * Resources of this library, and others whose table has retain() and release(), are then kept
 * alive by it. Any other is only borrowed: what the ref points at must outlive the owner and every
 * block.
 *
 * @param ref        a resource
 * @param resource_p receives an owner, to be released
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT for an incomplete table, #RAFFIA_ERROR_OUT_OF_HOST_MEMORY
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resource_from_ref(raffia_resource_ref ref,
                                                                   raffia_resource **resource_p);

/**
 * @brief Makes an owner of a resource of the caller's, which it takes over: at the teardown the
 *        table's release() is called for @p context, if there is one.
 * @param ops        its table, which must live as long
 * @param context    what its functions are called with
 * @param resource_p receives the owner, to be released; on failure nothing is taken over
 * @return as raffia_resource_from_ref()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resource_create(const raffia_resource_ops *ops,
                                                                 void *context,
                                                                 raffia_resource **resource_p);

/* ---- memory --------------------------------------------------------------------------------- */

/**
 * @brief Allocates a block.
 * @param ref       the resource
 * @param stream    in whose order the block may be used; NULL = the device's default stream
 * @param bytes     size; 0 gives NULL, unless the resource has something to give
 * @param alignment a power of two; 0 = #RAFFIA_DEFAULT_ALIGNMENT
 * @param address_p receives the address
 * @return #RAFFIA_ERROR_OUT_OF_MEMORY, #RAFFIA_ERROR_INVALID_ARGUMENT for the ref or the alignment,
 *         #RAFFIA_ERROR_FORKED, #RAFFIA_ERROR_LIMIT where more blocks are live than are recorded
 *         (resources.h), #RAFFIA_ERROR_CORRUPT if the resource broke its word about the alignment,
 *         and whatever else the resource answers
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_allocate(raffia_resource_ref ref,
                                                          raffia_stream stream, size_t bytes,
                                                          size_t alignment, void **address_p);

/**
 * @brief Frees a block, in the order of @p stream: work submitted to it before may still use it.
 *
 * It must be freed through the resource that allocated it or an equal one, with the same size and
 * alignment; NULL is a success.
 *
 * @param ref       the resource
 * @param stream    in whose order it is freed; NULL = the device's default stream
 * @param address   start of the block
 * @param bytes     what was asked for, or what raffia_resize() made of it
 * @param alignment as it was asked for; 0 = #RAFFIA_DEFAULT_ALIGNMENT
 * @return #RAFFIA_ERROR_BAD_ADDRESS for an address that is no live block of the resource,
 *         #RAFFIA_ERROR_INVALID_ARGUMENT for another size than that of the block, another alignment
 *         where it is looked at, or for the ref or the stream; and whatever the driver says of a
 *         stream that it does not know. Nothing then changes, and the sentence tells both sizes.
 *         See the top of this page for what is noticed
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_deallocate(raffia_resource_ref ref,
                                                            raffia_stream stream, void *address,
                                                            size_t bytes, size_t alignment);

/**
 * @brief Changes the size of a block without moving it.
 *
 * @param ref       the resource that allocated it, or an equal one
 * @param stream    in whose order; NULL = the device's default stream
 * @param address   start of the block
 * @param bytes     its size until now, as for raffia_deallocate()
 * @param new_bytes its new size
 * @param alignment as it was asked for; 0 = #RAFFIA_DEFAULT_ALIGNMENT
 * @return #RAFFIA_ERROR_OUT_OF_MEMORY if there is no room behind it, #RAFFIA_ERROR_UNSUPPORTED if
 *         the resource cannot, #RAFFIA_ERROR_BAD_ADDRESS and #RAFFIA_ERROR_INVALID_ARGUMENT as
 *         raffia_deallocate(); the block is then as before. On success the block is freed with its
 *         new size
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resize(raffia_resource_ref ref,
                                                        raffia_stream stream, void *address,
                                                        size_t bytes, size_t new_bytes,
                                                        size_t alignment);

/* ---- questions ------------------------------------------------------------------------------ */

/** @brief Flags of #raffia_resource_properties; 0 for no resource. */
RAFFIA_API unsigned raffia_resource_properties_of(raffia_resource_ref ref);

/** @brief Whether memory of one may be freed through the other. Two refs to none are equal. */
RAFFIA_API bool raffia_resource_is_equal(raffia_resource_ref a, raffia_resource_ref b);

/** @brief Bytes usable in a live block; #RAFFIA_ERROR_UNSUPPORTED if the resource cannot tell. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resource_usable_size(raffia_resource_ref ref,
                                                                      const void *address,
                                                                      size_t *bytes_p);

/**
 * @brief Describes the live block of the resource that contains an address, which may be interior.
 * @return #RAFFIA_ERROR_BAD_ADDRESS if there is none, #RAFFIA_ERROR_UNSUPPORTED if it cannot tell
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resource_find(raffia_resource_ref ref,
                                                               const void *address,
                                                               raffia_block *block);

/**
 * @brief Visits the live blocks of a resource. The visitor must not call the resource.
 * @return #RAFFIA_ERROR_UNSUPPORTED if the resource does not know them
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resource_walk(raffia_resource_ref ref,
                                                               raffia_block_visitor visitor,
                                                               void *context);

/**
 * @brief Writes the name of the device whose memory a resource, or the first one below it that
 *        knows, hands out.
 * @return #RAFFIA_ERROR_NOT_FOUND if none of them knows
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resource_device(raffia_resource_ref ref,
                                                                 char name[RAFFIA_DEVICE_NAME_MAX]);

/* ---- the stack ------------------------------------------------------------------------------ */

/** @brief Stores the resource below, by index from 0; false where there is none. Borrowed. */
RAFFIA_API bool raffia_resource_upstream(raffia_resource_ref ref, size_t index,
                                         raffia_resource_ref *upstream_p);

/** @brief Writes one line about the resource itself, cut to @p capacity; returns @p buffer. */
RAFFIA_API const char *raffia_resource_describe(raffia_resource_ref ref, char *buffer,
                                                size_t capacity);

/** @brief Visits the resource and all that are below it, depth first. */
RAFFIA_API void raffia_resource_walk_stack(raffia_resource_ref ref, raffia_resource_visitor visitor,
                                           void *context);

/**
 * @brief Writes the whole stack, a line for each resource, the top first, indented by depth.
 * @param ref      the top
 * @param buffer   receives the text, cut to @p capacity and ended by a NUL; may be NULL with 0
 * @param capacity bytes in @p buffer
 * @return bytes that the whole text needs, its NUL included
 */
RAFFIA_API size_t raffia_resource_print_stack(raffia_resource_ref ref, char *buffer,
                                              size_t capacity);

RAFFIA_END_DECLS

#ifdef __cplusplus
/** @brief Borrows from an owner. */
static inline raffia_resource_ref raffia_ref(const raffia_resource *resource)
{
    return raffia_resource_as_ref(resource);
}
/** @brief A ref as it is. */
static inline raffia_resource_ref raffia_ref(raffia_resource_ref ref)
{
    return ref;
}
#else
/** A ref from either a #raffia_resource_ref or a pointer to a #raffia_resource. */
#define raffia_ref(resource)                                                                       \
    (_Generic((resource),                                                                          \
        raffia_resource_ref: raffia_ref_of_ref,                                                    \
        raffia_resource *: raffia_resource_as_ref,                                                 \
        const raffia_resource *: raffia_resource_as_ref)(resource))
#endif

/** @} */

#endif
