/*
 * What the command prints with --json, built with jansson.
 *
 * A member that cannot be set for lack of memory is remembered, and cli_json_print() then refuses
 * to print half a report; so the setters need no checks.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <raffia/pages.h>
#include <raffia/status.h>

#include <jansson.h>

/* Each puts a member into `object`; cli_json_set() consumes `value`. A real that is not finite, the
 * median of nothing, becomes null. */
void cli_json_set(json_t *object, const char *key, json_t *value);
void cli_json_count(json_t *object, const char *key, uint64_t value);
void cli_json_real(json_t *object, const char *key, double value);
void cli_json_flag(json_t *object, const char *key, bool value);

/* NULL becomes null; bytes that are not UTF-8 (a file's name can hold any) become '?'. */
void cli_json_text(json_t *object, const char *key, const char *text);

/* Appends to an array, with the same rule. Consumes `value`. */
void cli_json_append(json_t *array, json_t *value);

/* {"asked": {"kind", "size"}, "got": {...}, "verified", ...}. */
json_t *cli_json_pages(const raffia_page_report *pages);

/* Prints one object and a newline on standard output; consumes it. */
raffia_status cli_json_print(json_t *root);

#endif
