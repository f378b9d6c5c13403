/* cmocka with the headers it wants in front of it. */
#ifndef SUPPORT_CMOCKA_H
#define SUPPORT_CMOCKA_H

#include <raffia/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Asserts success, and prints the library's sentence if it was none. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        raffia_status status_of_call = (call);                                                     \
        if (status_of_call)                                                                        \
            fail_msg("%s: %s (%s)", #call, raffia_status_name(status_of_call),                     \
                     raffia_last_error());                                                         \
    } while (0)

/* Asserts a certain failure. */
#define assert_status(expected, call)                                                              \
    do {                                                                                           \
        raffia_status status_of_call = (call);                                                     \
        if (status_of_call != (expected))                                                          \
            fail_msg("%s: %s, expected %s (%s)", #call, raffia_status_name(status_of_call),        \
                     #expected, raffia_last_error());                                              \
    } while (0)

/* Asserts that the last error's sentence mentions something. */
#define assert_error_mentions(text)                                                                \
    do {                                                                                           \
        if (!strstr(raffia_last_error(), (text)))                                                  \
            fail_msg("'%s' does not mention '%s'", raffia_last_error(), (text));                   \
    } while (0)

#endif
