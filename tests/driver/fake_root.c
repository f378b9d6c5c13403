#include "driver/fake_root.h"

#include "core/sys.h"
#include "support/cmocka.h"
#include "support/directory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static struct test_directory root;

int fake_root_enter(void **state)
{
    (void)state;
    test_directory_make(&root);
    sys_set_root(root.path);
    return 0;
}

int fake_root_leave(void **state)
{
    (void)state;
    sys_set_root(NULL);
    test_directory_remove(&root);
    return 0;
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
    snprintf(full, sizeof full, "%s%s", root.path, path);
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
