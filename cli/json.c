#include "cli/json.h"

#include "core/error.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits that a double needs to come back as it was are 17; nine tell nanoseconds in a second. */
#define REAL_DIGITS 9

static bool incomplete;

void cli_json_set(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value))
        incomplete = true;
}

void cli_json_append(json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        incomplete = true;
}

void cli_json_count(json_t *object, const char *key, uint64_t value)
{
    cli_json_set(object, key, json_integer((json_int_t)value));
}

void cli_json_real(json_t *object, const char *key, double value)
{
    cli_json_set(object, key, isfinite(value) ? json_real(value) : json_null());
}

void cli_json_flag(json_t *object, const char *key, bool value)
{
    cli_json_set(object, key, json_boolean(value));
}

static json_t *text_as_ascii(const char *text)
{
    char *copy = strdup(text);
    for (char *c = copy; c && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    json_t *string = copy ? json_string(copy) : NULL;
    free(copy);
    return string;
}

void cli_json_text(json_t *object, const char *key, const char *text)
{
    json_t *value = text ? json_string(text) : json_null();
    if (!value && text)
        value = text_as_ascii(text);
    cli_json_set(object, key, value);
}

static json_t *page_offer(raffia_page_kind kind, size_t size)
{
    json_t *offer = json_object();
    cli_json_text(offer, "kind", raffia_page_kind_name(kind));
    cli_json_count(offer, "size", size);
    return offer;
}

json_t *cli_json_pages(const raffia_page_report *pages)
{
    json_t *object = json_object();
    cli_json_set(object, "asked", page_offer(pages->asked_kind, pages->asked_size));
    cli_json_set(object, "got", page_offer(pages->got_kind, pages->got_size));
    cli_json_flag(object, "verified", pages->verified);
    cli_json_count(object, "verified_size", pages->verified_size);
    cli_json_count(object, "verified_bytes", pages->verified_bytes);
    cli_json_count(object, "total_bytes", pages->total_bytes);
    cli_json_text(object, "evidence", pages->evidence);
    cli_json_text(object, "reason", raffia_fallback_reason_name(pages->reason));
    cli_json_text(object, "reason_text", raffia_fallback_reason_text(pages->reason));
    return object;
}

raffia_status cli_json_print(json_t *root)
{
    if (!root || incomplete) {
        json_decref(root);
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "no memory for the report");
    }
    errno = 0;
    const bool failed =
        json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(REAL_DIGITS)) ||
        putchar('\n') == EOF;
    const int error_number = errno;
    json_decref(root);
    return failed ? core_error_errno(RAFFIA_ERROR_IO, error_number,
                                     "cannot write the report to standard output")
                  : RAFFIA_OK;
}
