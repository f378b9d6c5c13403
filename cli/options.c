#include "cli/options.h"

#include "core/checked.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

size_t cli_option_size(struct argp_state *state, const char *option, const char *text,
                       size_t minimum, size_t maximum)
{
    size_t bytes = 0;
    if (core_parse_size(text, &bytes))
        argp_error(state, "%s: %s", option, raffia_last_error());
    if (bytes < minimum || bytes > maximum) {
        char least[CORE_SIZE_TEXT_MAX], most[CORE_SIZE_TEXT_MAX];
        argp_error(state, "%s: %s is not between %s and %s", option, text,
                   core_format_size(minimum, least), core_format_size(maximum, most));
    }
    return bytes;
}

size_t cli_option_page_size(struct argp_state *state, const char *text, size_t minimum)
{
    const size_t bytes = cli_option_size(state, "--page-size", text, minimum, (size_t)1 << 30);
    if (!core_is_power_of_two(bytes))
        argp_error(state, "--page-size: %s is not a power of two; 2MiB and 1GiB are usual", text);
    return bytes;
}

uint64_t cli_option_count(struct argp_state *state, const char *option, const char *text,
                          uint64_t minimum, uint64_t maximum)
{
    uint64_t count = 0;
    if (core_parse_count(text, maximum, &count))
        argp_error(state, "%s: %s", option, raffia_last_error());
    if (count < minimum)
        argp_error(state, "%s: %s is less than the %llu it must be at least", option, text,
                   (unsigned long long)minimum);
    return count;
}

unsigned cli_option_choice(struct argp_state *state, const char *option, const char *text,
                           const char *const *words)
{
    char list[256] = "";
    for (unsigned i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
        size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", length ? ", " : "", words[i]);
    }
    argp_error(state, "%s: '%s' is none of %s", option, text, list);
    return 0;
}

char *cli_option_device(const struct argp_state *state, char *text)
{
    if (!*text)
        argp_error(state, "--device: the name of the device is empty; leave the option out for the "
                          "default");
    return text;
}

char *cli_option_argument(const struct argp_state *state, const char *name, const char *taken,
                          char *text)
{
    if (taken)
        argp_error(state, "one %s is enough: '%s' is too many", name, text);
    return text;
}
