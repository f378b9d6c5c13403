/* Knows every live block, and where it came from. */
#include "core/error.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/text.h"
#include "resource/adaptor.h"
#include "resource/blocks.h"

#include <raffia/adaptors.h>

#include <assert.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where a block came from. */
struct trace {
    size_t count;
    void *frames[RAFFIA_TRACKING_FRAMES_MAX];
};

struct tracking_resource {
    struct resource_adaptor adaptor;
    bool stacks;
    pthread_mutex_t lock;          /* of what follows; under it is only bookkeeping */
    struct resource_blocks blocks; /* `start` is the block's struct trace, or the block itself */
    size_t bytes;
};

/* The frames of the adaptor itself say nothing. */
#define FRAMES_SKIPPED 2

static struct trace *capture(const struct tracking_resource *self)
{
    void *frames[RAFFIA_TRACKING_FRAMES_MAX + FRAMES_SKIPPED];
    if (!self->stacks)
        return NULL;
    struct trace *trace = core_calloc(1, sizeof *trace);
    if (!trace)
        return NULL;
    const int count = backtrace(frames, (int)(sizeof frames / sizeof *frames));
    trace->count = count > FRAMES_SKIPPED ? (size_t)count - FRAMES_SKIPPED : 0;
    memcpy(trace->frames, frames + FRAMES_SKIPPED, trace->count * sizeof *frames);
    return trace;
}

static struct trace *trace_of(const struct resource_block *block)
{
    return block->start == block->address ? NULL : block->start;
}

static raffia_status record(struct tracking_resource *self, const struct resource_block *block)
{
    struct resource_block twin;
    pthread_mutex_lock(&self->lock);
    const bool twice = resource_blocks_take(&self->blocks, block->address, &twin);
    raffia_status status = resource_blocks_add(&self->blocks, twice ? &twin : block);
    if (!status && !twice)
        self->bytes += block->bytes;
    pthread_mutex_unlock(&self->lock);
    return twice ? core_error(RAFFIA_ERROR_CORRUPT,
                              "the resource below a tracking adaptor returned %p, which is live",
                              block->address)
                 : status;
}

static raffia_status tracking_allocate(void *context, raffia_stream stream, size_t bytes,
                                       size_t alignment, void **address_p)
{
    struct tracking_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    void *address = NULL;
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, &address);
    if (status)
        return status;
    if (address) {
        struct trace *trace = capture(self);
        const struct resource_block block = {
            .address = address, .start = trace ? (void *)trace : address, .bytes = bytes};
        status = self->stacks && !trace ? RAFFIA_ERROR_OUT_OF_HOST_MEMORY : record(self, &block);
        if (status) {
            struct core_error_record cause;
            core_error_save(&cause);
            core_free(trace);
            if (status != RAFFIA_ERROR_CORRUPT) /* then it is somebody else's */
                (void)resource_adaptor_deallocate(&self->adaptor, stream, address, bytes,
                                                  alignment);
            core_error_restore(&cause);
            return status;
        }
        resource_hold(&self->adaptor.base);
    }
    *address_p = address;
    return RAFFIA_OK;
}

/* Lock not held. After a free that was refused. */
static void put_back(struct tracking_resource *self, const struct resource_block *block)
{
    struct core_error_record cause;
    core_error_save(&cause);
    if (record(self, block)) {
        core_free(trace_of(block));
        core_log_error("a tracking adaptor has lost sight of %zu bytes at %p: %s", block->bytes,
                       block->address, raffia_last_error());
    }
    core_error_restore(&cause);
}

/* Takes the block off the record if it is of that size. */
static raffia_status take_out(struct tracking_resource *self, const void *address, size_t bytes,
                              struct resource_block *block)
{
    pthread_mutex_lock(&self->lock);
    const bool found = resource_blocks_find(&self->blocks, address, block);
    const bool good = found && block->bytes == bytes;
    if (good) {
        (void)resource_blocks_take(&self->blocks, address, block);
        self->bytes -= bytes;
    }
    pthread_mutex_unlock(&self->lock);
    if (good)
        return RAFFIA_OK;
    if (found)
        return resource_refuse_size(address, bytes, RAFFIA_DEFAULT_ALIGNMENT, block->bytes);
    return core_error(RAFFIA_ERROR_BAD_ADDRESS,
                      "%p is no live block of this tracking adaptor: it was freed before, lies "
                      "inside a block, or was allocated by another resource",
                      address);
}

/* Off the record before upstream has the block: another thread may get its address at once. */
static raffia_status tracking_deallocate(void *context, raffia_stream stream, void *address,
                                         size_t bytes, size_t alignment)
{
    struct tracking_resource *self = context;
    struct resource_block block = {0};
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    if (!address)
        return resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, alignment);
    raffia_status status = take_out(self, address, bytes, &block);
    if (status)
        return status;
    status = resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, alignment);
    if (status) {
        put_back(self, &block);
        return status;
    }
    core_free(trace_of(&block));
    resource_drop(&self->adaptor.base);
    return RAFFIA_OK;
}

/* ---- questions ------------------------------------------------------------------------------ */

static raffia_tracked_block show(const struct resource_block *block)
{
    raffia_tracked_block shown = {.address = block->address, .bytes = block->bytes};
    const struct trace *trace = trace_of(block);
    if (trace) {
        shown.frame_count = trace->count;
        memcpy(shown.frames, trace->frames, sizeof shown.frames);
    }
    return shown;
}

static void walk(struct tracking_resource *self, raffia_tracked_visitor visitor, void *context)
{
    bool wanted = true;
    pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i < self->blocks.capacity && wanted; i++)
        if (self->blocks.places[i].address) {
            const raffia_tracked_block block = show(&self->blocks.places[i]);
            wanted = visitor(context, &block);
        }
    pthread_mutex_unlock(&self->lock);
}

struct search {
    const char *at;
    raffia_block *block;
    bool found;
};

static bool look(void *context, const raffia_tracked_block *block)
{
    struct search *search = context;
    const char *start = block->address;
    search->found = search->at >= start && (size_t)(search->at - start) < block->bytes;
    if (search->found)
        *search->block = resource_live_block(block->address, block->bytes, block->bytes);
    return !search->found;
}

static raffia_status tracking_find(void *context, const void *address, raffia_block *block)
{
    struct search search = {address, block, false};
    struct tracking_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    walk(self, look, &search);
    return search.found ? RAFFIA_OK
                        : core_error(RAFFIA_ERROR_BAD_ADDRESS,
                                     "%p is in no live block of this tracking adaptor", address);
}

struct plain_walk {
    raffia_block_visitor visitor;
    void *argument;
};

static bool visit_plain(void *context, const raffia_tracked_block *block)
{
    const struct plain_walk *plain = context;
    const raffia_block shown = resource_live_block(block->address, block->bytes, block->bytes);
    return plain->visitor(plain->argument, &shown);
}

static raffia_status tracking_walk(void *context, raffia_block_visitor visitor, void *argument)
{
    struct plain_walk plain = {visitor, argument};
    struct tracking_resource *self = context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    walk(self, visit_plain, &plain);
    return RAFFIA_OK;
}

static void tracking_describe(void *context, char *buffer, size_t capacity)
{
    struct tracking_resource *self = context;
    char live[CORE_SIZE_TEXT_MAX];
    if (resource_is_inherited(&self->adaptor.base)) {
        snprintf(buffer, capacity, "tracking adaptor, of another process");
        return;
    }
    pthread_mutex_lock(&self->lock);
    const size_t bytes = self->bytes, blocks = self->blocks.count;
    pthread_mutex_unlock(&self->lock);
    snprintf(buffer, capacity, "tracking adaptor, %s live in %zu blocks%s",
             core_format_size(bytes, live), blocks, self->stacks ? ", with stacks" : "");
}

static const raffia_resource_ops tracking_ops = {
    .struct_size = sizeof tracking_ops,
    .allocate = tracking_allocate,
    .deallocate = tracking_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = resource_adaptor_usable_size,
    .find = tracking_find,
    .walk = tracking_walk,
    .upstream = resource_adaptor_upstream,
    .describe = tracking_describe,
};

static void tracking_destroy(struct raffia_resource *resource)
{
    struct tracking_resource *self = (struct tracking_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    assert(self->blocks.count == 0);
    pthread_mutex_destroy(&self->lock);
    resource_adaptor_end(&self->adaptor);
}

raffia_status raffia_tracking_resource_create(raffia_resource_ref upstream,
                                              const raffia_tracking_options *options,
                                              raffia_resource **resource_p)
{
    raffia_tracking_options o;
    struct tracking_resource *self;
    raffia_status status = core_options_copy(&o, sizeof o, options, "raffia_tracking_options");
    if (!status)
        status = resource_adaptor_make(sizeof *self, upstream, &tracking_ops, tracking_destroy,
                                       "raffia_tracking_resource_create", resource_p, &self);
    if (status)
        return status;
    self->stacks = o.capture_stacks;
    pthread_mutex_init(&self->lock, NULL);
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}

static raffia_status enter(raffia_resource_ref ref, const char *what,
                           struct tracking_resource **self_p)
{
    if (ref.ops != &tracking_ops)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%s: the resource is no tracking adaptor",
                          what);
    struct tracking_resource *self = ref.context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    *self_p = self;
    return RAFFIA_OK;
}

raffia_status raffia_tracking_query(raffia_resource_ref tracking, size_t *bytes_p, size_t *blocks_p)
{
    struct tracking_resource *self;
    raffia_status status = enter(tracking, "raffia_tracking_query", &self);
    if (status)
        return status;
    pthread_mutex_lock(&self->lock);
    const size_t bytes = self->bytes, blocks = self->blocks.count;
    pthread_mutex_unlock(&self->lock);
    if (bytes_p)
        *bytes_p = bytes;
    if (blocks_p)
        *blocks_p = blocks;
    return RAFFIA_OK;
}

raffia_status raffia_tracking_walk(raffia_resource_ref tracking, raffia_tracked_visitor visitor,
                                   void *context)
{
    struct tracking_resource *self;
    raffia_status status = enter(tracking, "raffia_tracking_walk", &self);
    if (status)
        return status;
    if (!visitor)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_tracking_walk: visitor is NULL");
    walk(self, visitor, context);
    return RAFFIA_OK;
}

struct text {
    char *buffer;
    size_t capacity, length;
};

static void put(struct text *text, const char *line)
{
    if (text->length < text->capacity)
        snprintf(text->buffer + text->length, text->capacity - text->length, "%s", line);
    text->length += strlen(line);
}

static bool print_block(void *context, const raffia_tracked_block *block)
{
    struct text *text = context;
    char line[512];
    snprintf(line, sizeof line, "%p: %zu bytes\n", block->address, block->bytes);
    put(text, line);
    char **names = block->frame_count
                       ? backtrace_symbols((void *const *)block->frames, (int)block->frame_count)
                       : NULL;
    for (size_t i = 0; i < block->frame_count; i++) {
        snprintf(line, sizeof line, "    #%zu %p %.400s\n", i, block->frames[i],
                 names ? names[i] : "");
        put(text, line);
    }
    free(names);
    return true;
}

raffia_status raffia_tracking_print(raffia_resource_ref tracking, char *buffer, size_t capacity,
                                    size_t *needed_p)
{
    struct tracking_resource *self;
    raffia_status status = enter(tracking, "raffia_tracking_print", &self);
    if (status)
        return status;
    struct text text = {buffer, buffer ? capacity : 0, 0};
    if (text.capacity)
        buffer[0] = '\0';
    walk(self, print_block, &text);
    if (needed_p)
        *needed_p = text.length + 1;
    return RAFFIA_OK;
}
