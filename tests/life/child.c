#include "child.h"

#include "support/cmocka.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Far more than any child needs, on a busy machine and under a sanitizer. */
#define CHILD_SECONDS 60

#ifdef __SANITIZE_THREAD__
/* Children that were forked by one thread of many start threads of their own. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "die_after_fork=0";
}
#endif

pid_t child_start(child_body body, void *context)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
    fflush(NULL); /* else a child that calls exit() writes it once more */
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL);
    alarm(CHILD_SECONDS);
    _exit(body(context));
}

int child_wait(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int child_run(child_body body, void *context)
{
    return child_wait(child_start(body, context));
}

int child_become(const char *argument)
{
    execl("/proc/self/exe", "/proc/self/exe", argument, (char *)NULL);
    return child_complain(__FILE__, __LINE__, "execl");
}

int child_complain(const char *file, int line, const char *expected)
{
    fprintf(stderr, "%s:%d: expected %s (last error: %s)\n", file, line, expected,
            raffia_last_error());
    return 1;
}
