/*
 * How the command says that something failed: one sentence on standard error, and with --json an
 * object on standard output too.
 */
#ifndef CLI_FAIL_H
#define CLI_FAIL_H

#include <jansson.h>
#include <stdbool.h>

/*
 * Reports the calling thread's last error (raffia_last_error()) and returns CLI_FAILURE. The object
 * is {"error": {"status", "message", ...}}; `details`, an object that is consumed or NULL, adds
 * further members to the inner one.
 */
int cli_fail_last(bool json, json_t *details);

/* Whether what it told was that standard output cannot be written to. */
bool cli_fail_told_output(void);

#endif
