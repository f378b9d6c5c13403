#include "support/safetensors_writer.h"

#include "support/cmocka.h"

#include <endian.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A prime period: shifts by any power of two show. */
#define PATTERN_PERIOD 251

unsigned char test_pattern(uint64_t offset)
{
    return (unsigned char)(offset % PATTERN_PERIOD + 1);
}

unsigned char *test_safetensors_image(const char *header, size_t header_bytes, size_t data_bytes,
                                      size_t *image_bytes_p)
{
    if (header_bytes == SIZE_MAX)
        header_bytes = strlen(header);
    uint64_t length = htole64(header_bytes);
    size_t data_offset = sizeof length + header_bytes;
    unsigned char *image = malloc(data_offset + data_bytes);
    assert_non_null(image);
    memcpy(image, &length, sizeof length);
    memcpy(image + sizeof length, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++)
        image[data_offset + i] = test_pattern(i);
    *image_bytes_p = data_offset + data_bytes;
    return image;
}

void test_safetensors_write(const char *path, const char *header, size_t data_bytes)
{
    size_t bytes;
    unsigned char *image = test_safetensors_image(header, SIZE_MAX, data_bytes, &bytes);
    test_file_write(path, image, bytes);
    free(image);
}

void test_file_write(const char *path, const void *content, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    if (!file)
        fail_msg("cannot create '%s'", path);
    assert_int_equal(fwrite(content, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

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
