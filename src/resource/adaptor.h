/*
 * What resources that stand in front of another have in common: they own it, and answer with its
 * answers where they have none of their own.
 */
#ifndef RESOURCE_ADAPTOR_H
#define RESOURCE_ADAPTOR_H

#include "resource/resource.h"

struct resource_adaptor {
    struct raffia_resource base;
    /* What is called. The adaptor counts its own blocks, so that calls need not go through the
     * owner where that only forwards. */
    raffia_resource_ref upstream;
    raffia_resource *owner;
};

/* Allocates `bytes` for a struct that begins with a struct resource_adaptor, all zero but for it.
 * `what` begins the sentences about bad arguments. OUT_OF_HOST_MEMORY, INVALID_ARGUMENT, LIMIT. */
raffia_status resource_adaptor_make(size_t bytes, raffia_resource_ref upstream,
                                    const raffia_resource_ops *ops,
                                    void (*destroy)(struct raffia_resource *), const char *what,
                                    raffia_resource **resource_p, void *adaptor_pp);

/* Lets go of upstream and frees the struct; what else it has is gone already. */
void resource_adaptor_end(struct resource_adaptor *adaptor);

/* Frees through upstream at a teardown, where nobody could try again: so it is tried twice here,
 * and what is then lost is logged. */
void resource_adaptor_give_back(const struct resource_adaptor *adaptor, void *address, size_t bytes,
                                size_t alignment);

/* Frees a block that the adaptor counts, and does not know by address: see resource_claim(). */
raffia_status resource_adaptor_free(struct resource_adaptor *adaptor, raffia_stream stream,
                                    void *address, size_t bytes, size_t alignment);

/* A destroy for those that have nothing else. */
void resource_adaptor_destroy(struct raffia_resource *resource);

/* Entries of a table that pass the question on. */
unsigned resource_adaptor_properties(void *context);
raffia_status resource_adaptor_usable_size(void *context, const void *address, size_t *bytes_p);
raffia_status resource_adaptor_resize(void *context, raffia_stream stream, void *address,
                                      size_t bytes, size_t new_bytes, size_t alignment);
raffia_status resource_adaptor_find(void *context, const void *address, raffia_block *block);
raffia_status resource_adaptor_walk(void *context, raffia_block_visitor visitor, void *argument);
bool resource_adaptor_upstream(void *context, size_t index, raffia_resource_ref *ref_p);

static inline raffia_status resource_adaptor_allocate(const struct resource_adaptor *adaptor,
                                                      raffia_stream stream, size_t bytes,
                                                      size_t alignment, void **address_p)
{
    return adaptor->upstream.ops->allocate(adaptor->upstream.context, stream, bytes, alignment,
                                           address_p);
}

static inline raffia_status resource_adaptor_deallocate(const struct resource_adaptor *adaptor,
                                                        raffia_stream stream, void *address,
                                                        size_t bytes, size_t alignment)
{
    return adaptor->upstream.ops->deallocate(adaptor->upstream.context, stream, address, bytes,
                                             alignment);
}

#endif
