#include "cli/input.h"

#include "cli/interrupt.h"
#include "core/checked.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* Most bytes of one read(2). */
#define READ_MAX ((size_t)4 << 20)

raffia_status input_open(const char *path, int *fd_p)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return core_error_errno(core_status_of_errno(errno), errno, "%s: cannot open the file",
                                path);
    *fd_p = fd;
    return RAFFIA_OK;
}

raffia_status input_read(const char *path, int fd, uint64_t offset, void *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        if (cli_interrupted())
            return cli_interrupt_check();
        ssize_t got =
            pread(fd, (char *)to + done, core_min(bytes - done, READ_MAX), (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return core_error_errno(core_status_of_errno(errno), errno, "%s: cannot read the file",
                                    path);
        if (got == 0)
            return core_error(RAFFIA_ERROR_CHANGED,
                              "%s: the file became shorter since its header was read", path);
        done += (size_t)got;
    }
    return RAFFIA_OK;
}
