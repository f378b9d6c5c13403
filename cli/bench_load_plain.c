#include "cli/bench_load_plain.h"

#include "cli/input.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/parallel.h"

#include <errno.h>
#include <sys/mman.h>
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
    void *memory =
        mmap(NULL, made.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return core_error_errno(core_status_of_errno(errno), errno, "cannot map %zu bytes",
                                made.bytes);
    made.memory = memory;
    /* Fails where the kernel knows no transparent huge pages: then there are none to avoid. */
    (void)!madvise(memory, made.bytes, MADV_NOHUGEPAGE);
    struct job job = {files, &made};
    raffia_status status = core_parallel(threads, read_share, &job);
    if (status) {
        plain_load_free(&made);
        return status;
    }
    *load = made;
    return RAFFIA_OK;
}

void plain_load_free(struct plain_load *load)
{
    munmap(load->memory, load->bytes);
    *load = (struct plain_load){0};
}
