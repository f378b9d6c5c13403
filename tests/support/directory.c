#include "support/directory.h"

#include "support/cmocka.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

void test_directory_make(struct test_directory *directory)
{
    const char *parent = getenv("TMPDIR");
    int length = snprintf(directory->path, sizeof directory->path, "%s/raffia-test-XXXXXX",
                          parent ? parent : "/tmp");
    assert_in_range(length, 1, sizeof directory->path - 1);
    assert_non_null(mkdtemp(directory->path));
}

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

void test_directory_remove(const struct test_directory *directory)
{
    enum { DESCRIPTORS = 8 };
    assert_int_equal(nftw(directory->path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS), 0);
}

struct test_path test_path_in(const struct test_directory *directory, const char *name)
{
    struct test_path path;
    int length = snprintf(path.text, sizeof path.text, "%s/%s", directory->path, name);
    assert_in_range(length, 1, sizeof path.text - 1);
    return path;
}

void test_file_write(const char *path, const void *content, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        fail_msg("cannot create '%s'", path);
    assert_int_equal(fwrite(content, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}
