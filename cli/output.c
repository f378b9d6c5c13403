#include "cli/output.h"

#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Largest single write: the interrupt flag is looked at in between. */
#define WRITE_MAX ((size_t)8 << 20)

/* To be freed with core_free(). */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return core_strdup(".");
    if (slash == path)
        return core_strdup("/");
    return core_asprintf("%.*s", (int)(slash - path), path);
}

raffia_status output_check_space(const char *directory, uint64_t bytes)
{
    struct statvfs system;
    if (statvfs(directory, &system))
        return core_error_errno(core_status_of_errno(errno), errno,
                                "%s: cannot tell how much room the disk has", directory);
    uint64_t available = (uint64_t)system.f_bavail * system.f_frsize;
    if (available >= bytes)
        return RAFFIA_OK;
    char need[CORE_SIZE_TEXT_MAX], have[CORE_SIZE_TEXT_MAX];
    return core_error(RAFFIA_ERROR_LIMIT, "%s: the disk has %s free and %s are needed", directory,
                      core_format_size(available, have), core_format_size(bytes, need));
}

static raffia_status sync_directory(const char *directory)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return core_error_errno(core_status_of_errno(errno), errno, "%s: cannot open the directory",
                                directory);
    /* Some file systems cannot sync directories and say EINVAL: nothing better is to be had. */
    int failed = fsync(fd) && errno != EINVAL ? errno : 0;
    close(fd);
    if (failed)
        return core_error_errno(RAFFIA_ERROR_IO, failed, "%s: cannot sync the directory",
                                directory);
    return RAFFIA_OK;
}

mode_t output_mode(mode_t wanted)
{
    mode_t mask = umask(0);
    umask(mask);
    return wanted & ~mask;
}

static raffia_status create_temporary(struct output *output)
{
    output->temporary = core_asprintf("%s.partial-XXXXXX", output->path);
    if (!output->temporary)
        return raffia_last_status();
    output->fd = mkostemp(output->temporary, O_CLOEXEC);
    if (output->fd < 0)
        return core_error_errno(core_status_of_errno(errno), errno,
                                "%s: cannot create a file beside it", output->path);
    /* mkostemp() makes files that only their owner can read; ours shall be like any other. */
    (void)!fchmod(output->fd, output_mode(0666));
    return RAFFIA_OK;
}

static void forget(struct output *output)
{
    core_free(output->path);
    core_free(output->temporary);
    *output = (struct output){.fd = -1};
}

/* The rename at the end would put a plain file in the place of a device, a pipe or a socket: for
 * root it takes /dev/null away from the whole machine. */
static raffia_status check_place(const char *path)
{
    struct stat existing;
    if (stat(path, &existing) || S_ISREG(existing.st_mode))
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "'%s' is there and is no regular file: only a regular file is replaced",
                      path);
}

static raffia_status check_directory(const char *path, const char *directory, uint64_t bytes)
{
    if (access(directory, W_OK | X_OK))
        return core_error_errno(core_status_of_errno(errno), errno,
                                "%s: cannot create a file there", path);
    return output_check_space(directory, bytes);
}

raffia_status output_check(const char *path, uint64_t bytes)
{
    raffia_status status = check_place(path);
    if (status)
        return status;
    char *directory = directory_of(path);
    status = directory ? check_directory(path, directory, bytes) : raffia_last_status();
    core_free(directory);
    return status;
}

static bool same_directory(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool output_same_place(const char *a, const char *b)
{
    if (strcmp(base_of(a), base_of(b)) != 0)
        return false;
    char *first = directory_of(a), *second = directory_of(b);
    /* Without memory to tell, the safe answer. */
    const bool same = !first || !second || same_directory(first, second);
    core_free(first);
    core_free(second);
    return same;
}

bool output_is_file(const char *path, const struct stat *other)
{
    struct stat found;
    return stat(path, &found) == 0 && found.st_dev == other->st_dev &&
           found.st_ino == other->st_ino;
}

raffia_status output_open(const char *path, uint64_t bytes, struct output *output)
{
    *output = (struct output){.fd = -1};
    raffia_status status = output_check(path, bytes);
    if (status)
        return status;
    output->path = core_strdup(path);
    status = output->path ? create_temporary(output) : raffia_last_status();
    if (status)
        forget(output);
    return status;
}

raffia_status output_write(struct output *output, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        if (cli_interrupted())
            return core_error(RAFFIA_ERROR_CANCELLED, "%s: interrupted before it was written",
                              output->path);
        ssize_t written = write(output->fd, at, core_min(bytes, WRITE_MAX));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return core_error_errno(core_status_of_errno(errno), errno, "%s: cannot write the file",
                                    output->temporary);
        at += written;
        bytes -= (size_t)written;
    }
    return RAFFIA_OK;
}

static raffia_status sync_parent(const char *path)
{
    char *directory = directory_of(path);
    raffia_status status = directory ? sync_directory(directory) : raffia_last_status();
    core_free(directory);
    return status;
}

raffia_status output_commit(struct output *output, bool durable)
{
    raffia_status status = RAFFIA_OK;
    if (durable && fsync(output->fd))
        status = core_error_errno(core_status_of_errno(errno), errno, "%s: cannot sync the file",
                                  output->temporary);
    else if (cli_interrupted())
        status = core_error(RAFFIA_ERROR_CANCELLED, "%s: interrupted before it was written",
                            output->path);
    else if (rename(output->temporary, output->path))
        status = core_error_errno(core_status_of_errno(errno), errno,
                                  "%s: cannot put the finished file there", output->path);
    if (status) {
        output_abandon(output);
        return status;
    }
    close(output->fd);
    if (durable)
        status = sync_parent(output->path);
    forget(output);
    return status;
}

void output_abandon(struct output *output)
{
    if (output->fd < 0)
        return;
    close(output->fd);
    unlink(output->temporary);
    forget(output);
}

raffia_status output_write_whole(const char *path, const void *data, size_t bytes)
{
    struct output output;
    raffia_status status = output_open(path, bytes, &output);
    if (status)
        return status;
    status = output_write(&output, data, bytes);
    if (!status)
        return output_commit(&output, true);
    output_abandon(&output);
    return status;
}
