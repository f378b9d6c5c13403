/* How the readers of file formats make a catalog, step by step, without opening any file. */
#ifndef LOAD_CATALOG_BUILD_H
#define LOAD_CATALOG_BUILD_H

#include "load/catalog.h"

/* Header limits: what 0 stands for, and the most that can be asked for (the safetensors format's
 * own maximum). */
#define CATALOG_HEADER_BYTES_DEFAULT ((size_t)32 << 20)
#define CATALOG_HEADER_BYTES_MAX     ((size_t)100000000)

/* Most files of one model. */
#define CATALOG_FILES_MAX 4096

/* An empty catalog, to be closed with catalog_close(); NULL, with the error recorded, when there is
 * no memory. */
struct catalog *catalog_create(void);

/* Gives the catalog room for `count` files, all closed; it had none before. */
raffia_status catalog_set_files(struct catalog *catalog, size_t count);

/* Brings the tensors into order of name. Two of the same name are an error. */
raffia_status catalog_arrange(struct catalog *catalog);

#endif
