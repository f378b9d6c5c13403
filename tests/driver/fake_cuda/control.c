/* The fake as tests set it up, and what every call begins with. */
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fake_cuda_config fake_config = {
    .devices = 1,
    .device_bytes = (size_t)1 << 30,
    .granularity = (size_t)2 << 20,
    .recommended = (size_t)2 << 20,
    .version = 12080,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t owner; /* who initialised it */
static size_t misuses;
static char first_misuse[160];

static struct {
    const char *symbol;
    long calls;
    long fail_in; /* calls until the one that fails; 0: none does */
    CUresult fail_with;
} functions[] = {
#define ROW(symbol, name, version, parameters) {#symbol, 0, 0, 0},
    CUDA_API_FUNCTIONS(ROW) CUDA_API_OPTIONAL(ROW)
#undef ROW
};

/* Calls that work without a context, or in a lost one. */
static bool needs_nothing(enum fake_function function)
{
    switch (function) {
    case FAKE_cuInit:
    case FAKE_cuDriverGetVersion:
    case FAKE_cuGetErrorName:
    case FAKE_cuGetErrorString:
    case FAKE_cuCtxGetCurrent:
    case FAKE_cuCtxPushCurrent_v2:
    case FAKE_cuCtxPopCurrent_v2:
    case FAKE_cuThreadExchangeStreamCaptureMode:
        return true;
    default:
        return false;
    }
}

CUresult fake_enter(enum fake_function function)
{
    pthread_mutex_lock(&lock);
    functions[function].calls++;
    if (function == FAKE_cuInit && !owner)
        owner = getpid();
    if (functions[function].fail_in > 0 && --functions[function].fail_in == 0)
        return functions[function].fail_with;
    if (function == FAKE_cuDriverGetVersion || function == FAKE_cuGetErrorName ||
        function == FAKE_cuGetErrorString)
        return CUDA_SUCCESS;
    if (owner != getpid())
        return fake_misuse(CUDA_ERROR_NOT_INITIALIZED, "%s without cuInit, or in a forked child",
                           functions[function].symbol);
    return needs_nothing(function) ? CUDA_SUCCESS : fake_poisoned();
}

void fake_leave(void)
{
    pthread_mutex_unlock(&lock);
}

CUresult fake_misuse(CUresult result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!misuses++)
        vsnprintf(first_misuse, sizeof first_misuse, format, arguments);
    va_end(arguments);
    return result;
}

void fake_cuda_reset(const struct fake_cuda_config *config)
{
    pthread_mutex_lock(&lock);
    fake_work_clear();
    fake_memory_clear();
    fake_devices_clear();
    struct fake_cuda_config c = config ? *config : (struct fake_cuda_config){0};
    c.devices = !c.devices ? 1 : c.devices < 0 ? 0 : c.devices;
    c.device_bytes = c.device_bytes ? c.device_bytes : (size_t)1 << 30;
    c.granularity = c.granularity ? c.granularity : (size_t)2 << 20;
    c.recommended = c.recommended ? c.recommended : c.granularity;
    c.version = c.version ? c.version : 12080;
    fake_config = c;
    for (int i = 0; i < FAKE_FUNCTION_COUNT; i++)
        functions[i].calls = functions[i].fail_in = 0;
    misuses = 0;
    first_misuse[0] = '\0';
    pthread_mutex_unlock(&lock);
}

static int find(const char *symbol)
{
    for (int i = 0; i < FAKE_FUNCTION_COUNT; i++)
        if (!strcmp(functions[i].symbol, symbol))
            return i;
    fprintf(stderr, "the fake has no function %s\n", symbol);
    return -1;
}

void fake_cuda_fail(const char *symbol, long n, CUresult result)
{
    int i = find(symbol);
    if (i < 0)
        exit(1); /* a test would wait for it in vain */
    pthread_mutex_lock(&lock);
    functions[i].fail_in = n;
    functions[i].fail_with = result;
    pthread_mutex_unlock(&lock);
}

long fake_cuda_calls(const char *symbol)
{
    int i = find(symbol);
    if (i < 0)
        return -1;
    pthread_mutex_lock(&lock);
    long calls = functions[i].calls;
    pthread_mutex_unlock(&lock);
    return calls;
}

void fake_cuda_query(struct fake_cuda_usage *usage)
{
    pthread_mutex_lock(&lock);
    memset(usage, 0, sizeof *usage);
    fake_memory_query(usage);
    fake_work_query(usage);
    fake_devices_query(usage);
    usage->misuses = misuses;
    memcpy(usage->first_misuse, first_misuse, sizeof first_misuse);
    pthread_mutex_unlock(&lock);
}

void fake_set_add(struct fake_set *set, void *item)
{
    if (set->count == FAKE_SET_MAX) {
        fprintf(stderr, "the fake is full\n");
        exit(1);
    }
    set->items[set->count++] = item;
}

bool fake_set_has(const struct fake_set *set, const void *item)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i] == item)
            return true;
    return false;
}

void fake_set_remove(struct fake_set *set, void *item)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->items[i] == item) {
            set->items[i] = set->items[--set->count];
            return;
        }
}

void fake_set_clear(struct fake_set *set, void (*end)(void *item))
{
    while (set->count)
        end(set->items[--set->count]);
}
