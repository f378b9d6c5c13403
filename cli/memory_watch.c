#include "cli/memory_watch.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"
#include "driver/host/procfile.h"

#include <errno.h>
#include <time.h>

#define PAUSE_NS 1000000

static uint64_t resident_bytes(void)
{
    char *status = host_read_whole("/proc/self/status");
    uint64_t anonymous = 0, shared = 0, huge = 0;
    if (status) {
        host_find_kilobytes(status, "RssAnon:", &anonymous);
        host_find_kilobytes(status, "RssShmem:", &shared);
        host_find_kilobytes(status, "HugetlbPages:", &huge);
    }
    core_free(status);
    return anonymous + shared + huge;
}

static void *watch_main(void *argument)
{
    struct memory_watch *watch = argument;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    while (!atomic_load(&watch->stop)) {
        watch->peak_bytes = core_max(watch->peak_bytes, resident_bytes());
        nanosleep(&pause, NULL);
    }
    return NULL;
}

raffia_status memory_watch_start(struct memory_watch *watch)
{
    *watch = (struct memory_watch){.start_bytes = resident_bytes()};
    watch->peak_bytes = watch->start_bytes;
    const int error_number = pthread_create(&watch->thread, NULL, watch_main, watch);
    if (error_number)
        return core_error_errno(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, error_number,
                                "no thread to watch the memory with");
    return RAFFIA_OK;
}

uint64_t memory_watch_stop(struct memory_watch *watch)
{
    atomic_store(&watch->stop, true);
    pthread_join(watch->thread, NULL);
    return watch->peak_bytes - watch->start_bytes;
}
