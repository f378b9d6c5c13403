#include "driver/hugetlb_pages.h"

#include "driver/host/facts.h"
#include "driver/hugetlb_turn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_SIZE    ((size_t)2 << 20)
#define POOL_FILE    HOST_HUGEPAGES_DIRECTORY "/hugepages-2048kB/nr_hugepages"
#define GROUP_NAME   "raffia-test"
#define PATH_BYTES   256
#define SETTLE_WAIT  1000 /* microseconds */
#define SETTLE_TRIES 2000

static bool ours; /* the pool, and the turn at it */
static size_t pages_before;

static bool write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t written = write(fd, text, strlen(text));
    return close(fd) == 0 && written == (ssize_t)strlen(text);
}

static bool write_pool(size_t pages)
{
    char text[32];
    snprintf(text, sizeof text, "%zu\n", pages);
    return write_text(POOL_FILE, text);
}

static void read_pool(struct host_hugetlb_pool *pool)
{
    host_hugetlb_pool_read(PAGE_SIZE, pool);
}

/* No test has pages then, but the kernel may still be taking one apart, and whoever is no test
 * waits for no turn. */
static bool is_unused(struct host_hugetlb_pool *pool)
{
    for (int i = 0; i < SETTLE_TRIES; i++) {
        read_pool(pool);
        if (pool->free == pool->total && !pool->reserved)
            return true;
        usleep(SETTLE_WAIT);
    }
    fprintf(stderr, "somebody else uses the machine's pool of 2 MiB pages: %zu of %zu are free\n",
            (size_t)host_hugetlb_available(pool), (size_t)pool->total);
    return false;
}

static bool make_ours(void)
{
    struct host_hugetlb_pool pool;
    if (!hugetlb_turn_alone())
        return false;
    ours = is_unused(&pool) && !pool.overcommit;
    pages_before = (size_t)pool.total;
    if (!ours)
        hugetlb_turn_share();
    return ours;
}

bool hugetlb_pages_set(size_t pages)
{
    struct host_hugetlb_pool pool;
    if (!ours && !make_ours())
        return false;
    if (write_pool(pages)) {
        read_pool(&pool);
        if (pool.total == pages && pool.free == pages)
            return true;
    }
    hugetlb_pages_restore();
    return false;
}

void hugetlb_pages_restore(void)
{
    if (!ours)
        return;
    write_pool(pages_before);
    ours = false;
    hugetlb_turn_share();
}

size_t hugetlb_pages_available(void)
{
    struct host_hugetlb_pool pool;
    read_pool(&pool);
    return (size_t)host_hugetlb_available(&pool);
}

static char hierarchy[PATH_BYTES / 2]; /* where version 2 is mounted */
static bool mounted;                   /* by us */
static bool enabled;                   /* the controller, by us */

static bool find_hierarchy(void)
{
    static const char *const usual[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (int i = 0; i < 2; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/cgroup.controllers", usual[i]);
        snprintf(hierarchy, sizeof hierarchy, "%s", usual[i]);
        if (access(path, R_OK) == 0)
            return true;
    }
    strcpy(hierarchy, "/tmp/raffia-cgroup-XXXXXX");
    if (!mkdtemp(hierarchy))
        return false;
    mounted = mount("none", hierarchy, "cgroup2", 0, NULL) == 0;
    if (!mounted)
        rmdir(hierarchy);
    return mounted;
}

bool hugetlb_group_make(const char *suffix, size_t limit, char procs[static 256])
{
    char path[PATH_BYTES], text[64] = "";
    if (!find_hierarchy())
        return false;
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", hierarchy);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (length < 0)
        goto remove;
    if (!strstr(text, "hugetlb")) {
        enabled = write_text(path, "+hugetlb");
        if (!enabled)
            goto remove;
    }
    snprintf(path, sizeof path, "%s/%s", hierarchy, GROUP_NAME);
    if (mkdir(path, 0700) && errno != EEXIST)
        goto remove;
    snprintf(path, sizeof path, "%s/%s/hugetlb.2MB.%s", hierarchy, GROUP_NAME, suffix);
    snprintf(text, sizeof text, "%zu", limit);
    if (!write_text(path, text))
        goto remove;
    snprintf(procs, 256, "%s/%s/cgroup.procs", hierarchy, GROUP_NAME);
    return true;

remove:
    hugetlb_group_remove();
    return false;
}

void hugetlb_group_remove(void)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", hierarchy, GROUP_NAME);
    /* A process that has just ended may still be counted. */
    for (int attempt = 0; attempt < 1000 && rmdir(path) && errno == EBUSY; attempt++)
        usleep(SETTLE_WAIT);
    if (enabled) {
        snprintf(path, sizeof path, "%s/cgroup.subtree_control", hierarchy);
        write_text(path, "-hugetlb");
    }
    if (mounted) {
        umount(hierarchy);
        rmdir(hierarchy);
    }
    enabled = mounted = false;
}
