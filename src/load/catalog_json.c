#include "load/catalog_json.h"

#include "core/error.h"
#include "core/fault.h"
#include "load/catalog_show.h"

static raffia_status out_of_memory(size_t bytes)
{
    return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                      "no memory is left to parse %zu bytes of JSON", bytes);
}

raffia_status catalog_json_object(const char *text, size_t bytes, uint64_t offset,
                                  json_t **object_p)
{
    size_t first = 0;
    while (first < bytes && (text[first] == ' ' || text[first] == '\t' || text[first] == '\n' ||
                             text[first] == '\r'))
        first++;
    if (first == bytes || text[first] != '{')
        return core_error(RAFFIA_ERROR_FORMAT,
                          "a JSON object was expected at offset %llu, and there is no '{'",
                          (unsigned long long)(offset + first));
    if (core_fault("json_loadb"))
        return out_of_memory(bytes);
    json_error_t error;
    json_t *object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (object) {
        *object_p = object;
        return RAFFIA_OK;
    }
    /* jansson leaves the text empty where an allocation failed. */
    if (json_error_code(&error) == json_error_out_of_memory || !error.text[0])
        return out_of_memory(bytes);
    return core_error(RAFFIA_ERROR_FORMAT, "invalid JSON at offset %llu: %s",
                      (unsigned long long)offset + (unsigned long long)error.position,
                      catalog_show(error.text).text);
}

const char *catalog_json_kind(const json_t *value)
{
    if (!value)
        return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return json_integer_value(value) < 0 ? "a negative number" : "a number";
    case JSON_REAL:
        return "a number with a fraction or exponent";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a truth value";
    case JSON_NULL:
        return "null";
    }
    return "something unknown";
}

bool catalog_json_unsigned(const json_t *value, uint64_t *number_p)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *number_p = (uint64_t)json_integer_value(value);
    return true;
}
