/*
 * Runs one load or trace on one allocator:  peer_NAME RUNS (LOAD | FILE)
 *
 * Prints a line: name, load, nanoseconds for an operation (median, least, most of the passes) and
 * the share of bytes refused. Each pass has a new allocator; the first warms up and is dropped.
 */
#include "bench/peers/peer.h"
#include "cli/bench_micro.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX 1000u

struct job {
    struct trace traces[WORKLOAD_THREADS_MAX];
    unsigned count;   /* of traces */
    unsigned threads; /* 0: none beside this one */
    size_t range;
    double samples[RUNS_MAX];
    unsigned runs;
    double refused_share;
};

static raffia_status read_job(const char *load, struct job *job)
{
    const struct workload *workload = workload_find(load);
    job->range = WORKLOAD_RANGE_BYTES;
    if (!workload) {
        raffia_status status = trace_read(load, &job->traces[0]);
        if (status)
            return status;
        job->count = 1;
        job->range = core_align_up_unchecked(
            core_max(job->range, 2 * (size_t)job->traces[0].peak_bytes), (size_t)2 << 20);
        return RAFFIA_OK;
    }
    job->threads = workload->threads;
    raffia_status status = RAFFIA_OK;
    while (!status && job->count < core_max(workload->threads, 1))
        if (!(status = workload_make(workload, job->count, &job->traces[job->count])))
            job->count++;
    return status;
}

static raffia_status run_alone(struct job *job, const struct replay_way *way,
                               struct micro_threads_result *sum)
{
    struct replay_result result = {0};
    uint64_t *names = replay_names_new(&job->traces[0]);
    if (!names)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = replay_run(way, &job->traces[0], names, &result);
    raffia_status drained = replay_drain(way, &job->traces[0], names);
    core_free(names);
    *sum = (struct micro_threads_result){result.seconds, result.done, result.refused_bytes};
    return status ? status : drained;
}

static raffia_status pass(struct job *job, unsigned run)
{
    struct replay_way way;
    struct micro_threads_result sum;
    raffia_status status = peer_open(job->range, &way);
    if (status)
        return status;
    status = job->threads ? micro_threads_run(&way, job->traces, job->threads, &sum)
                          : run_alone(job, &way, &sum);
    peer_close();
    if (status)
        return status;
    uint64_t asked = 0;
    for (unsigned i = 0; i < job->count; i++)
        asked += job->traces[i].asked_bytes;
    job->refused_share = asked ? (double)sum.refused_bytes / (double)asked : 0;
    if (run > 0)
        job->samples[run - 1] = sum.seconds * 1e9 / (double)sum.done;
    return RAFFIA_OK;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static raffia_status run_job(const char *load, struct job *job)
{
    raffia_status status = read_job(load, job);
    if (!status && job->threads && !peer_is_shared) {
        printf("%s\t%s\t-\t-\t-\t-\n", peer_name, load);
        return RAFFIA_OK;
    }
    if (!status && job->threads)
        status = micro_threads_begin();
    for (unsigned run = 0; !status && run <= job->runs; run++)
        status = pass(job, run);
    if (status)
        return status;
    qsort(job->samples, job->runs, sizeof *job->samples, by_value);
    printf("%s\t%s\t%.2f\t%.2f\t%.2f\t%.6f\n", peer_name, base_name(load),
           job->samples[job->runs / 2], job->samples[0], job->samples[job->runs - 1],
           job->refused_share);
    return RAFFIA_OK;
}

int main(int argc, char **argv)
{
    static struct job job;
    char *end = NULL;
    const unsigned long runs = argc == 3 ? strtoul(argv[1], &end, 10) : 0;
    if (argc != 3 || *end || runs < 1 || runs > RUNS_MAX) {
        fprintf(stderr, "usage: %s RUNS (LOAD | FILE)\n", argv[0]);
        return 2;
    }
    job.runs = (unsigned)runs;
    raffia_status status = run_job(argv[2], &job);
    for (unsigned i = 0; i < job.count; i++)
        trace_clear(&job.traces[i]);
    if (status)
        fprintf(stderr, "%s: %s\n", peer_name, raffia_last_error());
    return status ? 1 : 0;
}
