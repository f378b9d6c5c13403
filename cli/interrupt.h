/*
 * Ctrl-C, SIGTERM and SIGHUP: the first asks the command to stop and clean up, the second ends it
 * at once.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <raffia/status.h>

#include <stdbool.h>

/* From now on the signals raise the flag instead of ending the process. SIGXFSZ is ignored: it
 * would end the process before it can clean up. */
void cli_interrupt_catch(void);

bool cli_interrupted(void);

/* CANCELLED, "interrupted", once it was. What takes long asks every tenth of a second or so. */
raffia_status cli_interrupt_check(void);

/* The flag itself, as raffia_load_options.cancel takes it. */
const volatile int *cli_interrupt_flag(void);

#endif
