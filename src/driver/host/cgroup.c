#include "driver/host/cgroup.h"

#include "core/memory.h"
#include "core/sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Version 1 writes "no limit" as the largest multiple of the page size; nothing real comes near. */
#define VERSION_1_UNLIMITED ((uint64_t)1 << 62)

/* Where the process's own group of one hierarchy lies, as a directory. Ancestors are found by
 * cutting names off its end, down to the mount point. */
struct place {
    char directory[HOST_PATH_MAX];
    size_t mount_length; /* characters of the mount point */
};

/* Which files of a group say what. */
struct files {
    const char *limit;
    const char *usage;
    const char *reclaimable[2]; /* lines of memory.stat that do not count as used; NULL: none */
};

uint64_t host_limit_room(const struct host_limit *limit)
{
    return limit->limit == HOST_UNLIMITED ? HOST_UNLIMITED
                                          : host_subtract(limit->limit, limit->usage);
}

/* True if `name` is one of the words of a list separated by commas. */
static bool lists(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *word = list; word; word = strchr(word, ',')) {
        word += *word == ',';
        if (strncmp(word, name, length) == 0 && (word[length] == ',' || word[length] == '\0'))
            return true;
    }
    return false;
}

/* The files that say which groups the process is in, and where they can be seen. Both hierarchies
 * are looked up in them, and the kernel takes its time to write them. A text may be NULL. */
struct membership {
    char *groups; /* /proc/self/cgroup */
    char *mounts; /* /proc/self/mountinfo */
};

static struct membership read_membership(void)
{
    return (struct membership){host_read_whole("/proc/self/cgroup"),
                               host_read_whole("/proc/self/mountinfo")};
}

static void forget_membership(struct membership *membership)
{
    core_free(membership->groups);
    core_free(membership->mounts);
}

/* A text to take apart; NULL if there is none. */
static char *copy_of(const char *text)
{
    return text ? core_strdup(text) : NULL;
}

/* The path of the process's group, from /proc/self/cgroup ("4:memory:/a/b", "0::/a"). `controller`
 * NULL means the one hierarchy of version 2. */
static bool own_group(const struct membership *membership, const char *controller,
                      char path[static HOST_PATH_MAX])
{
    char *text = copy_of(membership->groups);
    bool found = false;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line && !found; line = strsep(&rest, "\n")) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        controllers++;
        found = controller ? lists(controllers, controller) : strncmp(line, "0:", 2) == 0;
        found = found && strlen(group) < HOST_PATH_MAX;
        if (found)
            memcpy(path, group, strlen(group) + 1);
    }
    core_free(text);
    return found;
}

/* Undoes the octal escapes of mountinfo ("\040" is a space), in place. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && strspn(from + 1, "01234567") >= 3) {
            char digits[4] = {from[1], from[2], from[3], '\0'};
            *to = (char)strtol(digits, NULL, 8);
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* One line of mountinfo, as far as it matters; points into the line. */
struct mount {
    char *root, *point, *type, *super_options;
};

static bool split_mount(char *line, struct mount *mount)
{
    char *behind = strstr(line, " - ");
    if (!behind)
        return false;
    *behind = '\0';
    behind += 3;
    strsep(&line, " ");
    strsep(&line, " ");
    strsep(&line, " ");
    mount->root = strsep(&line, " ");
    mount->point = strsep(&line, " ");
    mount->type = strsep(&behind, " ");
    strsep(&behind, " ");
    mount->super_options = behind;
    if (!mount->point || !mount->super_options)
        return false;
    unescape(mount->root);
    unescape(mount->point);
    return true;
}

/* What of `group` lies below the root of the mount; NULL if the mount does not show the group, as
 * in a container that sees the host's paths, or a path that climbs out of the namespace. */
static const char *below(const char *group, const char *mount_root)
{
    size_t length = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    if (strncmp(group, mount_root, length) != 0 || strstr(group, "/.."))
        return NULL;
    const char *rest = group + length;
    if (strcmp(rest, "/") == 0 || *rest == '\0')
        return "";
    return *rest == '/' ? rest : NULL;
}

/* Finds the directory of the process's group. A mount that does not show the group still shows its
 * own top, which is an ancestor or the container's own group. */
static bool find_place(const struct membership *membership, const char *controller,
                       struct place *place)
{
    char group[HOST_PATH_MAX];
    if (!own_group(membership, controller, group))
        return false;
    char *text = copy_of(membership->mounts);
    bool found = false, exact = false;
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line && !exact; line = strsep(&rest, "\n")) {
        struct mount mount;
        if (!split_mount(line, &mount) ||
            strcmp(mount.type, controller ? "cgroup" : "cgroup2") != 0 ||
            (controller && !lists(mount.super_options, controller)))
            continue;
        const char *inside = below(group, mount.root);
        if (found && !inside)
            continue;
        char directory[HOST_PATH_MAX];
        if (snprintf(directory, sizeof directory, "%s%s", mount.point, inside ? inside : "") >=
            (int)sizeof directory)
            continue;
        memcpy(place->directory, directory, sizeof directory);
        place->mount_length = strlen(mount.point);
        found = true;
        exact = inside != NULL;
    }
    core_free(text);
    return found;
}

/* Reads a number of bytes or "max". */
static bool read_limit(const char *path, uint64_t *bytes_p)
{
    char text[32];
    if (sys_read_text(path, text, sizeof text) <= 0)
        return false;
    if (strncmp(text, "max", 3) == 0) {
        *bytes_p = HOST_UNLIMITED;
        return true;
    }
    char *end;
    errno = 0;
    uint64_t bytes = strtoull(text, &end, 10);
    if (end == text || errno)
        return false;
    *bytes_p = bytes >= VERSION_1_UNLIMITED ? HOST_UNLIMITED : bytes;
    return true;
}

static bool file_in(const char *directory, const char *name, char path[static HOST_PATH_MAX])
{
    return snprintf(path, HOST_PATH_MAX, "%s/%s", directory, name) < HOST_PATH_MAX;
}

/* File cache of the group, which the kernel drops before it calls the group full. */
static uint64_t reclaimable(const char *directory, const struct files *files)
{
    char path[HOST_PATH_MAX];
    if (!files->reclaimable[0] || !file_in(directory, "memory.stat", path))
        return 0;
    char *text = host_read_whole(path);
    uint64_t sum = 0, value;
    for (int i = 0; text && i < 2; i++)
        if (host_find_number(text, files->reclaimable[i], &value))
            sum = host_add(sum, value);
    core_free(text);
    return sum;
}

/* Takes over the limit of one group if it leaves less room than those seen so far. */
static void tighten(const char *directory, const struct files *files, struct host_limit *limit)
{
    struct host_limit here = {.limit = HOST_UNLIMITED};
    char path[HOST_PATH_MAX];
    if (!file_in(directory, files->limit, here.path) || !read_limit(here.path, &here.limit) ||
        here.limit == HOST_UNLIMITED)
        return;
    if (file_in(directory, files->usage, path) && sys_read_number(path, &here.usage) == 0)
        here.usage = host_subtract(here.usage, reclaimable(directory, files));
    if (limit->limit == HOST_UNLIMITED || host_limit_room(&here) < host_limit_room(limit))
        *limit = here;
}

static void tighten_upwards(const struct place *place, const struct files *files,
                            struct host_limit *limit)
{
    struct place here = *place;
    for (;;) {
        tighten(here.directory, files, limit);
        char *slash = strrchr(here.directory, '/');
        if (!slash || (size_t)(slash - here.directory) < here.mount_length)
            return;
        *slash = '\0';
    }
}

static const struct host_limit no_limit = {.limit = HOST_UNLIMITED};

void host_memory_limit(struct host_limit *limit)
{
    static const struct files version_1 = {"memory.limit_in_bytes",
                                           "memory.usage_in_bytes",
                                           {"total_inactive_file ", "total_active_file "}};
    static const struct files version_2 = {
        "memory.max", "memory.current", {"inactive_file ", "active_file "}};
    *limit = no_limit;
    struct membership membership = read_membership();
    struct place place;
    if (find_place(&membership, "memory", &place))
        tighten_upwards(&place, &version_1, limit);
    if (find_place(&membership, NULL, &place))
        tighten_upwards(&place, &version_2, limit);
    forget_membership(&membership);
}

/* Room for a label. */
#define SIZE_LABEL_MAX 24

/* The kernel's name of a page size in these files: "64KB", "2MB", "1GB". */
static void size_label(size_t page_size, char label[static SIZE_LABEL_MAX])
{
    static const struct {
        size_t unit;
        const char *name;
    } units[] = {{(size_t)1 << 30, "GB"}, {(size_t)1 << 20, "MB"}, {(size_t)1 << 10, "KB"}};
    size_t i = 0;
    while (i < 2 && page_size < units[i].unit)
        i++;
    snprintf(label, SIZE_LABEL_MAX, "%zu%s", page_size / units[i].unit, units[i].name);
}

static void hugetlb_limit(const char *label, const char *limit_suffix, const char *usage_suffix,
                          const struct place *place, struct host_limit *limit)
{
    char limit_name[64], usage_name[64];
    snprintf(limit_name, sizeof limit_name, "hugetlb.%s.%s", label, limit_suffix);
    snprintf(usage_name, sizeof usage_name, "hugetlb.%s.%s", label, usage_suffix);
    struct files files = {limit_name, usage_name, {NULL, NULL}};
    tighten_upwards(place, &files, limit);
}

void host_hugetlb_limits(size_t page_size, struct host_limit *fault, struct host_limit *reservation)
{
    char label[SIZE_LABEL_MAX];
    size_label(page_size, label);
    *fault = *reservation = no_limit;
    struct membership membership = read_membership();
    struct place place;
    if (find_place(&membership, "hugetlb", &place)) {
        hugetlb_limit(label, "limit_in_bytes", "usage_in_bytes", &place, fault);
        hugetlb_limit(label, "rsvd.limit_in_bytes", "rsvd.usage_in_bytes", &place, reservation);
    }
    if (find_place(&membership, NULL, &place)) {
        hugetlb_limit(label, "max", "current", &place, fault);
        hugetlb_limit(label, "rsvd.max", "rsvd.current", &place, reservation);
    }
    forget_membership(&membership);
}
