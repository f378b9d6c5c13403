/*
 * Model files for tests: whatever header text is given, right or wrong, in front of data whose
 * every byte tells its place. A failure here fails the test.
 */
#ifndef SUPPORT_SAFETENSORS_WRITER_H
#define SUPPORT_SAFETENSORS_WRITER_H

#include <stddef.h>
#include <stdint.h>

/* The byte at `offset` of the data, counted from the end of the header. */
unsigned char test_pattern(uint64_t offset);

/* A whole file in memory, to be freed with free(): the header's length, the header (its own length
 * is taken if `header_bytes` is SIZE_MAX), and `data_bytes` of the pattern. */
unsigned char *test_safetensors_image(const char *header, size_t header_bytes, size_t data_bytes,
                                      size_t *image_bytes_p);

/* The same, written to a file. */
void test_safetensors_write(const char *path, const char *header, size_t data_bytes);

void test_file_write(const char *path, const void *content, size_t bytes);

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

#endif
