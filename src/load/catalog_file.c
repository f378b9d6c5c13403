#include "load/catalog_file.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/sys.h"
#include "load/catalog_show.h"

#include <errno.h>
#include <fcntl.h>

static raffia_status not_regular(const char *path)
{
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "%s: not a regular file; a model is a file or a directory of files",
                      catalog_show_path(path).text);
}

static raffia_status open_failed(const char *path, int error_number)
{
    if (error_number == ENXIO) /* a socket */
        return not_regular(path);
    return core_error_errno(core_status_of_errno(error_number), error_number,
                            "%s: cannot open the file%s", catalog_show_path(path).text,
                            error_number == EMFILE ? " (ulimit -n raises the limit)" : "");
}

raffia_status catalog_file_open(const char *path, struct catalog_file *file, bool *directory_p)
{
    /* O_NONBLOCK: a pipe without a writer must not hold us up. It means nothing to regular files.
     */
    int fd;
    do
        fd = sys_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && errno == EINTR); /* network file systems */
    if (fd < 0)
        return open_failed(path, errno);
    raffia_status status = RAFFIA_OK;
    bool directory = false;
    char *path_copy = NULL;
    struct stat facts;
    if (sys_fstat(fd, &facts)) {
        status = core_error_errno(core_status_of_errno(errno), errno, "%s: cannot stat the file",
                                  catalog_show_path(path).text);
        goto close_fd;
    }
    if (!S_ISREG(facts.st_mode)) {
        directory = S_ISDIR(facts.st_mode) && directory_p;
        status = directory ? RAFFIA_OK : not_regular(path);
        goto close_fd;
    }
    path_copy = core_strdup(path);
    if (!path_copy) {
        status = core_error_prefix("%s", catalog_show_path(path).text);
        goto close_fd;
    }
    *file = (struct catalog_file){.path = path_copy,
                                  .fd = fd,
                                  .bytes = (uint64_t)facts.st_size,
                                  .device = facts.st_dev,
                                  .inode = facts.st_ino,
                                  .modified = facts.st_mtim};
    if (directory_p)
        *directory_p = false;
    return RAFFIA_OK;
close_fd:
    sys_close(fd);
    if (!status)
        *directory_p = directory;
    return status;
}

raffia_status catalog_file_read(const struct catalog_file *file, void *buffer, size_t bytes,
                                uint64_t offset)
{
    char *next = buffer;
    while (bytes) {
        ssize_t got = sys_pread(file->fd, next, bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return core_error_errno(
                core_status_of_errno(errno), errno, "%s: cannot read %zu bytes at offset %llu",
                catalog_show_path(file->path).text, bytes, (unsigned long long)offset);
        if (got == 0)
            return core_error(RAFFIA_ERROR_CHANGED,
                              "%s: the file ended at offset %llu although it had %llu bytes when "
                              "it was opened",
                              catalog_show_path(file->path).text, (unsigned long long)offset,
                              (unsigned long long)file->bytes);
        next += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return RAFFIA_OK;
}

void catalog_file_clear(struct catalog_file *file)
{
    if (file->fd >= 0)
        sys_close(file->fd);
    core_free(file->path);
    *file = CATALOG_FILE_CLOSED;
}
