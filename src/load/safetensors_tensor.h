/* The description of one tensor in a safetensors header. */
#ifndef LOAD_SAFETENSORS_TENSOR_H
#define LOAD_SAFETENSORS_TENSOR_H

#include "load/catalog.h"
#include "load/catalog_text.h"

#include <jansson.h>

/*
 * Checks {"dtype", "shape", "data_offsets"} and fills the tensor but its name and file; the offset
 * is the header's own. Unknown fields are ignored. Errors name the field; the caller adds tensor
 * and file.
 */
raffia_status safetensors_tensor_parse(const json_t *description, struct catalog_text *text,
                                       struct catalog_tensor *tensor);

#endif
