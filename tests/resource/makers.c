#include "resource/makers.h"

#include "core/fault.h"
#include "resource/current.h"
#include "resource/pinned_default.h"

#include <stdatomic.h>
#include <stdlib.h>

raffia_resource *must_make_device(const char *device)
{
    raffia_resource *resource;
    assert_ok(raffia_device_resource_create(
        &(raffia_device_resource_options){.struct_size = sizeof(raffia_device_resource_options),
                                          .device = device},
        &resource));
    return resource;
}

/* ---- a program's own ------------------------------------------------------------------------ */

static raffia_status users_allocate(void *context, raffia_stream stream, size_t bytes,
                                    size_t alignment, void **address_p)
{
    struct users_resource *users = context;
    (void)stream;
    if (users->failure)
        return users->failure;
    if (bytes > GIB || core_fault("users_allocate") ||
        posix_memalign(address_p, alignment < sizeof(void *) ? sizeof(void *) : alignment,
                       bytes ? bytes : 1))
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    __atomic_fetch_add(&users->live, 1, __ATOMIC_RELAXED);
    return RAFFIA_OK;
}

static raffia_status users_deallocate(void *context, raffia_stream stream, void *address,
                                      size_t bytes, size_t alignment)
{
    struct users_resource *users = context;
    (void)stream;
    (void)bytes;
    (void)alignment;
    if (address)
        __atomic_fetch_sub(&users->live, 1, __ATOMIC_RELAXED);
    free(address);
    return RAFFIA_OK;
}

static unsigned users_properties(void *context)
{
    return ((struct users_resource *)context)->properties;
}

static bool users_is_equal(void *context, void *other)
{
    return context == other;
}

raffia_resource_ref users_ref(struct users_resource *users)
{
    static const raffia_resource_ops ops = {
        .struct_size = sizeof ops,
        .allocate = users_allocate,
        .deallocate = users_deallocate,
        .properties = users_properties,
        .is_equal = users_is_equal,
    };
    return (raffia_resource_ref){&ops, users};
}

static struct users_resource everybodys = {.properties =
                                               RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE};

/* ---- makers --------------------------------------------------------------------------------- */

static raffia_status make_device(const char *device, raffia_resource **resource_p)
{
    return raffia_device_resource_create(
        &(raffia_device_resource_options){.struct_size = sizeof(raffia_device_resource_options),
                                          .device = device},
        resource_p);
}

static raffia_status make_host(const char *device, raffia_resource **resource_p)
{
    return raffia_host_resource_create(
        &(raffia_device_resource_options){.struct_size = sizeof(raffia_device_resource_options),
                                          .device = device},
        resource_p);
}

static raffia_status make_pool_with(const char *device, unsigned flags,
                                    raffia_resource **resource_p)
{
    return raffia_pool_resource_create(
        &(raffia_pool_options){.struct_size = sizeof(raffia_pool_options),
                               .device = device,
                               .pages = RAFFIA_PAGES_OFF,
                               .initial_bytes = 4 * MIB,
                               .maximum_bytes = 64 * MIB,
                               .chunk_bytes = 16 * MIB,
                               .flags = flags,
                               .threads = 1},
        resource_p);
}

static raffia_status make_pool(const char *device, raffia_resource **resource_p)
{
    return make_pool_with(device, 0, resource_p);
}

static raffia_status make_guarded_pool(const char *device, raffia_resource **resource_p)
{
    return make_pool_with(device, RAFFIA_POOL_GUARD, resource_p);
}

static raffia_status make_async(const char *device, raffia_resource **resource_p)
{
    return raffia_async_resource_create(
        &(raffia_async_resource_options){.struct_size = sizeof(raffia_async_resource_options),
                                         .device = device,
                                         .initial_bytes = 4 * MIB},
        resource_p);
}

static raffia_status make_users(const char *device, raffia_resource **resource_p)
{
    (void)device;
    const raffia_resource_ref ref = users_ref(&everybodys);
    return raffia_resource_create(ref.ops, ref.context, resource_p);
}

static void *plain_allocate(size_t bytes, raffia_stream stream, void *argument)
{
    void *address = NULL;
    (void)stream;
    (void)argument;
    if (bytes > GIB || core_fault("plain_allocate") ||
        posix_memalign(&address, 256, bytes ? bytes : 1))
        return NULL;
    return address;
}

static void plain_free(void *address, size_t bytes, raffia_stream stream, void *argument)
{
    (void)bytes;
    (void)stream;
    (void)argument;
    free(address);
}

static raffia_status make_callback(const char *device, raffia_resource **resource_p)
{
    return raffia_callback_resource_create(
        &(raffia_callback_resource_options){.struct_size = sizeof(raffia_callback_resource_options),
                                            .allocate = plain_allocate,
                                            .deallocate = plain_free,
                                            .properties =
                                                RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE,
                                            .device = device},
        resource_p);
}

/* Makes something over what `below` makes; the adaptor is then all that holds it. */
#define MAKE_OVER(below_make, call)                                                                \
    raffia_resource *below;                                                                        \
    raffia_status status = below_make(device, &below);                                             \
    if (status)                                                                                    \
        return status;                                                                             \
    status = call;                                                                                 \
    raffia_resource_release(below);                                                                \
    return status

static raffia_status make_fixed_size(const char *device, raffia_resource **resource_p)
{
    const raffia_fixed_size_resource_options options = {
        .struct_size = sizeof options, .block_bytes = 5 * MIB, .blocks_per_chunk = 16};
    MAKE_OVER(make_device,
              raffia_fixed_size_resource_create(raffia_ref(below), &options, resource_p));
}

static raffia_status make_binning(const char *device, raffia_resource **resource_p)
{
    const raffia_binning_resource_options options = {
        .struct_size = sizeof options, .min_exponent = 10, .max_exponent = 14};
    MAKE_OVER(make_device, raffia_binning_resource_create(raffia_ref(below), &options, resource_p));
}

static raffia_status make_arena(const char *device, raffia_resource **resource_p)
{
    const raffia_arena_resource_options options = {.struct_size = sizeof options,
                                                   .arena_bytes = 900 * MIB};
    MAKE_OVER(make_device, raffia_arena_resource_create(raffia_ref(below), &options, resource_p));
}

static raffia_status make_limiting(const char *device, raffia_resource **resource_p)
{
    MAKE_OVER(make_device, raffia_limiting_resource_create(raffia_ref(below), 2 * GIB, resource_p));
}

static raffia_status make_statistics(const char *device, raffia_resource **resource_p)
{
    MAKE_OVER(make_device, raffia_statistics_resource_create(raffia_ref(below), resource_p));
}

static raffia_status make_tracking(const char *device, raffia_resource **resource_p)
{
    MAKE_OVER(make_callback, raffia_tracking_resource_create(raffia_ref(below), NULL, resource_p));
}

static raffia_status make_tracking_stacks(const char *device, raffia_resource **resource_p)
{
    const raffia_tracking_options options = {.struct_size = sizeof options, .capture_stacks = true};
    MAKE_OVER(make_device,
              raffia_tracking_resource_create(raffia_ref(below), &options, resource_p));
}

static void drop_row(void *context, const char *row)
{
    (void)context;
    (void)row;
}

static raffia_status make_logging(const char *device, raffia_resource **resource_p)
{
    const raffia_logging_options options = {.struct_size = sizeof options, .sink = drop_row};
    MAKE_OVER(make_device, raffia_logging_resource_create(raffia_ref(below), &options, resource_p));
}

static raffia_status make_aligned(const char *device, raffia_resource **resource_p)
{
    const raffia_aligned_options options = {.struct_size = sizeof options, .alignment = 4096};
    MAKE_OVER(make_callback,
              raffia_aligned_resource_create(raffia_ref(below), &options, resource_p));
}

static bool say_no(size_t bytes, void *argument)
{
    (void)bytes;
    (void)argument;
    return false;
}

static raffia_status make_failure_callback(const char *device, raffia_resource **resource_p)
{
    const raffia_failure_callback_options options = {.struct_size = sizeof options,
                                                     .callback = say_no};
    MAKE_OVER(make_device,
              raffia_failure_callback_resource_create(raffia_ref(below), &options, resource_p));
}

static raffia_status make_thread_safe(const char *device, raffia_resource **resource_p)
{
    MAKE_OVER(make_device, raffia_thread_safe_resource_create(raffia_ref(below), resource_p));
}

static raffia_status make_stack(const char *device, raffia_resource **resource_p)
{
    MAKE_OVER(make_tracking, raffia_statistics_resource_create(raffia_ref(below), resource_p));
}

static raffia_status make_pinned(const char *device, raffia_resource **resource_p)
{
    (void)device;
    return pinned_default_make(&(struct pinned_sizes){2 * MIB, 4 * MIB}, resource_p);
}

static raffia_status make_initial(const char *device, raffia_resource **resource_p)
{
    return raffia_current_resource_acquire(device, resource_p);
}

/* What gives its blocks from a record of them, and what adds nothing to such a resource. */
#define RECORDED (CHECKS_FREES | FINDS | ALIGNMENT_TAKES_ROOM)

const struct maker makers[] = {
    {"device", make_device, GIB, 2 * MIB, RECORDED},
    {"host", make_host, GIB, 2 * MIB, RECORDED | HOST_MEMORY},
    {"pool", make_pool, 14 * MIB, MIB, CHECKS_FREES | FINDS},
    {"guarded pool", make_guarded_pool, 14 * MIB, MIB, CHECKS_FREES | FINDS},
    {"driver's pool", make_async, GIB, 2 * MIB, RECORDED | STREAMS_ONLY},
    {"fixed-size", make_fixed_size, 5 * MIB, 4 * KIB, CHECKS_FREES | FINDS},
    {"binning", make_binning, GIB, 2 * MIB, CHECKS_FREES | FINDS},
    {"arena", make_arena, 64 * MIB, MIB, CHECKS_FREES | FINDS},
    {"callback", make_callback, GIB, 256, ZERO_IS_BLOCK | HOST_MEMORY},
    {"program's own", make_users, GIB, 2 * MIB, ZERO_IS_BLOCK | HOST_MEMORY},
    {"limiting", make_limiting, GIB, 2 * MIB, RECORDED},
    {"statistics", make_statistics, GIB, 2 * MIB, RECORDED},
    {"tracking", make_tracking, GIB, 256, CHECKS_FREES | ZERO_IS_BLOCK | HOST_MEMORY},
    {"tracking with stacks", make_tracking_stacks, GIB, 2 * MIB, RECORDED},
    {"logging", make_logging, GIB, 2 * MIB, RECORDED},
    {"aligned", make_aligned, GIB / 2, 2 * MIB, ZERO_IS_BLOCK | HOST_MEMORY},
    {"failure-callback", make_failure_callback, GIB, 2 * MIB, RECORDED},
    {"thread-safe", make_thread_safe, GIB, 2 * MIB, RECORDED},
    {"statistics over tracking", make_stack, GIB, 256, CHECKS_FREES | ZERO_IS_BLOCK | HOST_MEMORY},
    {"default pinned", make_pinned, GIB, MIB, CHECKS_FREES | FINDS | NO_STREAMS | HOST_MEMORY},
    {"initial", make_initial, GIB, 2 * MIB, RECORDED},
};
const size_t maker_count = sizeof makers / sizeof *makers;
