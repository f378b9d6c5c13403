/*
 * The command: finds the subcommand and hands it the rest of the line.
 */
#include "cli/command.h"
#include "cli/fail.h"
#include "core/error.h"

#include <raffia/version.h>

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct command {
    const char *name;
    char title[32]; /* becomes argv[0] */
    cli_run run;
    const char *summary;
} commands[] = {
    {"load", "raffia load", cli_load, "load a model into memory, report and verify"},
    {"inspect", "raffia inspect", cli_inspect, "say what a model file holds"},
    {"make-model", "raffia make-model", cli_make_model,
     "write a model file of a given size with checkable content"},
    {"doctor", "raffia doctor", cli_doctor,
     "say which huge pages this machine can give, and why not more"},
    {"advise", "raffia advise", cli_advise,
     "say how large a pool models want, of which pages, and how to get it"},
    {"bench", "raffia bench", cli_bench, "measure this machine"},
};

static const size_t command_count = sizeof commands / sizeof *commands;

static void print_usage(FILE *stream)
{
    fprintf(stream, "Usage: raffia COMMAND [ARGUMENT...]\n"
                    "Memory in verified huge pages, and model files loaded into it.\n\n"
                    "Commands:\n");
    for (size_t i = 0; i < command_count; i++)
        fprintf(stream, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n"
                    "  raffia COMMAND --help   what a command does, its options and examples\n"
                    "  raffia --version        the version of the command and its library\n\n"
                    "Exit codes: 0 done, 1 it could not be done (standard error says why),\n"
                    "2 the command line was not understood.\n");
}

static int run_command(struct command *command, int argc, char **argv)
{
    argv[1] = command->title;
    return command->run(argc - 1, argv + 1);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
        print_usage(stdout);
        return CLI_OK;
    }
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("raffia %s\n", raffia_version_text());
        return CLI_OK;
    }
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(word, commands[i].name) == 0)
            return run_command(&commands[i], argc, argv);
    fprintf(stderr, "raffia: there is no command '%s' (raffia --help lists them)\n", word);
    return CLI_USAGE;
}

/* A full disk or a closed pipe shows up only when the last bytes are flushed. Done at exit, because
 * argp ends the process by itself behind a --help. */
static void finish_output(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return;
    if (cli_fail_told_output())
        _exit(CLI_FAILURE);
    core_error_errno(RAFFIA_ERROR_IO, errno, "cannot write to standard output");
    _exit(cli_fail_last(false, NULL));
}

int main(int argc, char **argv)
{
    argp_err_exit_status = CLI_USAGE;
    if (atexit(finish_output)) {
        fputs("raffia: no memory to begin with\n", stderr);
        return CLI_FAILURE;
    }
    return dispatch(argc, argv);
}
