#include "cli/fail.h"

#include "cli/command.h"
#include "cli/json.h"

#include <raffia/status.h>

#include <stdio.h>

int cli_fail_last(bool json, json_t *details)
{
    fprintf(stderr, "raffia: %s\n", raffia_last_error());
    if (json) {
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
