#include "cli/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *cli_format_number(double value, char buffer[static CLI_FORMAT_MAX])
{
    double size = fabs(value);
    /* The limits lie where rounding would add a digit. */
    int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
    snprintf(buffer, CLI_FORMAT_MAX, "%.*f", decimals, value);
    return buffer;
}

static const char *with_unit(double value, const char *unit, char buffer[static CLI_FORMAT_MAX])
{
    char number[CLI_FORMAT_MAX];
    snprintf(buffer, CLI_FORMAT_MAX, "%.20s %s", cli_format_number(value, number), unit);
    return buffer;
}

const char *cli_format_rate(double bytes, double seconds, char buffer[static CLI_FORMAT_MAX])
{
    if (!(seconds > 0)) {
        snprintf(buffer, CLI_FORMAT_MAX, "-");
        return buffer;
    }
    double rate = bytes / seconds;
    if (rate >= 1e9)
        return with_unit(rate / 1e9, "GB/s", buffer);
    if (rate >= 1e6)
        return with_unit(rate / 1e6, "MB/s", buffer);
    return with_unit(rate / 1e3, "kB/s", buffer);
}

const char *cli_format_seconds(double seconds, char buffer[static CLI_FORMAT_MAX])
{
    if (isnan(seconds)) {
        snprintf(buffer, CLI_FORMAT_MAX, "-");
        return buffer;
    }
    if (seconds >= 1 || seconds <= 0)
        return with_unit(seconds, "s", buffer);
    if (seconds >= 1e-3)
        return with_unit(seconds * 1e3, "ms", buffer);
    if (seconds >= 1e-6)
        return with_unit(seconds * 1e6, "us", buffer);
    return with_unit(seconds * 1e9, "ns", buffer);
}

const char *cli_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

const char *cli_format_name(const char *name, char buffer[static CLI_NAME_MAX])
{
    int length = snprintf(buffer, CLI_NAME_MAX, "%s", name);
    if (length >= CLI_NAME_MAX)
        memcpy(buffer + CLI_NAME_MAX - sizeof "...", "...", sizeof "...");
    for (char *c = buffer; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return buffer;
}
