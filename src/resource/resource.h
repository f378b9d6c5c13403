/*
 * What the resources of this library have in common: owners and live blocks counted in one place,
 * the death that waits for the last of them, and what a forked child may not do.
 *
 * A resource is a struct whose first member is `struct raffia_resource`; its context is that
 * struct. Its owners and its live blocks that are not NULL are counted apart, in one word: a free
 * of what is not its block must never pass for an owner's leaving.
 */
#ifndef RESOURCE_RESOURCE_H
#define RESOURCE_RESOURCE_H

#include "core/error.h"
#include "core/process.h"
#include "driver/driver.h"

#include <raffia/pool.h>
#include <raffia/resource.h>

#include <limits.h>
#include <stdatomic.h>
#include <sys/single_threaded.h>

/*
 * The first four members are read by other copies of the library in the process, which meet it in
 * the registry of current resources: they change only with CURRENT_LAYOUT (current.h).
 */
struct raffia_resource {
    const raffia_resource_ops *ops;
    void *context;
    /* Ends the resource, by the copy of the library that made it. */
    void (*destroy)(struct raffia_resource *resource);
    /* Owners in the low half, which other copies add to and take from, and blocks above. The
     * resource ends when all of it is 0. */
    atomic_long holds;

    unsigned long generation; /* core_fork_generation() at birth */
};

/* With one owner. */
void resource_init(struct raffia_resource *resource, const raffia_resource_ops *ops,
                   void (*destroy)(struct raffia_resource *resource));

/* The tables' retain and release for every resource of this library; the context is the resource.
 */
void resource_context_retain(void *context);
void resource_context_release(void *context);

#define RESOURCE_OWNER 1L
#define RESOURCE_BLOCK (1L << (sizeof(long) * CHAR_BIT / 2))

/* Adds to the count, and returns what it was. While the process has one thread no atomic
 * instruction is needed; see core/lock.h. */
static inline long resource_count(struct raffia_resource *resource, long change)
{
    if (!__libc_single_threaded)
        return atomic_fetch_add_explicit(&resource->holds, change, memory_order_acq_rel);
    const long before = atomic_load_explicit(&resource->holds, memory_order_relaxed);
    atomic_store_explicit(&resource->holds, before + change, memory_order_relaxed);
    return before;
}

static inline void resource_retain(struct raffia_resource *resource)
{
    (void)resource_count(resource, RESOURCE_OWNER);
}

/* The resource may be gone afterwards. */
static inline void resource_release(struct raffia_resource *resource)
{
    if (resource_count(resource, -RESOURCE_OWNER) == RESOURCE_OWNER)
        resource->destroy(resource);
}

/* A block was handed out. */
static inline void resource_hold(struct raffia_resource *resource)
{
    (void)resource_count(resource, RESOURCE_BLOCK);
}

/* A block was freed that is known to be the resource's own, which may be gone afterwards. */
static inline void resource_drop(struct raffia_resource *resource)
{
    if (resource_count(resource, -RESOURCE_BLOCK) == RESOURCE_BLOCK)
        resource->destroy(resource);
}

/*
 * Around a free by a resource that does not know its blocks by address: one of the live ones is
 * claimed, which keeps the resource as an owner does, until the free has gone through or was
 * refused. BAD_ADDRESS, recorded, where none is live; nothing needs claiming for NULL.
 */
raffia_status resource_claim(struct raffia_resource *resource, const void *address);

/* What became of it. Returns `status`; the resource may be gone afterwards if that is RAFFIA_OK. */
static inline raffia_status resource_settle(struct raffia_resource *resource, const void *address,
                                            raffia_status status)
{
    if (!address)
        return status;
    if (status)
        (void)resource_count(resource, RESOURCE_BLOCK - RESOURCE_OWNER);
    else
        resource_release(resource);
    return status;
}

/* A block is freed as one of another size than it has: says so, INVALID_ARGUMENT. `has` is what the
 * block takes with the room for its alignment, which is nothing up to RAFFIA_DEFAULT_ALIGNMENT. */
raffia_status resource_refuse_size(const void *address, size_t bytes, size_t alignment, size_t has);
#ifdef __clang_analyzer__ /* see core/error.h */
#define resource_refuse_size(...) core_failure(resource_refuse_size(__VA_ARGS__))
#endif

/* For who cannot free a block and does not know it: resource_refuse_size() if the resource knows a
 * live block that starts at the address and has another size; else `status`, and the last error
 * stays. */
raffia_status resource_explain_refusal(raffia_resource_ref ref, const void *address, size_t bytes,
                                       raffia_status status);

static inline bool resource_is_inherited(const struct raffia_resource *resource)
{
    return resource->generation != core_fork_generation();
}

/* Records FORKED. */
raffia_status resource_refuse_inherited(const struct raffia_resource *resource);
#ifdef __clang_analyzer__ /* see core/error.h */
#define resource_refuse_inherited(...) core_failure(resource_refuse_inherited(__VA_ARGS__))
#endif

/* The entry `usable_size` of a table out of its `find`: BAD_ADDRESS for the inside of a block. */
raffia_status resource_usable_size_by(raffia_status (*find)(void *context, const void *address,
                                                            raffia_block *block),
                                      void *context, const void *address, size_t *bytes_p);

/* RAFFIA_OK if all required functions are there. `what` begins the sentence. */
raffia_status resource_check(raffia_resource_ref ref, const char *what);

/* Whether a table has an optional entry; older tables are shorter. */
#define RESOURCE_HAS(table, entry)                                                                 \
    ((table)->struct_size >= offsetof(raffia_resource_ops, entry) + sizeof((table)->entry) &&      \
     (table)->entry)

/* Identity, for tables whose resources are equal to themselves alone. */
bool resource_is_same(void *context, void *other);

/* Records LIMIT if one resource more on top of this one would be beyond what walks follow. `what`
 * begins the sentence. */
raffia_status resource_check_depth(raffia_resource_ref ref, const char *what);

/* Whether a resource is another one or has it below. */
bool resource_stands_on(raffia_resource_ref ref, raffia_resource_ref other);

/* The device whose memory it is, by name or through what is below; NOT_FOUND. */
raffia_status resource_find_device(raffia_resource_ref ref, struct driver_device *device_p);

/* DEVICE_ACCESSIBLE, and HOST_ACCESSIBLE where the CPU may touch the device's memory. */
unsigned resource_properties_on(struct driver_device device);

/* Waits until the stream has done what was submitted to it; at once on a device without streams.
 * BUSY while it is being captured. */
raffia_status resource_wait_for(struct driver_device device, raffia_stream stream);

/* INVALID_ARGUMENT for a stream on a device without streams. */
raffia_status resource_check_stream(struct driver_device device, raffia_stream stream);

/* Records INVALID_ARGUMENT unless it is a power of two. */
raffia_status resource_check_alignment(size_t alignment);

/* A live block, as a walk or a look-up shows it. */
static inline raffia_block resource_live_block(void *address, size_t bytes, size_t requested)
{
    return (raffia_block){
        .address = address, .bytes = bytes, .requested_bytes = requested, .live = true};
}

#endif
