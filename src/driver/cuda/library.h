/*
 * The driver library, opened once for the process, and its functions.
 */
#ifndef DRIVER_CUDA_LIBRARY_H
#define DRIVER_CUDA_LIBRARY_H

#include "core/fault.h"
#include "driver/cuda/cuda_api.h"

#include <raffia/status.h>

#include <stdbool.h>

/* The oldest driver that has all we need: cuStreamGetId() came with it. */
#define CUDA_VERSION_MIN 12000

/* Devices looked at; more of them have not been seen in one machine. */
#define CUDA_DEVICES_MAX 64

struct cuda_library {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): they are declarations */
#define CUDA_LIBRARY_FIELD(symbol, name, version, parameters) CUresult(*symbol) parameters;
    CUDA_API_FUNCTIONS(CUDA_LIBRARY_FIELD)
    CUDA_API_OPTIONAL(CUDA_LIBRARY_FIELD) /* NULL where the driver lacks them */
#undef CUDA_LIBRARY_FIELD
    int version;      /* of the driver, 1000 * major + 10 * minor */
    int device_count; /* at most CUDA_DEVICES_MAX */
};

enum cuda_presence {
    CUDA_UNKNOWN = 0, /* nobody has asked */
    CUDA_READY,       /* there is at least one device */
    CUDA_NO_DEVICE,   /* a driver, but no GPU */
    CUDA_NO_LIBRARY,  /* no driver */
    CUDA_BROKEN,      /* a driver that does not work, or is too old */
};

/* Valid once cuda_library_open() said READY. */
extern struct cuda_library cuda_library;

/* Opens the library when first called; what it found is remembered for good. For anything but READY
 * the failure is recorded, each time. Not to be called where cuda_is_forked(). */
enum cuda_presence cuda_library_open(void);

/* What cuda_library_open() found; UNKNOWN before the first call. */
enum cuda_presence cuda_library_presence(void);

/* Whether the library was opened, and found to work, by a parent of this process. Then nothing of
 * it may be used here: the driver does not support it. */
bool cuda_is_forked(void);

/* A call of the library, as a fault point. */
#define CUDA_CALL(function, ...)                                                                   \
    (core_fault("cuda." #function) ? CUDA_ERROR_OUT_OF_MEMORY : cuda_library.function(__VA_ARGS__))

/* A call that gives something back: it fails only when misused, so no fault is put into it. */
#define CUDA_GIVE_BACK(function, ...) (cuda_library.function(__VA_ARGS__))

#endif
