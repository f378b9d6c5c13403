/*
 * The fake from the inside. One lock guards everything; fake_enter() takes it.
 */
#ifndef TESTS_DRIVER_FAKE_H
#define TESTS_DRIVER_FAKE_H

#include "fake_cuda.h"

enum fake_function {
#define FAKE_ENUM(symbol, name, version, parameters) FAKE_##symbol,
    CUDA_API_FUNCTIONS(FAKE_ENUM) CUDA_API_OPTIONAL(FAKE_ENUM)
#undef FAKE_ENUM
        FAKE_FUNCTION_COUNT
};

/* Takes the lock, counts the call and returns what it must fail with at once, if anything. */
CUresult fake_enter(enum fake_function function);
void fake_leave(void);

/* The body of a call. */
#define FAKE_CALL(symbol, expression)                                                              \
    do {                                                                                           \
        CUresult fake_result = fake_enter(FAKE_##symbol);                                          \
        if (!fake_result)                                                                          \
            fake_result = (expression);                                                            \
        fake_leave();                                                                              \
        return fake_result;                                                                        \
    } while (0)

/* Counts a misuse, keeps the sentence of the first, and returns `result`. */
CUresult fake_misuse(CUresult result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

extern struct fake_cuda_config fake_config;

/* Objects of one kind, found by their address. */
#define FAKE_SET_MAX 4096
struct fake_set {
    void *items[FAKE_SET_MAX];
    size_t count;
};

void fake_set_add(struct fake_set *set, void *item);
bool fake_set_has(const struct fake_set *set, const void *item);
void fake_set_remove(struct fake_set *set, void *item);
void fake_set_clear(struct fake_set *set, void (*end)(void *item));

/* Stretches of addresses. */
struct fake_span {
    CUdeviceptr at;
    size_t bytes;
    int device;
};

static inline void *fake_pointer(CUdeviceptr at)
{
    return (void *)(uintptr_t)at;
}

struct fake_span *fake_span_at(const struct fake_set *set, CUdeviceptr at);
bool fake_spans_overlap(const struct fake_set *set, CUdeviceptr at, size_t bytes);
struct fake_span *fake_span_new(CUdeviceptr at, size_t bytes, int device);
void fake_span_end(void *item); /* its addresses go, too */

/* Addresses of the machine, so that a wrong access is a fault as it is on a device. */
CUresult fake_map_bare(size_t bytes, size_t alignment, CUdeviceptr *at, int protection);

/* Memory of a device. */
CUresult fake_take(int device, size_t bytes);
void fake_give(int device, size_t bytes);
size_t fake_used(int device);

struct CUctx_st {
    int device;
};

/* Device of the calling thread's current context; -1 without one. */
int fake_current_device(void);
CUcontext fake_current_context(void);

/* Whether an unsafe call would disturb a capture; then it is a misuse. */
CUresult fake_check_capture(const char *call);
CUstreamCaptureMode *fake_thread_mode(void);
bool fake_is_capturing(void);

/* Whether [at, at + bytes) can be used by the current device: mapped with access, one block, or
 * host memory. */
CUresult fake_check_memory(CUdeviceptr at, size_t bytes, bool write);

/* The mapping that contains an address, and the range that it lies in. */
bool fake_mapped_at(CUdeviceptr at, struct fake_span *mapping, struct fake_span *range);

CUresult fake_check_block(CUdeviceptr at, size_t bytes);

/* The live block of a pool that contains an address, or NULL; and whether memory of a pool is used
 * that nobody was given. */
struct fake_span *fake_pooled_at(CUdeviceptr at);
CUresult fake_check_pooled(CUdeviceptr at, size_t bytes);

/* The program waited for work: pools give back what is beyond their thresholds. */
void fake_pools_settle(void);

/* A stream for a call that a graph must not record: a misuse if it is being captured. */
CUresult fake_check_uncaptured(CUstream stream, const char *call);

/* For resets and reports. */
void fake_mapped_clear(void);
void fake_mapped_query(struct fake_cuda_usage *usage);
void fake_regular_clear(void);
void fake_pools_clear(void);
void fake_pools_query(struct fake_cuda_usage *usage);
void fake_regular_query(struct fake_cuda_usage *usage);
void fake_memory_clear(void);
void fake_memory_query(struct fake_cuda_usage *usage);
void fake_work_clear(void);
void fake_work_query(struct fake_cuda_usage *usage);
void fake_devices_clear(void);
void fake_devices_query(struct fake_cuda_usage *usage);
CUresult fake_poisoned(void);

#endif
