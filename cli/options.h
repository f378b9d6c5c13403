/*
 * Values of options, parsed strictly. Each of these ends the process with a usage error, as argp
 * does for an option it does not know, when the text is not acceptable.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <raffia/base.h>

#include <argp.h>

/* A size from `minimum` to `maximum` bytes; `option` is its name for the message, "--size". */
size_t cli_option_size(struct argp_state *state, const char *option, const char *text,
                       size_t minimum, size_t maximum);

/* The value of --page-size: a power of two from `minimum` to 1 GiB. */
size_t cli_option_page_size(struct argp_state *state, const char *text, size_t minimum);

/* A whole number from `minimum` to `maximum`. */
uint64_t cli_option_count(struct argp_state *state, const char *option, const char *text,
                          uint64_t minimum, uint64_t maximum);

/* One of the words of a list ended by NULL; returns its index. */
unsigned cli_option_choice(struct argp_state *state, const char *option, const char *text,
                           const char *const *words);

/* The library would take no name for the default device; here it is a variable that is not set. */
char *cli_option_device(const struct argp_state *state, char *text);

/* The one argument that there is, which the usage calls `name`; `taken` is what was given before.
 */
char *cli_option_argument(const struct argp_state *state, const char *name, const char *taken,
                          char *text);

/* Keys for options that have no one-letter form: beyond any character. */
#define CLI_OPTION_FIRST 0x100

#endif
