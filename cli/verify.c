#include "cli/verify.h"

#include "cli/format.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/pattern.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/text.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Compared at once; a multiple of the pattern's word. */
#define PIECE_BYTES ((size_t)1 << 20)

/* One verification, shared by its threads. */
struct job {
    const raffia_model *model;
    bool by_pattern;
    bool hidden; /* the CPU cannot read the tensors: they are copied back, piece by piece */
    uint64_t seed;
    atomic_size_t next; /* tensor to take */
    atomic_bool found;  /* a difference: no need to go on */
    pthread_mutex_t lock;
    size_t bad_index; /* guarded by lock, as is the next */
    uint64_t bad_offset;
};

static bool made_with_pattern(const raffia_model *model, uint64_t *seed_p)
{
    const char *version = raffia_model_metadata(model, PATTERN_METADATA_VERSION);
    const char *seed = raffia_model_metadata(model, PATTERN_METADATA_SEED);
    return version && seed && strcmp(version, PATTERN_VERSION) == 0 &&
           core_parse_count(seed, UINT64_MAX, seed_p) == RAFFIA_OK;
}

static void record(struct job *job, size_t index, uint64_t offset)
{
    pthread_mutex_lock(&job->lock);
    if (!atomic_load(&job->found) || index < job->bad_index) {
        job->bad_index = index;
        job->bad_offset = offset;
    }
    atomic_store(&job->found, true);
    pthread_mutex_unlock(&job->lock);
}

static size_t first_difference(const unsigned char *a, const unsigned char *b, size_t bytes)
{
    size_t i = 0;
    while (i < bytes && a[i] == b[i])
        i++;
    return i;
}

/* Room of one thread. */
struct pieces {
    unsigned char *file;   /* what the file holds */
    unsigned char *memory; /* what memory holds, where the CPU cannot look itself */
};

/* *bytes_p becomes where the CPU finds a piece of the tensor. */
static raffia_status look(const struct job *job, const raffia_tensor *tensor, size_t offset,
                          size_t bytes, const struct pieces *pieces, const unsigned char **bytes_p)
{
    *bytes_p = job->hidden ? pieces->memory : (const unsigned char *)tensor->data + offset;
    return job->hidden ? raffia_model_read(job->model, tensor, offset, pieces->memory, bytes)
                       : RAFFIA_OK;
}

/* Compares one tensor with its file. */
static raffia_status compare_file(struct job *job, size_t index, const raffia_tensor *tensor,
                                  int fd, const struct pieces *pieces)
{
    const unsigned char *data;
    for (size_t done = 0; done < tensor->bytes && !atomic_load(&job->found);) {
        if (cli_interrupted())
            return core_error(RAFFIA_ERROR_CANCELLED, "interrupted while verifying");
        size_t bytes = core_min(tensor->bytes - done, PIECE_BYTES);
        raffia_status status =
            input_read(tensor->file, fd, tensor->file_offset + done, pieces->file, bytes);
        if (!status)
            status = look(job, tensor, done, bytes, pieces, &data);
        if (status)
            return status;
        if (memcmp(data, pieces->file, bytes) != 0)
            record(job, index, done + first_difference(data, pieces->file, bytes));
        done += bytes;
    }
    return RAFFIA_OK;
}

static raffia_status check_by_file(struct job *job, size_t index, const raffia_tensor *tensor,
                                   const struct pieces *pieces)
{
    int fd;
    raffia_status status = input_open(tensor->file, &fd);
    if (status)
        return status;
    status = compare_file(job, index, tensor, fd, pieces);
    close(fd);
    return status;
}

static raffia_status check_by_pattern(struct job *job, size_t index, const raffia_tensor *tensor,
                                      const struct pieces *pieces)
{
    uint64_t key = pattern_key(job->seed, tensor->name), bad;
    const unsigned char *data;
    for (size_t done = 0; done < tensor->bytes && !atomic_load(&job->found);) {
        if (cli_interrupted())
            return core_error(RAFFIA_ERROR_CANCELLED, "interrupted while verifying");
        size_t bytes = core_min(tensor->bytes - done, PIECE_BYTES);
        raffia_status status = look(job, tensor, done, bytes, pieces, &data);
        if (status)
            return status;
        if (!pattern_check(key, done, data, bytes, &bad))
            record(job, index, bad);
        done += bytes;
    }
    return RAFFIA_OK;
}

static raffia_status check_share(void *context, unsigned thread, unsigned threads)
{
    (void)thread;
    (void)threads;
    struct job *job = context;
    unsigned char *room = core_malloc(2 * PIECE_BYTES);
    if (!room)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    const struct pieces pieces = {room, room + PIECE_BYTES};
    raffia_status status = RAFFIA_OK;
    while (!status && !atomic_load(&job->found)) {
        size_t index = atomic_fetch_add(&job->next, 1);
        const raffia_tensor *tensor = raffia_model_tensor_at(job->model, index);
        if (!tensor)
            break;
        status = job->by_pattern ? check_by_pattern(job, index, tensor, &pieces)
                                 : check_by_file(job, index, tensor, &pieces);
    }
    core_free(room);
    return status;
}

static raffia_status mismatch(const struct job *job, struct verify_result *result)
{
    const raffia_tensor *tensor = raffia_model_tensor_at(job->model, job->bad_index);
    result->bad_tensor = tensor->name;
    result->bad_offset = job->bad_offset;
    char name[CLI_NAME_MAX];
    return core_error(RAFFIA_ERROR_MISMATCH,
                      "%s: tensor '%s' is wrong from its byte %llu on (byte %llu of the file): it "
                      "differs from %s",
                      tensor->file, cli_format_name(tensor->name, name),
                      (unsigned long long)job->bad_offset,
                      (unsigned long long)(tensor->file_offset + job->bad_offset),
                      job->by_pattern ? "the pattern the file says it was made with"
                                      : "what the file holds when it is read again");
}

raffia_status verify_model(const raffia_model *model, unsigned threads,
                           struct verify_result *result)
{
    struct job job = {.model = model, .lock = PTHREAD_MUTEX_INITIALIZER};
    double started = core_clock_seconds();
    job.by_pattern = made_with_pattern(model, &job.seed);
    job.hidden = raffia_model_report(model)->pinned != NULL;
    *result = (struct verify_result){
        .by_pattern = job.by_pattern,
        .seed = job.seed,
        .tensors = raffia_model_tensor_count(model),
        .bytes = raffia_model_bytes(model),
    };
    raffia_status status = core_parallel(core_thread_count(threads), check_share, &job);
    result->seconds = core_clock_seconds() - started;
    if (!status && atomic_load(&job.found))
        status = mismatch(&job, result);
    pthread_mutex_destroy(&job.lock);
    return status;
}
