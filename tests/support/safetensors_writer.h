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

#endif
