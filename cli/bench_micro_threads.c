/* The loads of several threads on one allocator. */
#include "cli/bench_micro.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"

#include <pthread.h>

/* One thread and its share. */
struct worker {
    const struct replay_way *way;
    const struct trace *trace;
    uint64_t *names;
    uint64_t started, ended;
    struct replay_result result;
};

static raffia_status work(void *context, unsigned index, unsigned count)
{
    (void)count;
    struct worker *worker = (struct worker *)context + index;
    worker->started = core_clock_ns();
    raffia_status status = replay_run(worker->way, worker->trace, worker->names, &worker->result);
    worker->ended = core_clock_ns();
    return status;
}

static void *do_nothing(void *context)
{
    return context;
}

raffia_status micro_threads_begin(void)
{
    pthread_t thread;
    int failed = pthread_create(&thread, NULL, do_nothing, NULL);
    if (failed)
        return core_error_errno(core_status_of_errno(failed), failed, "cannot start a thread");
    pthread_join(thread, NULL);
    return RAFFIA_OK;
}

static void sum_up(const struct worker *workers, unsigned threads,
                   struct micro_threads_result *result)
{
    uint64_t started = UINT64_MAX, ended = 0;
    *result = (struct micro_threads_result){0};
    for (unsigned i = 0; i < threads; i++) {
        started = core_min(started, workers[i].started);
        ended = core_max(ended, workers[i].ended);
        result->done += workers[i].result.done;
        result->refused_bytes += workers[i].result.refused_bytes;
    }
    result->seconds = (double)(ended - started) * 1e-9;
}

raffia_status micro_threads_run(const struct replay_way *way, const struct trace *traces,
                                unsigned threads, struct micro_threads_result *result)
{
    struct worker workers[WORKLOAD_THREADS_MAX] = {0};
    raffia_status status = RAFFIA_OK;
    for (unsigned i = 0; !status && i < threads; i++) {
        workers[i] = (struct worker){.way = way, .trace = &traces[i]};
        workers[i].names = replay_names_new(&traces[i]);
        status = workers[i].names ? RAFFIA_OK : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    }
    if (!status)
        status = core_parallel(threads, work, workers);
    if (!status)
        sum_up(workers, threads, result);
    for (unsigned i = 0; i < threads; i++) {
        raffia_status drained =
            workers[i].names ? replay_drain(way, &traces[i], workers[i].names) : RAFFIA_OK;
        status = status ? status : drained;
        core_free(workers[i].names);
    }
    return status;
}
