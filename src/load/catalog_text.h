/*
 * The strings and shapes of a catalog: a million tensors must not be three million allocations, and
 * they all die together.
 */
#ifndef LOAD_CATALOG_TEXT_H
#define LOAD_CATALOG_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct catalog_text;

/* These three return NULL, with the error recorded, when there is no memory. What they return stays
 * where it is until the text is destroyed. */
struct catalog_text *catalog_text_create(void);
const char *catalog_text_string(struct catalog_text *text, const char *string);

/* Room for `rank` extents, to be filled by the caller; not NULL for rank 0 either. */
uint64_t *catalog_text_shape(struct catalog_text *text, size_t rank);

/* NULL is ignored. */
void catalog_text_destroy(struct catalog_text *text);

#endif
