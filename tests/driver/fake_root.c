#include "driver/fake_root.h"

#include "core/sys.h"
#include "support/cmocka.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

void fake_root_enter(void)
{
    strcpy(root, "/tmp/raffia-root-XXXXXX");
    assert_non_null(mkdtemp(root));
    sys_set_root(root);
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void fake_root_leave(void)
{
    sys_set_root(NULL);
    nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0700) && errno != EEXIST)
            fail_msg("cannot make %s", path);
        *slash = '/';
    }
}

void fake_root_write(const char *path, const char *format, ...)
{
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    make_parents(full);
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    assert_int_equal(fclose(file), 0);
}

void fake_root_add_pool(unsigned long size_kb)
{
    static const char *const names[] = {"nr_hugepages", "free_hugepages", "resv_hugepages",
                                        "surplus_hugepages", "nr_overcommit_hugepages"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-%lukB/%s", size_kb,
                 names[i]);
        fake_root_write(path, "0\n");
    }
}
