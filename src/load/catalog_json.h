/*
 * JSON of a model file, parsed by jansson, with errors in the library's own form. Callers add the
 * file's name. Keys are unique, strings are UTF-8 without NUL, nesting is bounded.
 */
#ifndef LOAD_CATALOG_JSON_H
#define LOAD_CATALOG_JSON_H

#include <raffia/status.h>

#include <jansson.h>

/*
 * Parses text that must be one JSON object with nothing but white space around it. `offset` is
 * where the text begins in its file. The object is to be released with json_decref().
 */
raffia_status catalog_json_object(const char *text, size_t bytes, uint64_t offset,
                                  json_t **object_p);

/*
 * The same object, one member after the other: a header of 100 MB takes more than a gigabyte when
 * it is parsed as a whole, and this way each member has its offset for messages. Here the caller
 * must see to it that keys are unique (below the first level they are checked).
 */
struct catalog_json_walk {
    const char *text;
    size_t bytes;
    uint64_t offset; /* of the text in its file */
    size_t position; /* next byte of the text; 0 before the first member */
};

struct catalog_json_member {
    json_t *key; /* a string; NULL after the last member */
    json_t *value;
    uint64_t offset; /* of the key in the file */
};

/* Finds the next member, to be released with catalog_json_release(); after the last one it checks
 * that only white space follows. */
raffia_status catalog_json_next(struct catalog_json_walk *walk, struct catalog_json_member *member);
void catalog_json_release(struct catalog_json_member *member);

/* "a string", "an array", ...; "missing" for NULL. */
const char *catalog_json_kind(const json_t *value);

/* False unless the value is a whole number, written without fraction or exponent, from 0 to 2^63 -
 * 1: no size or offset of a file can be larger. */
bool catalog_json_unsigned(const json_t *value, uint64_t *number_p);

#endif
