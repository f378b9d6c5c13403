#include "core/parallel.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/settings.h"
#include "core/sys.h"

#include <pthread.h>
#include <sched.h>

#define DEFAULT_THREADS_MAX 16

unsigned core_cpu_count(void)
{
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus))
        return 1;
    int count = CPU_COUNT(&cpus);
    return count > 0 ? (unsigned)count : 1;
}

unsigned core_thread_count(unsigned asked)
{
    if (asked == 0)
        asked = (unsigned)core_setting_count(CORE_SETTING_THREADS);
    if (asked != 0)
        return asked;
    unsigned cpus = core_cpu_count();
    return cpus < DEFAULT_THREADS_MAX ? cpus : DEFAULT_THREADS_MAX;
}

struct share {
    core_parallel_work work;
    void *context;
    unsigned index, count;
    bool started;
    pthread_t thread;
    raffia_status status;
    struct core_error_record error;
};

static void *run_share(void *argument)
{
    struct share *share = argument;
    share->status = share->work(share->context, share->index, share->count);
    if (share->status)
        core_error_save(&share->error);
    return NULL;
}

raffia_status core_parallel(unsigned count, core_parallel_work work, void *context)
{
    if (count <= 1)
        return work(context, 0, 1);
    struct share *shares = core_calloc(count, sizeof *shares);
    if (!shares)
        return work(context, 0, 1);
    for (unsigned i = 0; i < count; i++)
        shares[i] = (struct share){.work = work, .context = context, .index = i, .count = count};
    for (unsigned i = 1; i < count; i++)
        shares[i].started = sys_thread_create(&shares[i].thread, run_share, &shares[i]) == 0;
    for (unsigned i = 0; i < count; i++)
        if (!shares[i].started)
            run_share(&shares[i]);
    for (unsigned i = 1; i < count; i++)
        if (shares[i].started)
            pthread_join(shares[i].thread, NULL);
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; i < count && !status; i++)
        if (shares[i].status)
            status = core_error_restore(&shares[i].error);
    core_free(shares);
    return status;
}
