#include "model_file.h"

#include "load/residency.h"
#include "support/cmocka.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES_PER_TENSOR 200
#define LENGTH_BYTES            8

/* SplitMix64 over eight bytes at a time: no shift of the file looks like another. */
static uint64_t word_at(uint64_t index, unsigned salt)
{
    uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u + salt;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

unsigned char model_file_byte(uint64_t offset, unsigned salt)
{
    return (unsigned char)(word_at(offset / 8, salt) >> (8 * (offset % 8)));
}

static void fill(unsigned char *to, uint64_t offset, size_t bytes, unsigned salt)
{
    size_t i = 0;
    for (; i < bytes && (offset + i) % 8; i++)
        to[i] = model_file_byte(offset + i, salt);
    for (; i + 8 <= bytes; i += 8) {
        uint64_t word = htole64(word_at((offset + i) / 8, salt));
        memcpy(to + i, &word, sizeof word);
    }
    for (; i < bytes; i++)
        to[i] = model_file_byte(offset + i, salt);
}

static size_t tensor_bytes(const struct model_file_tensor *tensor)
{
    uint64_t elements = 1;
    for (unsigned i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i];
    return (size_t)(elements * raffia_dtype_bits(tensor->dtype) / 8);
}

/* Appends the entry of a tensor whose data begin `begin` bytes into the data. */
static size_t describe(char *to, size_t room, const struct model_file_tensor *tensor,
                       uint64_t begin, bool first)
{
    int length = snprintf(to, room, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", first ? "" : ",",
                          tensor->name, raffia_dtype_name(tensor->dtype));
    for (unsigned d = 0; d < tensor->rank; d++)
        length += snprintf(to + length, room - (size_t)length, "%s%llu", d ? "," : "",
                           (unsigned long long)tensor->shape[d]);
    length += snprintf(to + length, room - (size_t)length, "],\"data_offsets\":[%llu,%llu]}",
                       (unsigned long long)begin, (unsigned long long)(begin + tensor->bytes));
    assert_in_range(length, 1, room - 1);
    return (size_t)length;
}

void model_file_write(const char *path, struct model_file_tensor *tensors, size_t count,
                      size_t data_alignment, size_t data_shift, unsigned salt)
{
    size_t room = (count + 1) * HEADER_BYTES_PER_TENSOR, length = 1, data = 0;
    char *header = malloc(room);
    assert_non_null(header);
    header[0] = '{';
    for (size_t i = 0; i < count; i++) {
        tensors[i].bytes = tensor_bytes(&tensors[i]);
        length += describe(header + length, room - length, &tensors[i], data, i == 0);
        tensors[i].offset = data;
        data += tensors[i].bytes;
    }
    header[length++] = '}';
    size_t data_offset = data_shift;
    while (data_offset < LENGTH_BYTES + length)
        data_offset += data_alignment;
    for (size_t i = 0; i < count; i++)
        tensors[i].offset += data_offset;

    unsigned char *image = malloc(data_offset + data);
    assert_non_null(image);
    uint64_t header_bytes = htole64(data_offset - LENGTH_BYTES);
    memset(image, ' ', data_offset);
    memcpy(image, &header_bytes, LENGTH_BYTES);
    memcpy(image + LENGTH_BYTES, header, length);
    fill(image + data_offset, data_offset, data, salt);
    test_file_write(path, image, data_offset + data);
    free(image);
    free(header);
}

void model_file_check(const raffia_tensor *tensor, uint64_t offset, size_t bytes, unsigned salt)
{
    assert_non_null(tensor);
    assert_int_equal(tensor->bytes, bytes);
    if (bytes == 0) {
        assert_null(tensor->data);
        return;
    }
    assert_non_null(tensor->data);
    assert_int_equal((uintptr_t)tensor->data % RAFFIA_TENSOR_ALIGNMENT, 0);
    unsigned char *expected = malloc(bytes);
    assert_non_null(expected);
    fill(expected, offset, bytes, salt);
    if (memcmp(tensor->data, expected, bytes) != 0) {
        size_t i = 0;
        while (((unsigned char *)tensor->data)[i] == expected[i])
            i++;
        fail_msg("tensor '%s' of %zu bytes differs from the file at byte %zu", tensor->name, bytes,
                 i);
    }
    free(expected);
}

struct model_file_tensor model_file_bytes(const char *name, size_t bytes)
{
    struct model_file_tensor tensor = {
        .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {bytes}, .bytes = bytes};
    snprintf(tensor.name, sizeof tensor.name, "%s", name);
    return tensor;
}

bool model_file_chill(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    struct stat facts;
    assert_int_equal(fstat(fd, &facts), 0);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    double cached = load_cached_share(fd, 0, (size_t)facts.st_size);
    close(fd);
    return cached >= 0 && cached < 0.25;
}
