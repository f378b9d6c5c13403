/*
 * A directory of a test's own, and files in it. A failure here fails the test.
 */
#ifndef SUPPORT_DIRECTORY_H
#define SUPPORT_DIRECTORY_H

#include <stddef.h>

/* A new directory below TMPDIR, and its end with everything in it. */
struct test_directory {
    char path[256];
};

void test_directory_make(struct test_directory *directory);
void test_directory_remove(const struct test_directory *directory);

/* "directory/name", returned by value: it lives until the end of the statement it stands in. */
struct test_path {
    char text[512];
};

struct test_path test_path_in(const struct test_directory *directory, const char *name);

void test_file_write(const char *path, const void *content, size_t bytes);

#endif
