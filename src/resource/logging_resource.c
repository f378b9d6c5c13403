/* Writes a row for each call, as RMM's logging adaptor does, whose tools read them. */
#include "core/error.h"
#include "core/fault.h"
#include "core/options.h"
#include "core/process.h"
#include "core/sys.h"
#include "resource/adaptor.h"

#include <raffia/adaptors.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROW_MAX      160
#define BUFFER_BYTES ((size_t)16 << 10)

struct logging_resource {
    struct resource_adaptor adaptor;
    raffia_row_sink sink;
    void *sink_context;
    bool auto_flush;
    pthread_mutex_t lock; /* one row at a time, and one free with its row */
    int file;             /* -1 with a sink */
    bool lost;            /* a row could not be written since the last flush */
    size_t held;          /* bytes in the buffer */
    /* Not the C library's: that would be written a second time by a child that exits. */
    char buffer[BUFFER_BYTES];
};

/* Lock held. What cannot be written is dropped. */
static void write_out(struct logging_resource *self)
{
    size_t done = 0;
    while (done < self->held) {
        const ssize_t wrote = core_fault("write")
                                  ? (errno = ENOSPC, -1)
                                  : write(self->file, self->buffer + done, self->held - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            self->lost = true;
            break;
        }
        done += (size_t)wrote;
    }
    self->held = 0;
}

/* Lock held. The text is much smaller than the buffer. */
static void write_text(struct logging_resource *self, const char *text)
{
    const size_t length = strlen(text);
    if (self->sink) {
        self->sink(self->sink_context, text);
        return;
    }
    if (length > sizeof self->buffer - self->held)
        write_out(self);
    memcpy(self->buffer + self->held, text, length);
    self->held += length;
    if (self->auto_flush)
        write_out(self);
}

static long seconds_east; /* of UTC, where the machine is */

/* The C library guards its time zones by a lock that a child inherits locked if another thread held
 * it at the fork. So it is asked once, and a fork waits for the lock of the process. */
static void ask_for_time_zone(void)
{
    const time_t now = time(NULL);
    struct tm local;
    core_process_lock();
    if (localtime_r(&now, &local))
        seconds_east = local.tm_gmtoff;
    core_process_unlock();
}

static void format_time(const struct timespec *now, size_t capacity, char text[static 1])
{
    static pthread_once_t asked = PTHREAD_ONCE_INIT;
    pthread_once(&asked, ask_for_time_zone);
    const long long local = (long long)now->tv_sec + seconds_east;
    const unsigned second = (unsigned)(local % (24 * 60 * 60));
    snprintf(text, capacity, "%02u:%02u:%02u.%06ld", second / 3600, second / 60 % 60, second % 60,
             now->tv_nsec / 1000);
}

static void format_row(char row[static ROW_MAX], const char *action, const void *address,
                       size_t bytes, raffia_stream stream)
{
    char time_text[24], address_text[24] = "(nil)", stream_text[24] = "0";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    format_time(&now, sizeof time_text, time_text);
    if (address)
        snprintf(address_text, sizeof address_text, "0x%llx",
                 (unsigned long long)(uintptr_t)address);
    if (stream)
        snprintf(stream_text, sizeof stream_text, "0x%llx", (unsigned long long)(uintptr_t)stream);
    snprintf(row, ROW_MAX, "%ld,%s,%s,%s,%zu,%s\n", (long)syscall(SYS_gettid), time_text, action,
             address_text, bytes, stream_text);
}

static raffia_status logging_allocate(void *context, raffia_stream stream, size_t bytes,
                                      size_t alignment, void **address_p)
{
    struct logging_resource *self = context;
    char row[ROW_MAX];
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    raffia_status status =
        resource_adaptor_allocate(&self->adaptor, stream, bytes, alignment, address_p);
    format_row(row, status ? "allocate failure" : "allocate", status ? NULL : *address_p, bytes,
               stream);
    pthread_mutex_lock(&self->lock);
    write_text(self, row);
    pthread_mutex_unlock(&self->lock);
    if (!status && *address_p)
        resource_hold(&self->adaptor.base);
    return status;
}

static raffia_status logging_deallocate(void *context, raffia_stream stream, void *address,
                                        size_t bytes, size_t alignment)
{
    struct logging_resource *self = context;
    char row[ROW_MAX];
    if (resource_is_inherited(&self->adaptor.base))
        return RAFFIA_OK;
    raffia_status status = resource_claim(&self->adaptor.base, address);
    if (status)
        return status;
    format_row(row, "free", address, bytes, stream);
    /* Under the lock, or the block could be written as another thread's before it is free; and what
     * was refused is not written at all. */
    pthread_mutex_lock(&self->lock);
    status = resource_adaptor_deallocate(&self->adaptor, stream, address, bytes, alignment);
    if (!status)
        write_text(self, row);
    pthread_mutex_unlock(&self->lock);
    return resource_settle(&self->adaptor.base, address, status);
}

static void logging_describe(void *context, char *buffer, size_t capacity)
{
    const struct logging_resource *self = context;
    snprintf(buffer, capacity, "logging adaptor, to a %s", self->sink ? "function" : "file");
}

/* RMM: equal with the same upstream and logger. A log is never shared here, so that is identity. */
static const raffia_resource_ops logging_ops = {
    .struct_size = sizeof logging_ops,
    .allocate = logging_allocate,
    .deallocate = logging_deallocate,
    .properties = resource_adaptor_properties,
    .is_equal = resource_is_same,
    .retain = resource_context_retain,
    .release = resource_context_release,
    .usable_size = resource_adaptor_usable_size,
    .find = resource_adaptor_find,
    .walk = resource_adaptor_walk,
    .upstream = resource_adaptor_upstream,
    .describe = logging_describe,
};

static void logging_destroy(struct raffia_resource *resource)
{
    struct logging_resource *self = (struct logging_resource *)resource;
    if (resource_is_inherited(resource))
        return;
    if (self->file >= 0) {
        write_out(self);
        (void)sys_close(self->file);
    }
    pthread_mutex_destroy(&self->lock);
    resource_adaptor_end(&self->adaptor);
}

static raffia_status open_file(const char *path, int *file_p)
{
    const int file = core_fault("open")
                         ? (errno = ENOSPC, -1)
                         : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0)
        return core_error_errno(errno == EACCES || errno == EPERM ? RAFFIA_ERROR_PERMISSION
                                                                  : RAFFIA_ERROR_IO,
                                errno, "cannot write the log '%s'", path);
    *file_p = file;
    return RAFFIA_OK;
}

static raffia_status find_target(const raffia_logging_options *o, int *file_p)
{
    const char *path = o->path ? o->path : getenv("RMM_LOG_FILE");
    if (o->path && o->sink)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_logging_options: a path and a sink exclude each other");
    if (o->sink)
        return RAFFIA_OK;
    if (!path || !*path)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "a logging adaptor needs a path or a sink, or a file named by the "
                          "variable RMM_LOG_FILE");
    return open_file(path, file_p);
}

raffia_status raffia_logging_resource_create(raffia_resource_ref upstream,
                                             const raffia_logging_options *options,
                                             raffia_resource **resource_p)
{
    raffia_logging_options o;
    struct logging_resource *self;
    int file = -1;
    raffia_status status = core_options_copy(&o, sizeof o, options, "raffia_logging_options");
    if (!status)
        status = find_target(&o, &file);
    if (status)
        return status;
    status = resource_adaptor_make(sizeof *self, upstream, &logging_ops, logging_destroy,
                                   "raffia_logging_resource_create", resource_p, &self);
    if (status) {
        if (file >= 0)
            (void)sys_close(file);
        return status;
    }
    self->sink = o.sink;
    self->sink_context = o.sink_context;
    self->auto_flush = o.auto_flush;
    self->file = file;
    pthread_mutex_init(&self->lock, NULL);
    write_text(self, "Thread,Time,Action,Pointer,Size,Stream\n");
    *resource_p = &self->adaptor.base;
    return RAFFIA_OK;
}

raffia_status raffia_logging_flush(raffia_resource_ref logging)
{
    if (logging.ops != &logging_ops)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "raffia_logging_flush: the resource is no logging adaptor");
    struct logging_resource *self = logging.context;
    if (resource_is_inherited(&self->adaptor.base))
        return resource_refuse_inherited(&self->adaptor.base);
    pthread_mutex_lock(&self->lock);
    if (self->file >= 0)
        write_out(self);
    const bool lost = self->lost;
    self->lost = false;
    pthread_mutex_unlock(&self->lock);
    return lost ? core_error(RAFFIA_ERROR_IO, "rows of the log of a logging adaptor are lost: its "
                                              "file could not be written")
                : RAFFIA_OK;
}
