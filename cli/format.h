/*
 * Numbers for people: rates and durations.
 */
#ifndef CLI_FORMAT_H
#define CLI_FORMAT_H

#include <stdint.h>

/* Room for any text made here. */
#define CLI_FORMAT_MAX 32

/* "12.3 GB/s", decimal as storage and links are labelled; "-" for no time at all. */
const char *cli_format_rate(double bytes, double seconds, char buffer[static CLI_FORMAT_MAX]);

/* "1.23 s", "45.6 ms", "7.8 us", "12 ns": three digits; "-" for what is no number. */
const char *cli_format_seconds(double seconds, char buffer[static CLI_FORMAT_MAX]);

/* Three significant digits without an exponent: "0.123", "45.6", "7890". */
const char *cli_format_number(double value, char buffer[static CLI_FORMAT_MAX]);

/* "s" unless there is one. */
const char *cli_plural(uint64_t count);

/* Names come from files: control characters would reach the terminal. They become '?', and what is
 * longer than the buffer ends in "...". */
#define CLI_NAME_MAX 256
const char *cli_format_name(const char *name, char buffer[static CLI_NAME_MAX]);

#endif
