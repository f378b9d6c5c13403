#include "resource/intern.h"

#include "core/process.h"

#include <string.h>

/* Guarded by the lock of the process, which a fork() waits for. A child finds its parent's
 * resources here, and passes them over. */
static struct resource_link *links;

/* Adds an owner unless the last one has gone, and somebody is on his way to end the resource. */
static bool hold_if_alive(struct raffia_resource *resource)
{
    long holds = atomic_load_explicit(&resource->holds, memory_order_relaxed);
    while (holds > 0)
        if (atomic_compare_exchange_weak(&resource->holds, &holds, holds + RESOURCE_OWNER))
            return true;
    return false;
}

/* Lock held. */
static struct raffia_resource *find(const raffia_resource_ops *ops, const struct resource_key *key)
{
    for (struct resource_link *link = links; link; link = link->next)
        if (link->resource->ops == ops && memcmp(&link->key, key, sizeof *key) == 0 &&
            !resource_is_inherited(link->resource) && hold_if_alive(link->resource))
            return link->resource;
    return NULL;
}

struct raffia_resource *resource_intern_find(const raffia_resource_ops *ops,
                                             const struct resource_key *key)
{
    core_process_lock();
    struct raffia_resource *found = find(ops, key);
    core_process_unlock();
    return found;
}

struct raffia_resource *resource_intern(struct raffia_resource *resource,
                                        struct resource_link *link, const struct resource_key *key)
{
    core_process_lock();
    struct raffia_resource *found = find(resource->ops, key);
    if (!found) {
        *link = (struct resource_link){resource, links, *key};
        links = link;
    }
    core_process_unlock();
    return found ? found : resource;
}

void resource_intern_remove(struct resource_link *link)
{
    core_process_lock();
    struct resource_link **at = &links;
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    core_process_unlock();
}
