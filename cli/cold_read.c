#include "cli/cold_read.h"

#include "cli/input.h"
#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* One read; enough for the disk to be busy with it for a while. */
#define PIECE_BYTES ((size_t)2 << 20)

raffia_status cold_evict(const struct model_summary *files)
{
    for (size_t i = 0; i < files->file_count; i++) {
        int fd;
        raffia_status status = input_open(files->files[i].path, &fd);
        if (status)
            return status;
        /* Pages that are not on the disk yet cannot be dropped. */
        int failed = fdatasync(fd);
        if (!failed)
            errno = failed = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
        if (failed)
            return core_error_errno(RAFFIA_ERROR_IO, errno,
                                    "%s: the page cache would not let go of it",
                                    files->files[i].path);
    }
    return RAFFIA_OK;
}

struct job {
    const struct model_summary *files;
    int *fds;
    atomic_size_t next; /* piece, counted over all files */
};

/* Finds a piece by its number; false behind the last. */
static bool find_piece(const struct job *job, size_t number, size_t *file_p, uint64_t *offset_p)
{
    for (size_t i = 0; i < job->files->file_count; i++) {
        const size_t pieces = (size_t)(job->files->files[i].bytes / PIECE_BYTES) + 1;
        if (number < pieces) {
            *file_p = i;
            *offset_p = (uint64_t)number * PIECE_BYTES;
            return true;
        }
        number -= pieces;
    }
    return false;
}

static raffia_status read_piece(const struct job *job, size_t file, uint64_t offset, void *buffer)
{
    /* At the end of a file there is less to read, and nothing is just as good. */
    if (pread(job->fds[file], buffer, PIECE_BYTES, (off_t)offset) >= 0)
        return RAFFIA_OK;
    return core_error_errno(errno == EINVAL ? RAFFIA_ERROR_UNSUPPORTED : RAFFIA_ERROR_IO, errno,
                            "%s: a direct read failed", job->files->files[file].path);
}

static raffia_status read_share(void *context, unsigned index, unsigned count)
{
    (void)index;
    (void)count;
    struct job *job = context;
    void *buffer = aligned_alloc(PIECE_BYTES, PIECE_BYTES);
    if (!buffer)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "no buffer to read into");
    (void)!madvise(buffer, PIECE_BYTES, MADV_HUGEPAGE);
    raffia_status status = RAFFIA_OK;
    size_t file;
    uint64_t offset;
    while (!status && find_piece(job, atomic_fetch_add(&job->next, 1), &file, &offset))
        if (!(status = cli_interrupt_check()))
            status = read_piece(job, file, offset, buffer);
    free(buffer);
    return status;
}

static raffia_status open_directly(const char *path, int *fd_p)
{
    *fd_p = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (*fd_p >= 0)
        return RAFFIA_OK;
    return core_error_errno(errno == EINVAL ? RAFFIA_ERROR_UNSUPPORTED : RAFFIA_ERROR_IO, errno,
                            "%s: cannot be opened for direct reads", path);
}

raffia_status cold_read(const struct model_summary *files, unsigned threads, double *seconds_p)
{
    struct job job = {.files = files};
    job.fds = core_calloc(core_max(files->file_count, 1), sizeof *job.fds);
    if (!job.fds)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = RAFFIA_OK;
    size_t opened = 0;
    double started = core_clock_seconds();
    while (!status && opened < files->file_count) {
        status = open_directly(files->files[opened].path, &job.fds[opened]);
        opened += status ? 0 : 1;
    }
    if (!status)
        status = core_parallel(threads, read_share, &job);
    if (!status)
        *seconds_p = core_clock_seconds() - started;
    for (size_t i = 0; i < opened; i++)
        close(job.fds[i]);
    core_free(job.fds);
    return status;
}
