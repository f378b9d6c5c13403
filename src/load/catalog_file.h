/* Opening and reading the files of a model. Every error names the file. */
#ifndef LOAD_CATALOG_FILE_H
#define LOAD_CATALOG_FILE_H

#include "load/catalog.h"

/* A file that is not open; so that it can be cleared at any time. */
#define CATALOG_FILE_CLOSED ((struct catalog_file){.fd = -1})

/*
 * Opens a regular file, symbolic links followed, and notes its size and identity. Anything else (a
 * pipe, a device) is refused without waiting for it. A directory is refused too, unless
 * `directory_p` is given: then it is set, and for a directory the file stays closed.
 */
raffia_status catalog_file_open(const char *path, struct catalog_file *file, bool *directory_p);

/* Reads exactly `bytes`, through interruptions and short reads; they lie inside the file's size. */
raffia_status catalog_file_read(const struct catalog_file *file, void *buffer, size_t bytes,
                                uint64_t offset);

/* Closes the file, if it is open, and frees its path. */
void catalog_file_clear(struct catalog_file *file);

#endif
