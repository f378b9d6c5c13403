/*
 * What adaptors cost over their upstream: nanoseconds for an allocation and its free, the least of
 * several rounds, over an upstream that does nothing. Built on request and run by hand, against a
 * release build:
 *
 *     scripts/build release && cmake --build build/release --target measure_adaptors
 *     build/release/bench/measure/measure_adaptors          one thread in the process
 *     build/release/bench/measure/measure_adaptors threads  one measures, and one sleeps
 */
#include <raffia/raffia.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, PAIRS = 400000 };

static _Alignas(4096) char memory[4096];

static raffia_status give(void *context, raffia_stream stream, size_t bytes, size_t alignment,
                          void **address_p)
{
    (void)stream;
    (void)bytes;
    (void)alignment;
    *address_p = context;
    return RAFFIA_OK;
}

static raffia_status take(void *context, raffia_stream stream, void *address, size_t bytes,
                          size_t alignment)
{
    (void)context;
    (void)stream;
    (void)address;
    (void)bytes;
    (void)alignment;
    return RAFFIA_OK;
}

static unsigned properties(void *context)
{
    (void)context;
    return RAFFIA_HOST_ACCESSIBLE | RAFFIA_DEVICE_ACCESSIBLE;
}

static bool is_equal(void *context, void *other)
{
    return context == other;
}

static const raffia_resource_ops ops = {.struct_size = sizeof ops,
                                        .allocate = give,
                                        .deallocate = take,
                                        .properties = properties,
                                        .is_equal = is_equal};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double pair_ns(raffia_resource_ref ref, size_t pairs)
{
    double least = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        const double start = now();
        for (size_t i = 0; i < pairs; i++) {
            void *block;
            if (raffia_allocate(ref, NULL, 1024, 256, &block) ||
                raffia_deallocate(ref, NULL, block, 1024, 256))
                return -1;
        }
        const double each = (now() - start) / (double)pairs;
        if (each < least)
            least = each;
    }
    return least;
}

static double base;

static void report(const char *name, raffia_status status, raffia_resource *resource, size_t pairs)
{
    if (status) {
        printf("%-22s %s\n", name, raffia_last_error());
        return;
    }
    const double each = pair_ns(raffia_ref(resource), pairs);
    printf("%-22s %7.1f ns a pair, %7.1f over upstream\n", name, each, each - base);
    raffia_resource_release(resource);
}

static void drop_row(void *context, const char *row)
{
    (void)context;
    (void)row;
}

static bool no(size_t bytes, void *argument)
{
    (void)bytes;
    (void)argument;
    return false;
}

static void *sleep_on(void *argument)
{
    (void)argument;
    for (;;)
        pause();
    return NULL;
}

#define OPTIONS(type, ...) (&(type){.struct_size = sizeof(type), __VA_ARGS__})

int main(int count, char **arguments)
{
    pthread_t thread;
    raffia_resource *made = NULL;
    raffia_status status;
    const raffia_resource_ref below = {&ops, memory};
    if (count > 1 && strcmp(arguments[1], "threads") == 0 &&
        pthread_create(&thread, NULL, sleep_on, NULL))
        return 1;
    base = pair_ns(below, PAIRS);
    printf("%-22s %7.1f ns a pair\n", "upstream", base);
    status = raffia_limiting_resource_create(below, 1 << 20, &made);
    report("limiting", status, made, PAIRS);
    status = raffia_failure_callback_resource_create(
        below, OPTIONS(raffia_failure_callback_options, .callback = no), &made);
    report("failure-callback", status, made, PAIRS);
    status = raffia_aligned_resource_create(below, NULL, &made);
    report("aligned, passing", status, made, PAIRS);
    status = raffia_statistics_resource_create(below, &made);
    report("statistics", status, made, PAIRS);
    status = raffia_thread_safe_resource_create(below, &made);
    report("thread-safe", status, made, PAIRS);
    status = raffia_tracking_resource_create(below, NULL, &made);
    report("tracking", status, made, PAIRS);
    status = raffia_tracking_resource_create(
        below, OPTIONS(raffia_tracking_options, .capture_stacks = true), &made);
    report("tracking with stacks", status, made, PAIRS / 100);
    status = raffia_logging_resource_create(
        below, OPTIONS(raffia_logging_options, .sink = drop_row), &made);
    report("logging to a function", status, made, PAIRS / 10);
    status = raffia_logging_resource_create(
        below, OPTIONS(raffia_logging_options, .path = "/dev/null"), &made);
    report("logging to /dev/null", status, made, PAIRS / 10);
    base = 0;
    status = raffia_device_resource_create(
        OPTIONS(raffia_device_resource_options, .device = "host"), &made);
    report("device (host)", status, made, PAIRS);
    status =
        raffia_pool_resource_create(OPTIONS(raffia_pool_options, .device = "host",
                                            .initial_bytes = 64 << 20, .maximum_bytes = 64 << 20),
                                    &made);
    report("pool (host)", status, made, PAIRS);
    raffia_resource *device;
    if (raffia_device_resource_create(OPTIONS(raffia_device_resource_options, .device = "host"),
                                      &device))
        return 1;
    status = raffia_fixed_size_resource_create(raffia_ref(device), NULL, &made);
    report("fixed-size", status, made, PAIRS);
    status = raffia_arena_resource_create(
        raffia_ref(device), OPTIONS(raffia_arena_resource_options, .arena_bytes = 64 << 20), &made);
    report("arena", status, made, PAIRS);
    status = raffia_binning_resource_create(
        raffia_ref(device),
        OPTIONS(raffia_binning_resource_options, .min_exponent = 10, .max_exponent = 20), &made);
    report("binning", status, made, PAIRS);
    raffia_resource_release(device);
    return 0;
}
