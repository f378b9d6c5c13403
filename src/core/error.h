/*
 * The calling thread's last failure.
 *
 * Whoever detects a failure first describes it, with everything it knows: what was asked, what
 * happened, what can be done. Callers pass the status on; they add context only when they know
 * something the detector could not (the file being loaded, the tensor concerned).
 *
 * The functions are cold: the compiler moves the paths that lead to them out of the way.
 */
#ifndef CORE_ERROR_H
#define CORE_ERROR_H

#include <raffia/status.h>

/* Longest sentence kept, its NUL included; a longer one is cut and ends in "...". */
#define CORE_ERROR_MAX 768

/*
 * Records a failure and returns `status`, so that it can be written as
 *     return core_error(RAFFIA_ERROR_IO, "cannot open '%s': %s", path, strerror(errno));
 * The native error is cleared.
 */
raffia_status core_error(raffia_status status, const char *format, ...) RAFFIA_PRINTF(2, 3)
    __attribute__((cold));

/* The same for a failed system call: keeps errno's name ("ENOMEM") as the native error and appends
 * ": " and errno's text to the sentence. */
raffia_status core_error_errno(raffia_status status, int error_number, const char *format, ...)
    RAFFIA_PRINTF(3, 4) __attribute__((cold));

/* The same for a device driver's error, whose name is kept ("CUDA_ERROR_OUT_OF_MEMORY"). */
raffia_status core_error_native(raffia_status status, const char *native_name, const char *format,
                                ...) RAFFIA_PRINTF(3, 4) __attribute__((cold));

/* Puts "context: " in front of the sentence recorded last; status and native error stay. Returns
 * the status recorded. */
raffia_status core_error_prefix(const char *format, ...) RAFFIA_PRINTF(1, 2) __attribute__((cold));

/* The same, and the status becomes `status`: what failed below means something else up here. */
raffia_status core_error_prefix_as(raffia_status status, const char *format, ...)
    RAFFIA_PRINTF(2, 3) __attribute__((cold));

/* Hands a failure from a worker thread to the thread that waits for it. */
struct core_error_record {
    raffia_status status;
    char native[48];
    char text[CORE_ERROR_MAX];
};

void core_error_save(struct core_error_record *record);
raffia_status core_error_restore(const struct core_error_record *record);

/* How many sentences this thread has recorded, those restored among them: whether somebody who
 * failed meanwhile has said why. */
unsigned long core_error_count(void);

/* The status that fits an errno: ENOMEM -> OUT_OF_MEMORY, EACCES -> PERMISSION, ... */
raffia_status core_status_of_errno(int error_number);

/* The static analyser sees one file at a time: it is told here that a failure never reads as a
 * success, else it follows paths on which results are used that were never written. */
#ifdef __clang_analyzer__
static inline raffia_status core_failure(raffia_status status)
{
    if (!status)
        __builtin_unreachable();
    return status;
}
#define core_error(...)           core_failure(core_error(__VA_ARGS__))
#define core_error_errno(...)     core_failure(core_error_errno(__VA_ARGS__))
#define core_error_native(...)    core_failure(core_error_native(__VA_ARGS__))
#define core_error_prefix(...)    core_failure(core_error_prefix(__VA_ARGS__))
#define core_error_prefix_as(...) core_failure(core_error_prefix_as(__VA_ARGS__))
#endif

#endif
