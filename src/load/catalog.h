/*
 * The catalog of a model: every file, tensor and metadata string of it, validated, before any
 * tensor byte is read. This is where file formats end: nothing above a catalog knows which format
 * it was.
 */
#ifndef LOAD_CATALOG_H
#define LOAD_CATALOG_H

#include <raffia/dtype.h>
#include <raffia/load.h>
#include <raffia/status.h>

#include <sys/types.h>
#include <time.h>

/* A file of the model, open for reading (with O_NONBLOCK, which means nothing to regular files).
 * Size and identity are as found when it was opened: a load compares them at the end to notice that
 * the file changed under it. */
struct catalog_file {
    char *path;
    int fd;
    uint64_t bytes;
    dev_t device;
    ino_t inode;
    struct timespec modified;
};

struct catalog_tensor {
    const char *name;
    raffia_dtype dtype;
    unsigned rank;
    const uint64_t *shape;
    size_t file;     /* index into files */
    uint64_t offset; /* of its first byte in the file */
    uint64_t bytes;  /* offset + bytes is at most the file's size */
};

struct catalog_metadata {
    const char *key;
    const char *value;
};

struct catalog {
    struct catalog_file *files;
    size_t file_count;
    struct catalog_tensor *tensors; /* in order of name, bytewise; names are unique */
    size_t tensor_count;
    struct catalog_metadata *metadata; /* in order of key, bytewise; keys are unique */
    size_t metadata_count;
    struct catalog_text *text; /* owns the strings and shapes */
};

struct catalog_limits {
    size_t header_bytes; /* largest header or index accepted; 0 = 32 MiB, at most 100,000,000 */
    bool lenient;
};

/*
 * Opens and validates the model at `path`: a safetensors file, an index file (*.index.json), or a
 * directory (see catalog_directory.h). Symbolic links are followed. NULL limits are all defaults.
 * Every error names the file, and where there is one the tensor, the offset
 * in the file and the reason. On success the catalog must be closed.
 */
raffia_status catalog_open(const char *path, const struct catalog_limits *limits,
                           struct catalog **catalog_p);

/* Closes the files and frees everything. NULL is ignored. */
void catalog_close(struct catalog *catalog);

#endif
