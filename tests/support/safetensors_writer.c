#include "support/safetensors_writer.h"

#include "support/cmocka.h"
#include "support/directory.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

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
