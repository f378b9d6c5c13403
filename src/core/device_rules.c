#include "core/device_rules.h"

#include "core/error.h"
#include "core/text.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

/* Longest pattern, and longest parameter with its value. */
#define WORD_MAX 128

/* A part of the text. */
struct piece {
    const char *start;
    size_t length;
};

/* Cuts off what stands before the next separator, or everything. False when nothing was left. */
static bool next_piece(struct piece *rest, char separator, struct piece *piece)
{
    if (!rest->start)
        return false;
    const char *end = memchr(rest->start, separator, rest->length);
    *piece = (struct piece){rest->start, end ? (size_t)(end - rest->start) : rest->length};
    if (end)
        *rest = (struct piece){end + 1, rest->length - piece->length - 1};
    else
        rest->start = NULL;
    return true;
}

static raffia_status refuse(struct piece piece, const char *what)
{
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                      "'%.*s' %s (write rules like 'NVIDIA H200*:threshold=32MiB,share=10%%')",
                      (int)(piece.length < WORD_MAX ? piece.length : WORD_MAX), piece.start, what);
}

static raffia_status copy_word(struct piece piece, char word[static WORD_MAX])
{
    if (piece.length >= WORD_MAX)
        return refuse(piece, "is too long");
    memcpy(word, piece.start, piece.length);
    word[piece.length] = '\0';
    return RAFFIA_OK;
}

static raffia_status read_parameter(struct piece piece, struct core_device_rule *rule)
{
    char word[WORD_MAX];
    raffia_status status = copy_word(piece, word);
    if (status)
        return status;
    char *value = strchr(word, '=');
    if (!value)
        return refuse(piece, "is no parameter");
    *value++ = '\0';
    bool *given = strcmp(word, "threshold") == 0 ? &rule->has_threshold
                  : strcmp(word, "share") == 0   ? &rule->has_share
                  : strcmp(word, "maximum") == 0 ? &rule->has_maximum
                                                 : NULL;
    if (!given)
        return refuse(piece, "is none of threshold=, share= and maximum=");
    if (*given)
        return refuse(piece, "is given twice in one rule");
    *given = true;
    if (given == &rule->has_share)
        return core_parse_share(value, CORE_POOL_SHARE_MAX, &rule->share);
    if (given == &rule->has_threshold)
        return core_parse_size_or_none(value, &rule->threshold);
    status = core_parse_size_or_none(value, &rule->maximum);
    if (!status && rule->maximum < CORE_POOL_MAXIMUM_MIN)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "'%s' is less than the smallest pool, a page of %zu bytes", value,
                          CORE_POOL_MAXIMUM_MIN);
    return status;
}

/* The pattern may have a ':' in it, parameters cannot. */
static raffia_status cut_rule(struct piece text, struct piece *pattern, struct piece *parameters)
{
    const char *colon = text.length ? memrchr(text.start, ':', text.length) : NULL;
    if (!colon)
        return refuse(text, "has no ':' between model and parameters");
    *pattern = (struct piece){text.start, (size_t)(colon - text.start)};
    *parameters = (struct piece){colon + 1, text.length - pattern->length - 1};
    if (pattern->length == 0 || text.start[0] == ' ' || colon[-1] == ' ')
        return refuse(text, "has no model, or space around it");
    return RAFFIA_OK;
}

static raffia_status read_rule(struct piece text, const char *model, struct core_device_rule *rule,
                               bool *matches)
{
    struct piece pattern = {0}, parameters = {0}, parameter;
    char word[WORD_MAX];
    *rule = (struct core_device_rule){0};
    raffia_status status = cut_rule(text, &pattern, &parameters);
    if (!status)
        status = copy_word(pattern, word);
    while (!status && next_piece(&parameters, ',', &parameter))
        status = read_parameter(parameter, rule);
    *matches = !status && fnmatch(word, model, 0) == 0;
    return status;
}

raffia_status core_device_rules_find(const char *text, const char *model,
                                     struct core_device_rule *found)
{
    struct core_device_rule first = {0};
    struct piece rest = {*text ? text : NULL, strlen(text)}, piece;
    bool any = false;
    while (next_piece(&rest, ';', &piece)) {
        struct core_device_rule rule;
        bool matches;
        raffia_status status = read_rule(piece, model, &rule, &matches);
        if (status)
            return status;
        if (matches && !any)
            first = rule;
        any = any || matches;
    }
    *found = first;
    return RAFFIA_OK;
}
