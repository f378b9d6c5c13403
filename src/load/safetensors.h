/*
 * The safetensors format: the length of the header (64 bits, little-endian), the header (a JSON
 * object), and the tensors' bytes without holes to the end of the file. Offsets in a header count
 * from its end.
 *
 * Beyond the format's own rules: an extent or offset above 2^63 - 1 is refused, as no file can hold
 * it, and a tensor has at most RAFFIA_TENSOR_RANK_MAX dimensions.
 */
#ifndef LOAD_SAFETENSORS_H
#define LOAD_SAFETENSORS_H

#include "load/catalog.h"

/* Bytes of the length in front of the header. */
#define SAFETENSORS_LENGTH_BYTES 8

/*
 * Reads and checks the length of the header. `start` holds the first bytes of the file, as many as
 * there are up to SAFETENSORS_LENGTH_BYTES. `limit` is the largest header accepted.
 */
raffia_status safetensors_header_bytes(const char *path, const void *start, uint64_t file_bytes,
                                       size_t limit, size_t *header_bytes_p);

/*
 * Validates a header, which lies inside `file_bytes`, and adds its tensors and metadata to the
 * catalog as those of file number `file`; touches no file. Only names that are there twice are left
 * for catalog_arrange() to find. Tensors are added in the order of their offsets; of a metadata key
 * that the catalog has already, the old value stays. On failure the catalog's contents stay as they
 * were. `path` is for messages; it is put in front of every error.
 */
raffia_status safetensors_parse(const char *path, const void *header, size_t header_bytes,
                                uint64_t file_bytes, bool lenient, size_t file,
                                struct catalog *catalog);

/* Reads the header of catalog->files[file], which is open, and parses it. */
raffia_status safetensors_read(struct catalog *catalog, size_t file,
                               const struct catalog_limits *limits);

#endif
