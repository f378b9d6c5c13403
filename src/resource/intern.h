/*
 * Resources that are equal are one and the same: a block may be freed through any of them, and must
 * be counted by the one that it was allocated through. Who makes a resource that may have equals
 * offers it here, and goes on with the one that is there already.
 */
#ifndef RESOURCE_INTERN_H
#define RESOURCE_INTERN_H

#include "resource/resource.h"

/* What makes resources of one table equal. */
struct resource_key {
    const void *words[4];
};

/* A member of the resource. */
struct resource_link {
    struct raffia_resource *resource;
    struct resource_link *next;
    struct resource_key key;
};

/* An owner of the resource that goes by the key in this process, or NULL. */
struct raffia_resource *resource_intern_find(const raffia_resource_ops *ops,
                                             const struct resource_key *key);

/* Lists the resource, complete and with one owner, by its link; unless an equal one is there: then
 * that is returned, with an owner more, and the caller takes his own apart again. */
struct raffia_resource *resource_intern(struct raffia_resource *resource,
                                        struct resource_link *link, const struct resource_key *key);

/* What a destroy begins with. */
void resource_intern_remove(struct resource_link *link);

#endif
