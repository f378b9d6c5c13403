/* What catalog.h promises of every catalog. */
#ifndef TEST_LOAD_CATALOG_INVARIANTS_H
#define TEST_LOAD_CATALOG_INVARIANTS_H

#include "load/catalog.h"

/* NULL if all of it holds, else the promise that is broken. `file_bytes` replaces the file's size
 * where the catalog has no files. */
const char *catalog_broken_promise(const struct catalog *catalog, uint64_t file_bytes);

#endif
