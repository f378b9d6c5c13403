#include "cli/interrupt.h"

#include "core/error.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t raised;

static void raise_flag(int signal_number)
{
    (void)signal_number;
    raised = 1;
}

void cli_interrupt_catch(void)
{
    /* No SA_RESTART: a slow write returns with EINTR and sees the flag. */
    struct sigaction action = {.sa_handler = raise_flag, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    /* Beyond ulimit -f a write then fails, and what was written is removed. */
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGXFSZ, &action, NULL);
}

bool cli_interrupted(void)
{
    return raised != 0;
}

raffia_status cli_interrupt_check(void)
{
    return raised ? core_error(RAFFIA_ERROR_CANCELLED, "interrupted") : RAFFIA_OK;
}

const volatile int *cli_interrupt_flag(void)
{
    return &raised;
}
