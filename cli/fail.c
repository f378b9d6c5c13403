#include "cli/fail.h"

#include "cli/command.h"
#include "cli/json.h"

#include <raffia/status.h>

#include <stdio.h>

static bool told_output;

bool cli_fail_told_output(void)
{
    return told_output;
}

int cli_fail_last(bool json, json_t *details)
{
    fprintf(stderr, "raffia: %s\n", raffia_last_error());
    told_output |= ferror(stdout) && raffia_last_status() == RAFFIA_ERROR_IO;
    if (json && !told_output) {
        json_t *error = json_object();
        cli_json_text(error, "status", raffia_status_name(raffia_last_status()));
        cli_json_text(error, "message", raffia_last_error());
        json_object_update(error, details);
        json_t *root = json_object();
        cli_json_set(root, "error", error);
        cli_json_print(root);
    }
    json_decref(details);
    return CLI_FAILURE;
}
