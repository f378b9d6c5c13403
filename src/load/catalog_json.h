/*
 * JSON of a model file, parsed by jansson, with errors in the library's own form. Callers add the
 * file's name.
 */
#ifndef LOAD_CATALOG_JSON_H
#define LOAD_CATALOG_JSON_H

#include <raffia/status.h>

#include <jansson.h>

/*
 * Parses text that must be one JSON object with unique keys and nothing but white space around it.
 * `offset` is where the text begins in its file. The object is to be released with json_decref().
 */
raffia_status catalog_json_object(const char *text, size_t bytes, uint64_t offset,
                                  json_t **object_p);

/* "a string", "an array", ...; "missing" for NULL. */
const char *catalog_json_kind(const json_t *value);

/* False unless the value is a whole number, written without fraction or exponent, from 0 to 2^63 -
 * 1: no size or offset of a file can be larger. */
bool catalog_json_unsigned(const json_t *value, uint64_t *number_p);

#endif
