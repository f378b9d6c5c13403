#include "resource/initial.h"

#include "core/error.h"
#include "core/fallbacks.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/settings.h"
#include "policy/ladder.h"
#include "policy/route.h"
#include "pool/pool.h"
#include "resource/regular_resource.h"

#include <pthread.h>
#include <stdio.h>

/* After a pool could not be built so many requests go by before it is tried again: 1, 3, 7, ... */
#define REFUSALS_MAX 10u

struct initial_resource {
    struct raffia_resource base;
    struct driver_device device;
    raffia_resource *regular;

    /* Guards the rest, for some steps of bookkeeping; free while the pool is built. */
    pthread_mutex_t lock;
    pthread_cond_t built;
    bool building;
    pthread_t builder;
    unsigned refusals, skips;
    unsigned long version; /* of the settings that the terms come from; 0: none yet */
    raffia_pages_mode mode;
    struct policy_parameters parameters;
    raffia_page_offer huge, usual; /* for the table of fallbacks */

    /* Written once, under the lock. */
    _Atomic(raffia_pool *) pool;
    uintptr_t pool_base;
    size_t pool_bytes; /* of addresses */
};

/* What one request goes by. */
struct terms {
    raffia_pages_mode mode;
    struct policy_parameters parameters;
    raffia_page_offer huge, usual;
};

static raffia_status read_terms(struct initial_resource *self, struct terms *terms)
{
    const unsigned long version = core_settings_version();
    raffia_device_info info;
    struct policy_ladder ladder;
    pthread_mutex_lock(&self->lock);
    const bool fresh = self->version == version;
    if (fresh)
        *terms = (struct terms){self->mode, self->parameters, self->huge, self->usual};
    pthread_mutex_unlock(&self->lock);
    if (fresh)
        return RAFFIA_OK;
    raffia_status status = self->device.driver->device_info(self->device.index, &info);
    if (status)
        return status;
    policy_parameters_for(&info, &terms->parameters);
    status = policy_ladder_make(RAFFIA_PAGES_TRY, terms->parameters.page_size, &info, &ladder);
    if (status)
        return status;
    terms->mode = raffia_pages_mode_in_force();
    terms->huge = ladder.rungs[0];
    terms->usual = info.pages[info.page_count - 1];
    pthread_mutex_lock(&self->lock);
    if (self->version != version)
        self->skips = self->refusals = 0;
    self->version = version;
    self->mode = terms->mode;
    self->parameters = terms->parameters;
    self->huge = terms->huge;
    self->usual = terms->usual;
    pthread_mutex_unlock(&self->lock);
    return RAFFIA_OK;
}

/* ---- the pool ------------------------------------------------------------------------------- */

static raffia_status build(struct initial_resource *self, raffia_pool **pool_p,
                           raffia_pool_stats *stats)
{
    char device[RAFFIA_DEVICE_NAME_MAX], name[RAFFIA_DEVICE_NAME_MAX + 8];
    snprintf(name, sizeof name, "initial %s", driver_device_name(self->device, device));
    raffia_status status = raffia_pool_create(
        &(raffia_pool_options){
            .struct_size = sizeof(raffia_pool_options), .device = device, .name = name},
        pool_p);
    if (status)
        return status;
    status = raffia_pool_query(*pool_p, stats);
    if (status)
        raffia_pool_release(*pool_p);
    return status;
}

/* Lock held. RAFFIA_OK: the pool is there, or this thread is to build it. A builder that comes by
 * again was called by the log, and cannot wait for itself. */
static raffia_status claim(struct initial_resource *self, bool must)
{
    while (self->building && !pthread_equal(self->builder, pthread_self()))
        pthread_cond_wait(&self->built, &self->lock);
    if (self->building)
        return core_error(RAFFIA_ERROR_BUSY, "the pool is being built by this very thread");
    if (atomic_load_explicit(&self->pool, memory_order_relaxed))
        return RAFFIA_OK;
    if (!must && self->skips) {
        self->skips--;
        return core_error(RAFFIA_ERROR_OUT_OF_MEMORY,
                          "the pool of huge pages could not be built a moment ago: it is tried "
                          "again %u requests from now",
                          self->skips + 1);
    }
    self->building = true;
    self->builder = pthread_self();
    return RAFFIA_OK;
}

static raffia_status need_pool(struct initial_resource *self, bool must)
{
    if (atomic_load_explicit(&self->pool, memory_order_acquire))
        return RAFFIA_OK;
    pthread_mutex_lock(&self->lock);
    raffia_status status = claim(self, must);
    const bool builds = !status && self->building;
    pthread_mutex_unlock(&self->lock);
    if (!builds)
        return status;
    raffia_pool *pool = NULL;
    raffia_pool_stats stats = {0};
    struct core_error_record before;
    core_error_save(&before);
    status = build(self, &pool, &stats);
    if (!status)
        core_error_restore(&before); /* of the rungs that were refused on the way */
    pthread_mutex_lock(&self->lock);
    if (!status) {
        self->pool_base = (uintptr_t)pool_base(pool);
        self->pool_bytes = stats.address_bytes;
        atomic_store_explicit(&self->pool, pool, memory_order_release);
    } else {
        self->refusals += self->refusals < REFUSALS_MAX ? 1 : 0;
        self->skips = (1u << self->refusals) - 1;
    }
    self->building = false;
    pthread_cond_broadcast(&self->built);
    pthread_mutex_unlock(&self->lock);
    return status;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static raffia_status serve_huge(struct initial_resource *self, raffia_pages_mode mode,
                                raffia_stream stream, size_t bytes, size_t alignment,
                                void **address_p)
{
    raffia_status status = need_pool(self, mode == RAFFIA_PAGES_ON);
    if (status)
        return status;
    raffia_pool *pool = atomic_load_explicit(&self->pool, memory_order_acquire);
    raffia_pool_stats stats;
    if (mode == RAFFIA_PAGES_ON) {
        status = raffia_pool_query(pool, &stats);
        if (status)
            return status;
        if (!policy_is_huge(stats.pages.got_kind))
            return core_error(RAFFIA_ERROR_NO_HUGE_PAGES,
                              "pages=on, but the pool of the initial resource has regular pages, "
                              "because it was built when they were not required");
    }
    return raffia_pool_alloc_on(pool, stream, bytes, alignment, address_p);
}

static raffia_status serve_regular(struct initial_resource *self, raffia_stream stream,
                                   size_t bytes, size_t alignment, void **address_p)
{
    const raffia_resource_ref regular = raffia_resource_as_ref(self->regular);
    return regular.ops->allocate(regular.context, stream, bytes, alignment, address_p);
}

static raffia_status serve(struct initial_resource *self, const struct terms *terms,
                           raffia_stream stream, size_t bytes, size_t alignment, void **address_p)
{
    const struct policy_request question = {
        .bytes = bytes, .alignment = alignment, .mode = terms->mode};
    if (!bytes || policy_route(&question, &terms->parameters).route == POLICY_REGULAR)
        return serve_regular(self, stream, bytes, alignment, address_p);
    struct core_error_record before;
    core_error_save(&before);
    raffia_status status = serve_huge(self, terms->mode, stream, bytes, alignment, address_p);
    if (!status || terms->mode == RAFFIA_PAGES_ON || status == RAFFIA_ERROR_CORRUPT ||
        status == RAFFIA_ERROR_FORKED)
        return status;
    core_fallback(terms->huge.kind, terms->huge.size, terms->usual.kind, terms->usual.size,
                  status == RAFFIA_ERROR_INVALID_ARGUMENT ? RAFFIA_REASON_UNSUPPORTED
                                                          : RAFFIA_REASON_EXHAUSTED,
                  raffia_last_error());
    status = serve_regular(self, stream, bytes, alignment, address_p);
    if (!status)
        core_error_restore(&before);
    return status;
}

static raffia_status initial_allocate(void *context, raffia_stream stream, size_t bytes,
                                      size_t alignment, void **address_p)
{
    struct initial_resource *self = context;
    struct terms terms;
    if (resource_is_inherited(&self->base))
        return resource_refuse_inherited(&self->base);
    raffia_status status = read_terms(self, &terms);
    if (!status)
        status = serve(self, &terms, stream, bytes, alignment, address_p);
    if (!status && *address_p)
        resource_hold(&self->base);
    return status;
}

static raffia_pool *pool_of(struct initial_resource *self, const void *address)
{
    raffia_pool *pool = atomic_load_explicit(&self->pool, memory_order_acquire);
    return pool && (uintptr_t)address - self->pool_base < self->pool_bytes ? pool : NULL;
}

static raffia_status initial_deallocate(void *context, raffia_stream stream, void *address,
                                        size_t bytes, size_t alignment)
{
    struct initial_resource *self = context;
    if (!address || resource_is_inherited(&self->base))
        return RAFFIA_OK;
    raffia_pool *pool = pool_of(self, address);
    const raffia_resource_ref regular = raffia_resource_as_ref(self->regular);
    raffia_status status = resource_claim(&self->base, address);
    if (status)
        return status;
    status = pool ? pool_free_sized(pool, stream, address, bytes)
                  : regular.ops->deallocate(regular.context, stream, address, bytes, alignment);
    return resource_settle(&self->base, address, status);
}

static unsigned initial_properties(void *context)
{
    return resource_properties_on(((struct initial_resource *)context)->device);
}

static raffia_status initial_find(void *context, const void *address, raffia_block *block)
{
    struct initial_resource *self = context;
    raffia_pool *pool = pool_of(self, address);
    return pool ? raffia_pool_find(pool, address, block)
                : raffia_resource_find(raffia_resource_as_ref(self->regular), address, block);
}

static raffia_status initial_usable_size(void *context, const void *address, size_t *bytes_p)
{
    return resource_usable_size_by(initial_find, context, address, bytes_p);
}

static void initial_describe(void *context, char *buffer, size_t capacity)
{
    struct initial_resource *self = context;
    char name[RAFFIA_DEVICE_NAME_MAX];
    snprintf(buffer, capacity, "initial resource of %s, pages %s%s",
             driver_device_name(self->device, name),
             raffia_pages_mode_name(raffia_pages_mode_in_force()),
             atomic_load_explicit(&self->pool, memory_order_acquire) ? ", with a pool" : "");
}

static bool initial_device(void *context, char name[RAFFIA_DEVICE_NAME_MAX])
{
    driver_device_name(((struct initial_resource *)context)->device, name);
    return true;
}

static bool initial_upstream(void *context, size_t index, raffia_resource_ref *ref_p)
{
    if (index)
        return false;
    *ref_p = raffia_resource_as_ref(((struct initial_resource *)context)->regular);
    return true;
}

static const raffia_resource_ops initial_ops = {
    .struct_size = sizeof initial_ops,
    .allocate = initial_allocate,
    .deallocate = initial_deallocate,
    .properties = initial_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = initial_usable_size,
    .find = initial_find,
    .upstream = initial_upstream,
    .describe = initial_describe,
    .device = initial_device,
};

static void initial_destroy(struct raffia_resource *resource)
{
    struct initial_resource *self = (struct initial_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    raffia_pool_release(atomic_load_explicit(&self->pool, memory_order_relaxed));
    raffia_resource_release(self->regular);
    pthread_cond_destroy(&self->built);
    pthread_mutex_destroy(&self->lock);
    core_free(self);
}

raffia_status resource_initial_make(struct driver_device device, raffia_resource **resource_p)
{
    struct initial_resource *self = core_calloc(1, sizeof *self);
    if (!self)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = resource_regular_make(device, &self->regular);
    if (status) {
        core_free(self);
        return status;
    }
    resource_init(&self->base, &initial_ops, initial_destroy);
    self->device = device;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->built, NULL);
    *resource_p = &self->base;
    return RAFFIA_OK;
}
