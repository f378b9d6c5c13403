#include "memory_group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION_1 "/sys/fs/cgroup/memory"
#define VERSION_2 "/sys/fs/cgroup"

#define PATH_BYTES  256
#define SETTLE_WAIT 1000 /* microseconds */

static char group[PATH_BYTES / 2];
static bool is_version_1;

static bool write_text(const char *name, const char *text)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", group, name);
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t written = write(fd, text, strlen(text));
    return close(fd) == 0 && written == (ssize_t)strlen(text);
}

static bool exists(const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", group, name);
    return access(path, W_OK) == 0;
}

bool memory_group_make(void)
{
    is_version_1 = access(VERSION_1 "/memory.limit_in_bytes", R_OK) == 0;
    snprintf(group, sizeof group, "%s/raffia-life-%d", is_version_1 ? VERSION_1 : VERSION_2,
             (int)getpid());
    if (mkdir(group, 0700))
        return false;
    /* Version 2 has the file only where the parent group passes the controller on. */
    if (exists(is_version_1 ? "memory.limit_in_bytes" : "memory.max"))
        return true;
    memory_group_remove();
    return false;
}

bool memory_group_limit(size_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%zu", bytes);
    if (!is_version_1) {
        (void)write_text("memory.swap.max", "0");
        return write_text("memory.max", text);
    }
    /* The limit with swap may not be the lower one meanwhile. */
    (void)write_text("memory.memsw.limit_in_bytes", "-1");
    const bool limited = write_text("memory.limit_in_bytes", text);
    (void)write_text("memory.memsw.limit_in_bytes", text);
    return limited;
}

bool memory_group_enter(void)
{
    return write_text("cgroup.procs", "0");
}

void memory_group_remove(void)
{
    for (int attempt = 0; attempt < 1000 && rmdir(group) && errno == EBUSY; attempt++)
        usleep(SETTLE_WAIT);
}
