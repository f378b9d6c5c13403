#include "load/catalog_json.h"

#include "core/error.h"
#include "core/fault.h"
#include "core/process.h"
#include "load/catalog_show.h"

#include <pthread.h>

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

/* jansson draws a seed when it makes its first object, and whoever makes one meanwhile waits: for
 * ever in a child that was forked in between, as the thread that draws it is not there. A fork
 * waits for the lock of the process. */
static void draw_seed(void)
{
    core_process_lock();
    json_object_seed(0);
    core_process_unlock();
}

/* Parses the value at walk->position and steps over it. */
static raffia_status parse_value(struct catalog_json_walk *walk, size_t flags, json_t **value_p)
{
    static pthread_once_t seeded = PTHREAD_ONCE_INIT;
    size_t rest = walk->bytes - walk->position;
    json_error_t error = {.position = 0};
    pthread_once(&seeded, draw_seed);
    json_t *value = core_fault("json_loadb") ? NULL
                                             : json_loadb(walk->text + walk->position, rest,
                                                          flags | JSON_REJECT_DUPLICATES, &error);
    if (value) {
        walk->position += (size_t)error.position;
        *value_p = value;
        return RAFFIA_OK;
    }
    /* jansson leaves the text empty where an allocation failed. */
    if (json_error_code(&error) == json_error_out_of_memory || !error.text[0])
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY,
                          "no memory is left to parse %zu bytes of JSON", rest);
    return core_error(RAFFIA_ERROR_FORMAT, "invalid JSON at offset %llu: %s",
                      (unsigned long long)(walk->offset + walk->position) +
                          (unsigned long long)error.position,
                      catalog_show(error.text).text);
}

/* The next byte that is not white space, '\0' at the end of the text. (A NUL in the text is not
 * acceptable anywhere either.) */
static char peek(struct catalog_json_walk *walk)
{
    while (walk->position < walk->bytes && is_space(walk->text[walk->position]))
        walk->position++;
    return walk->position < walk->bytes ? walk->text[walk->position] : '\0';
}

static raffia_status unexpected(const struct catalog_json_walk *walk, const char *expected)
{
    return core_error(RAFFIA_ERROR_FORMAT, "invalid JSON at offset %llu: %s was expected%s",
                      (unsigned long long)(walk->offset + walk->position), expected,
                      walk->position == walk->bytes ? ", and the text ends" : "");
}

static raffia_status expect_object(struct catalog_json_walk *walk)
{
    if (peek(walk) == '{')
        return RAFFIA_OK;
    return core_error(RAFFIA_ERROR_FORMAT,
                      "a JSON object was expected at offset %llu, and there is no '{'",
                      (unsigned long long)(walk->offset + walk->position));
}

raffia_status catalog_json_object(const char *text, size_t bytes, uint64_t offset,
                                  json_t **object_p)
{
    struct catalog_json_walk walk = {.text = text, .bytes = bytes, .offset = offset};
    raffia_status status = expect_object(&walk);
    return status ? status : parse_value(&walk, 0, object_p);
}

/* Steps from one member to the next, or over the brace that ends them all. */
static raffia_status step(struct catalog_json_walk *walk, bool *ended_p)
{
    bool first = walk->position == 0;
    raffia_status status = first ? expect_object(walk) : RAFFIA_OK;
    if (status)
        return status;
    if (first)
        walk->position++;
    char next = peek(walk);
    *ended_p = next == '}';
    if (next == '}') {
        walk->position++;
        peek(walk);
        return walk->position == walk->bytes ? RAFFIA_OK
                                             : unexpected(walk, "nothing but white space");
    }
    if (first)
        return RAFFIA_OK;
    if (next != ',')
        return unexpected(walk, "',' or '}'");
    walk->position++;
    return RAFFIA_OK;
}

raffia_status catalog_json_next(struct catalog_json_walk *walk, struct catalog_json_member *member)
{
    *member = (struct catalog_json_member){0};
    bool ended;
    raffia_status status = step(walk, &ended);
    if (status || ended)
        return status;
    if (peek(walk) != '"')
        return unexpected(walk, "a name in double quotes");
    member->offset = walk->offset + walk->position;
    status = parse_value(walk, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &member->key);
    if (status)
        return status;
    if (peek(walk) == ':') {
        walk->position++;
        status = parse_value(walk, JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK, &member->value);
    } else {
        status = unexpected(walk, "':'");
    }
    if (status)
        catalog_json_release(member);
    return status;
}

void catalog_json_release(struct catalog_json_member *member)
{
    json_decref(member->key);
    json_decref(member->value);
    *member = (struct catalog_json_member){0};
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
