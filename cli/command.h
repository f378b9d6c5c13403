/*
 * The subcommands of `raffia`, and what their exit codes mean.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

enum cli_exit {
    CLI_OK = 0,
    CLI_FAILURE = 1, /* it was understood and could not be done */
    CLI_USAGE = 2,   /* it was not understood */
};

/* Each parses its own options and returns an exit code. argv[0] is "raffia <name>", which is how
 * argp's messages begin. */
typedef int (*cli_run)(int argc, char **argv);

int cli_advise(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_load(int argc, char **argv);
int cli_make_model(int argc, char **argv);

#endif
