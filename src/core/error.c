#include "core/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The analyser's versions of error.h are for callers. */
#undef core_error
#undef core_error_errno
#undef core_error_native
#undef core_error_prefix
#undef core_error_prefix_as

/* One pointer of thread-local storage for the library: a dlopen()ed library gets little of it. */
static _Thread_local struct core_error_record *thread_record;

/* Used when the record of a thread cannot be allocated: the status survives, the sentence does not.
 */
static _Thread_local raffia_status status_without_record;

static _Thread_local unsigned long recorded;

unsigned long core_error_count(void)
{
    return recorded;
}

static pthread_key_t record_key;
static pthread_once_t record_once = PTHREAD_ONCE_INIT;
static int record_key_error;

static void free_record(void *record)
{
    free(record);
    thread_record = NULL;
}

static void make_record_key(void)
{
    record_key_error = pthread_key_create(&record_key, free_record);
}

/* Plain malloc on purpose: fault injection must not disturb the reporting of the injected fault. */
static struct core_error_record *own_record(void)
{
    if (thread_record)
        return thread_record;
    pthread_once(&record_once, make_record_key);
    if (record_key_error)
        return NULL;
    struct core_error_record *record = calloc(1, sizeof *record);
    if (!record)
        return NULL;
    if (pthread_setspecific(record_key, record)) {
        free(record);
        return NULL;
    }
    thread_record = record;
    return record;
}

/* Ends a text that was cut in "..."; `length` is what it would have needed. */
static void mark_cut(char *text, int length)
{
    if (length >= CORE_ERROR_MAX)
        memcpy(text + CORE_ERROR_MAX - 4, "...", 4);
}

RAFFIA_PRINTF(2, 0)
static void format_text(char *text, const char *format, va_list arguments)
{
    mark_cut(text, vsnprintf(text, CORE_ERROR_MAX, format, arguments));
}

RAFFIA_PRINTF(3, 0)
static raffia_status record_error(raffia_status status, const char *native, const char *format,
                                  va_list arguments)
{
    status_without_record = status;
    recorded++;
    struct core_error_record *record = own_record();
    if (!record)
        return status;
    /* Not in place: the arguments may be the sentence and native error recorded before. */
    char text[CORE_ERROR_MAX];
    format_text(text, format, arguments);
    memcpy(record->text, text, sizeof text);
    size_t length = strnlen(native, sizeof record->native - 1);
    memmove(record->native, native, length);
    record->native[length] = '\0';
    record->status = status;
    return status;
}

raffia_status core_error(raffia_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_error(status, "", format, arguments);
    va_end(arguments);
    return status;
}

raffia_status core_error_native(raffia_status status, const char *native_name, const char *format,
                                ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_error(status, native_name, format, arguments);
    va_end(arguments);
    return status;
}

raffia_status core_error_errno(raffia_status status, int error_number, const char *format, ...)
{
    const char *name = strerrorname_np(error_number);
    va_list arguments;
    va_start(arguments, format);
    record_error(status, name ? name : "", format, arguments);
    va_end(arguments);
    struct core_error_record *record = thread_record;
    if (record) {
        size_t length = strlen(record->text);
        char cause[128];
        int more = snprintf(record->text + length, CORE_ERROR_MAX - length, ": %s",
                            strerror_r(error_number, cause, sizeof cause));
        mark_cut(record->text, (int)length + more);
    }
    return status;
}

RAFFIA_PRINTF(2, 0)
static void prefix_text(struct core_error_record *record, const char *format, va_list arguments)
{
    char text[CORE_ERROR_MAX];
    format_text(text, format, arguments);
    size_t length = strlen(text);
    int more = snprintf(text + length, sizeof text - length, ": %s", record->text);
    mark_cut(text, (int)length + more);
    memcpy(record->text, text, sizeof text);
}

raffia_status core_error_prefix(const char *format, ...)
{
    struct core_error_record *record = own_record();
    if (!record)
        return status_without_record;
    va_list arguments;
    va_start(arguments, format);
    prefix_text(record, format, arguments);
    va_end(arguments);
    return record->status;
}

raffia_status core_error_prefix_as(raffia_status status, const char *format, ...)
{
    status_without_record = status;
    recorded++;
    struct core_error_record *record = own_record();
    if (!record)
        return status;
    record->status = status;
    va_list arguments;
    va_start(arguments, format);
    prefix_text(record, format, arguments);
    va_end(arguments);
    return status;
}

void core_error_save(struct core_error_record *record)
{
    if (thread_record)
        *record = *thread_record;
    else
        *record = (struct core_error_record){.status = status_without_record};
}

raffia_status core_error_restore(const struct core_error_record *saved)
{
    status_without_record = saved->status;
    recorded++;
    struct core_error_record *record = own_record();
    if (record)
        *record = *saved;
    return saved->status;
}

raffia_status core_status_of_errno(int error_number)
{
    switch (error_number) {
    case ENOMEM:
    case ENOSPC:
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    case EACCES:
    case EPERM:
        return RAFFIA_ERROR_PERMISSION;
    case ENOENT:
    case ENOTDIR:
        return RAFFIA_ERROR_NOT_FOUND;
    case EMFILE:
    case ENFILE:
        return RAFFIA_ERROR_LIMIT;
    case ENOSYS:
    case EOPNOTSUPP:
    case ENODEV:
        return RAFFIA_ERROR_UNSUPPORTED;
    default:
        return RAFFIA_ERROR_IO;
    }
}

const char *raffia_last_error(void)
{
    if (thread_record)
        return thread_record->text;
    return status_without_record ? raffia_status_text(status_without_record) : "";
}

raffia_status raffia_last_status(void)
{
    return thread_record ? thread_record->status : status_without_record;
}

const char *raffia_last_native_error(void)
{
    return thread_record ? thread_record->native : "";
}
