/*
 * Model files for tests of loading: every byte tells its place in the file, and the tensors' places
 * are computed here, apart from the code under test.
 */
#ifndef LOAD_MODEL_FILE_H
#define LOAD_MODEL_FILE_H

#include "support/directory.h"
#include "support/safetensors_writer.h"

#include <raffia/load.h>

#define MODEL_FILE_RANK_MAX 4

/* A tensor to be written, in order of the file. */
struct model_file_tensor {
    char name[32];
    raffia_dtype dtype;
    unsigned rank;
    uint64_t shape[MODEL_FILE_RANK_MAX];
    uint64_t offset; /* in the file; model_file_write() sets it */
    size_t bytes;    /* model_file_write() sets it */
};

/* The byte at an offset of a file; `salt` tells files apart. */
unsigned char model_file_byte(uint64_t offset, unsigned salt);

/* Writes a file whose header is padded with spaces to make the data begin at a multiple of
 * `data_alignment` plus `data_shift`. */
void model_file_write(const char *path, struct model_file_tensor *tensors, size_t count,
                      size_t data_alignment, size_t data_shift, unsigned salt);

/* Fails the test unless `tensor` holds the bytes of the file from `offset` on. */
void model_file_check(const raffia_tensor *tensor, uint64_t offset, size_t bytes, unsigned salt);

/* A one-dimensional U8 tensor of `bytes`. */
struct model_file_tensor model_file_bytes(const char *name, size_t bytes);

/* Drops the file from the page cache as far as the kernel goes along; true if little is left. */
bool model_file_chill(const char *path);

#endif
