#include "driver/hugetlb_turn.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#define LOCK_FILE "/tmp/raffia-test-hugetlb.lock"

/* Set for programs that a test starts: they are in its turn, and would wait for it for ever. */
#define TAKEN "RAFFIA_TEST_HUGETLB_TURN"

static int lock_fd = -1; /* open until the process ends; forked children share the turn */

__attribute__((constructor)) static void begin(void)
{
    if (getenv(TAKEN))
        return;
    lock_fd = open(LOCK_FILE, O_RDONLY | O_CLOEXEC); /* maybe another user's */
    if (lock_fd < 0)
        lock_fd = open(LOCK_FILE, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    if (lock_fd >= 0 && flock(lock_fd, LOCK_SH) == 0)
        setenv(TAKEN, "1", 1);
}

/* flock(2) lets go before it waits, so that two who share do not wait for each other. */
bool hugetlb_turn_alone(void)
{
    return lock_fd >= 0 && flock(lock_fd, LOCK_EX) == 0;
}

void hugetlb_turn_share(void)
{
    if (lock_fd >= 0)
        (void)flock(lock_fd, LOCK_SH);
}
