/*
 * What the resources of this library have in common: owners and live blocks counted in one place,
 * the death that waits for the last of them, and what a forked child may not do.
 *
 * A resource is a struct whose first member is `struct raffia_resource`; its context is that
 * struct. It *holds* one for each owner and one for each live block that is not NULL.
 */
#ifndef RESOURCE_RESOURCE_H
#define RESOURCE_RESOURCE_H

#include "core/error.h"
#include "core/process.h"
#include "driver/driver.h"

#include <raffia/pool.h>
#include <raffia/resource.h>

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

/* While the process has one thread no atomic instruction is needed; see core/lock.h. */
static inline void resource_hold(struct raffia_resource *resource)
{
    if (__libc_single_threaded)
        atomic_store_explicit(&resource->holds,
                              atomic_load_explicit(&resource->holds, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    else
        atomic_fetch_add_explicit(&resource->holds, 1, memory_order_relaxed);
}

/* The resource may be gone afterwards. */
static inline void resource_drop(struct raffia_resource *resource)
{
    long before;
    if (__libc_single_threaded) {
        before = atomic_load_explicit(&resource->holds, memory_order_relaxed);
        atomic_store_explicit(&resource->holds, before - 1, memory_order_relaxed);
    } else {
        before = atomic_fetch_sub_explicit(&resource->holds, 1, memory_order_acq_rel);
    }
    if (before == 1)
        resource->destroy(resource);
}

static inline bool resource_is_inherited(const struct raffia_resource *resource)
{
    return resource->generation != core_fork_generation();
}

/* Records FORKED. */
raffia_status resource_refuse_inherited(const struct raffia_resource *resource);
#ifdef __clang_analyzer__ /* see core/error.h */
#define resource_refuse_inherited(...) core_failure(resource_refuse_inherited(__VA_ARGS__))
#endif

/* RAFFIA_OK if all required functions are there. `what` begins the sentence. */
raffia_status resource_check(raffia_resource_ref ref, const char *what);

/* Whether a table has an optional entry; older tables are shorter. */
#define RESOURCE_HAS(table, entry)                                                                 \
    ((table)->struct_size >= offsetof(raffia_resource_ops, entry) + sizeof((table)->entry) &&      \
     (table)->entry)

/* Identity, for tables whose resources are equal to themselves alone. */
bool resource_is_same(void *context, void *other);

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
