#include "core/text.h"

#include "core/checked.h"
#include "core/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct unit {
    const char *name;
    size_t bytes;
} units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", (size_t)1 << 10},
    {"MiB", (size_t)1 << 20},
    {"GiB", (size_t)1 << 30},
    {"TiB", (size_t)1 << 40},
    {"kB", 1000},
    {"KB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000 * 1000 * 1000},
    {"TB", (size_t)1000 * 1000 * 1000 * 1000},
};

static raffia_status not_a(const char *what, const char *text, const char *example)
{
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "'%.80s' is not %s (write it like %s)", text,
                      what, example);
}

static bool digit(char c)
{
    return isdigit((unsigned char)c) != 0;
}

/* Reads digits at *cursor; false if there is none or they overflow. */
static bool read_digits(const char **cursor, size_t *value_p)
{
    size_t value = 0;
    const char *c = *cursor;
    if (!digit(*c))
        return false;
    for (; digit(*c); c++)
        if (!core_multiply(value, 10, &value) || !core_add(value, (size_t)(*c - '0'), &value))
            return false;
    *cursor = c;
    *value_p = value;
    return true;
}

/* Adds the fraction behind the point, in units of `unit` bytes; it must be a whole number of bytes.
 */
static bool add_fraction(const char *digits, const char *end, size_t unit, size_t *bytes)
{
    size_t numerator = 0, denominator = 1;
    for (const char *c = digits; c < end; c++)
        if (!core_multiply(numerator, 10, &numerator) ||
            !core_multiply(denominator, 10, &denominator) ||
            !core_add(numerator, (size_t)(*c - '0'), &numerator))
            return false;
    size_t scaled;
    if (!core_multiply(numerator, unit, &scaled) || scaled % denominator != 0)
        return false;
    return core_add(*bytes, scaled / denominator, bytes);
}

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(name, units[i].name) == 0)
            return &units[i];
    return NULL;
}

static raffia_status parse_size(const char *text, const char *example, size_t *bytes_p)
{
    static const char what[] = "a size";
    const char *cursor = text;
    size_t whole;
    if (!read_digits(&cursor, &whole))
        return not_a(what, text, example);
    const char *fraction = NULL, *fraction_end = NULL;
    if (*cursor == '.') {
        fraction = ++cursor;
        while (digit(*cursor))
            cursor++;
        fraction_end = cursor;
        if (fraction == fraction_end)
            return not_a(what, text, example);
    }
    const struct unit *unit = find_unit(cursor);
    size_t bytes;
    if (!unit || !core_multiply(whole, unit->bytes, &bytes) ||
        (fraction && !add_fraction(fraction, fraction_end, unit->bytes, &bytes)) ||
        bytes == RAFFIA_NONE)
        return not_a(what, text, example);
    *bytes_p = bytes;
    return RAFFIA_OK;
}

raffia_status core_parse_size(const char *text, size_t *bytes_p)
{
    return parse_size(text, "64MiB, 1.5GiB or 4096", bytes_p);
}

raffia_status core_parse_size_or_none(const char *text, size_t *bytes_p)
{
    if (strcmp(text, "none") != 0)
        return parse_size(text, "64MiB, 1.5GiB, 4096 or none", bytes_p);
    *bytes_p = RAFFIA_NONE;
    return RAFFIA_OK;
}

/* Not by strtod(): its decimal point is the locale's. */
static bool read_percent(const char *text, double *percent_p)
{
    double percent = 0, unit = 1;
    if (!digit(*text))
        return false;
    for (; digit(*text); text++)
        percent = percent * 10 + (*text - '0');
    if (*text == '.' && digit(text[1]))
        for (text++; digit(*text); text++)
            percent += (*text - '0') * (unit /= 10);
    *percent_p = percent;
    return strcmp(text, "%") == 0;
}

raffia_status core_parse_share(const char *text, double maximum, double *share_p)
{
    double percent;
    if (!read_percent(text, &percent))
        return not_a("a share", text, "8%");
    if (percent > maximum * 100)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "'%.80s' is more than the %g%% allowed",
                          text, maximum * 100);
    *share_p = percent / 100;
    return RAFFIA_OK;
}

raffia_status core_parse_count(const char *text, uint64_t maximum, uint64_t *count_p)
{
    const char *cursor = text;
    size_t value;
    if (!read_digits(&cursor, &value) || *cursor != '\0')
        return not_a("a whole number", text, "16");
    if (value > maximum)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%s is more than the %llu allowed", text,
                          (unsigned long long)maximum);
    *count_p = value;
    return RAFFIA_OK;
}

const char *core_format_size(size_t bytes, char buffer[static CORE_SIZE_TEXT_MAX])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    enum { LAST = sizeof names / sizeof *names - 1 };
    int step = 0;
    size_t unit = 1;
    while (step < LAST && bytes / unit >= 1024) {
        unit *= 1024;
        step++;
    }
    /* In hundredths, by hand: printf's decimal point is the locale's. */
    size_t whole = bytes / unit, rest = bytes % unit, parts = unit;
    while (parts > (size_t)1 << 50) { /* a hundred times the rest must not overflow */
        rest /= 1024;
        parts /= 1024;
    }
    size_t hundredths = (rest * 100 + parts / 2) / parts;
    bool is_next_unit = whole + hundredths / 100 == 1024 && step < LAST;
    if (is_next_unit)
        snprintf(buffer, CORE_SIZE_TEXT_MAX, "1.00 %s", names[step + 1]);
    else if (bytes % unit == 0)
        snprintf(buffer, CORE_SIZE_TEXT_MAX, "%zu %s", whole, names[step]);
    else
        snprintf(buffer, CORE_SIZE_TEXT_MAX, "%zu.%02zu %s", whole + hundredths / 100,
                 hundredths % 100, names[step]);
    return buffer;
}
