/* Resources one above the other: walked, printed, and asked for their device. */
#include "core/error.h"
#include "core/text.h"
#include "resource/resource.h"

#include <stdio.h>
#include <string.h>

bool raffia_resource_upstream(raffia_resource_ref ref, size_t index,
                              raffia_resource_ref *upstream_p)
{
    return ref.ops && upstream_p && RESOURCE_HAS(ref.ops, upstream) &&
           ref.ops->upstream(ref.context, index, upstream_p);
}

const char *raffia_resource_describe(raffia_resource_ref ref, char *buffer, size_t capacity)
{
    if (!buffer || capacity == 0)
        return buffer;
    buffer[0] = '\0';
    if (!ref.ops)
        snprintf(buffer, capacity, "no resource");
    else if (RESOURCE_HAS(ref.ops, describe))
        ref.ops->describe(ref.context, buffer, capacity);
    if (!buffer[0])
        snprintf(buffer, capacity, "a resource of the program's at %p", ref.context);
    return buffer;
}

/* False: the visitor wants no more. The bound on depth ends circles too. */
static bool visit(raffia_resource_ref ref, size_t depth, raffia_resource_visitor visitor,
                  void *context)
{
    if (!visitor(context, depth, ref))
        return false;
    raffia_resource_ref below;
    for (size_t i = 0; depth + 1 < RAFFIA_RESOURCE_DEPTH_MAX && i < RAFFIA_RESOURCE_TEXT_MAX &&
                       raffia_resource_upstream(ref, i, &below);
         i++)
        if (!visit(below, depth + 1, visitor, context))
            return false;
    return true;
}

void raffia_resource_walk_stack(raffia_resource_ref ref, raffia_resource_visitor visitor,
                                void *context)
{
    if (ref.ops && visitor)
        visit(ref, 0, visitor, context);
}

static bool note_depth(void *context, size_t depth, raffia_resource_ref ref)
{
    size_t *deepest = context;
    (void)ref;
    if (depth > *deepest)
        *deepest = depth;
    return true;
}

raffia_status resource_check_depth(raffia_resource_ref ref, const char *what)
{
    size_t deepest = 0;
    raffia_resource_walk_stack(ref, note_depth, &deepest);
    if (deepest + 1 < RAFFIA_RESOURCE_DEPTH_MAX)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_LIMIT,
                      "%s: %zu resources stand one above the other already, and more are not "
                      "followed",
                      what, deepest + 1);
}

struct sought {
    raffia_resource_ref ref;
    bool found;
};

static bool compare(void *context, size_t depth, raffia_resource_ref ref)
{
    struct sought *sought = context;
    (void)depth;
    sought->found = ref.ops == sought->ref.ops && ref.context == sought->ref.context;
    return !sought->found;
}

bool resource_stands_on(raffia_resource_ref ref, raffia_resource_ref other)
{
    struct sought sought = {other, false};
    raffia_resource_walk_stack(ref, compare, &sought);
    return sought.found;
}

struct text {
    char *buffer;
    size_t capacity;
    size_t length; /* of the whole text, written or not */
};

static bool print_line(void *context, size_t depth, raffia_resource_ref ref)
{
    struct text *text = context;
    char line[RAFFIA_RESOURCE_TEXT_MAX];
    raffia_resource_describe(ref, line, sizeof line);
    const bool fits = text->length < text->capacity;
    const int length =
        snprintf(fits ? text->buffer + text->length : NULL,
                 fits ? text->capacity - text->length : 0, "%*s%s\n", (int)(2 * depth), "", line);
    text->length += length > 0 ? (size_t)length : 0;
    return true;
}

size_t raffia_resource_print_stack(raffia_resource_ref ref, char *buffer, size_t capacity)
{
    struct text text = {buffer, buffer ? capacity : 0, 0};
    if (text.capacity)
        buffer[0] = '\0';
    raffia_resource_walk_stack(ref, print_line, &text);
    return text.length + 1;
}

/* ---- devices -------------------------------------------------------------------------------- */

struct search {
    char *name;
    bool found;
};

static bool ask_device(void *context, size_t depth, raffia_resource_ref ref)
{
    struct search *search = context;
    (void)depth;
    search->found = RESOURCE_HAS(ref.ops, device) && ref.ops->device(ref.context, search->name);
    return !search->found;
}

raffia_status raffia_resource_device(raffia_resource_ref ref, char name[RAFFIA_DEVICE_NAME_MAX])
{
    raffia_status status = resource_check(ref, "raffia_resource_device");
    if (status)
        return status;
    if (!name)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "raffia_resource_device: name is NULL");
    char found[RAFFIA_DEVICE_NAME_MAX];
    struct search search = {found, false};
    raffia_resource_walk_stack(ref, ask_device, &search);
    if (!search.found)
        return core_error(RAFFIA_ERROR_NOT_FOUND,
                          "neither the resource nor one below it says whose memory it is");
    memcpy(name, found, sizeof found);
    return RAFFIA_OK;
}

raffia_status resource_find_device(raffia_resource_ref ref, struct driver_device *device_p)
{
    char name[RAFFIA_DEVICE_NAME_MAX];
    raffia_status status = raffia_resource_device(ref, name);
    return status ? status : driver_open(name, device_p);
}

unsigned resource_properties_on(struct driver_device device)
{
    struct core_error_record before;
    bool accessible;
    core_error_save(&before);
    if (driver_cpu_accessible(device, &accessible)) {
        core_error_restore(&before);
        accessible = false; /* who is not sure does not touch it */
    }
    return RAFFIA_DEVICE_ACCESSIBLE | (accessible ? RAFFIA_HOST_ACCESSIBLE : 0u);
}

raffia_status resource_check_stream(struct driver_device device, raffia_stream stream)
{
    if (!stream || device.driver->capabilities & DRIVER_IS_ASYNCHRONOUS)
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "a stream was given for memory of the %s driver, which has none: pass NULL",
                      device.driver->name);
}

raffia_status resource_wait_for(struct driver_device device, raffia_stream stream)
{
    if (!(device.driver->capabilities & DRIVER_IS_ASYNCHRONOUS))
        return resource_check_stream(device, stream);
    bool capturing;
    raffia_status status = device.driver->stream_is_capturing(device.index, stream, &capturing);
    if (status)
        return status;
    if (capturing)
        return core_error(RAFFIA_ERROR_BUSY,
                          "a block cannot be freed on a stream that is being captured: free it "
                          "when the capture has ended");
    return device.driver->stream_wait(device.index, stream);
}
