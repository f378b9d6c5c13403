#include "cli/bench_load_plain.h"

#include "cli/bench_memory.h"
#include "cli/input.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/parallel.h"

#include <unistd.h>

struct job {
    const struct model_summary *files;
    struct plain_load *load;
};

static raffia_status read_file(const struct model_summary_file *file, uint64_t begin, uint64_t end,
                               unsigned char *to)
{
    int fd;
    raffia_status status = input_open(file->path, &fd);
    if (status)
        return status;
    status = input_read(file->path, fd, begin, to, end - begin);
    close(fd);
    return status;
}

/* Reads the bytes of all files, seen as one, from total * index / count on. */
static raffia_status read_share(void *context, unsigned index, unsigned count)
{
    const struct job *job = context;
    uint64_t share = job->load->bytes / count;
    uint64_t begin = share * index;
    uint64_t end = index + 1 == count ? job->load->bytes : begin + share;
    uint64_t base = 0;
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < job->files->file_count; i++) {
        const struct model_summary_file *file = &job->files->files[i];
        uint64_t from = core_max(begin, base), to = core_min(end, base + file->bytes);
        if (from < to)
            status = read_file(file, from - base, to - base, job->load->memory + from);
        base += file->bytes;
    }
    return status;
}

raffia_status plain_load_run(const struct model_summary *files, unsigned threads,
                             struct plain_load *load)
{
    struct plain_load made = {0};
    for (size_t i = 0; i < files->file_count; i++)
        made.bytes += files->files[i].bytes;
    double mapping = core_clock_seconds();
    raffia_status status = bench_memory_map(made.bytes, &made.memory);
    if (status)
        return status;
    made.map_seconds = core_clock_seconds() - mapping;
    struct job job = {files, &made};
    status = core_parallel(threads, read_share, &job);
    if (status) {
        plain_load_free(&made);
        return status;
    }
    *load = made;
    return RAFFIA_OK;
}

void plain_load_free(struct plain_load *load)
{
    bench_memory_unmap(load->memory, load->bytes);
    *load = (struct plain_load){0};
}
