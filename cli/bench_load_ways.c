#include "cli/bench_load_ways.h"

#include "cli/bench_load_plain.h"
#include "cli/format.h"
#include "cli/interrupt.h"
#include "cli/process.h"
#include "cli/verify.h"
#include "core/checked.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/memory.h"

#include <string.h>
#include <xxhash.h>

/* Everything is measured in this machine's own memory. */
#define DEVICE "host"

static raffia_load_options base_options(unsigned threads)
{
    return (raffia_load_options){
        .struct_size = sizeof(raffia_load_options),
        .device = DEVICE,
        .threads = threads,
        .cancel = cli_interrupt_flag(),
    };
}

static raffia_status take_checksums(struct load_subject *subject)
{
    raffia_load_options options = base_options(0);
    options.pages = RAFFIA_PAGES_OFF;
    options.checksum = RAFFIA_CHECKSUM_XXH3;
    options.reader = RAFFIA_READER_BUFFERED; /* a direct read would leave the cache cold */
    raffia_model *loaded;
    raffia_status status = raffia_model_load(subject->path, &options, &loaded);
    if (status)
        return status;
    struct verify_result result;
    status = verify_model(loaded, 0, &result);
    for (size_t i = 0; !status && i < raffia_model_tensor_count(loaded); i++)
        subject->checksums[i] = raffia_model_tensor_at(loaded, i)->checksum;
    raffia_model_release(loaded);
    return status;
}

raffia_status load_subject_open(const char *path, struct load_subject *subject)
{
    *subject = (struct load_subject){.path = path};
    raffia_status status = raffia_model_inspect(path, NULL, &subject->model);
    if (status)
        return status;
    if (raffia_model_bytes(subject->model) == 0)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "%s: the model has no bytes to load",
                          path);
    status = model_summary_make(subject->model, &subject->summary);
    if (status)
        return status;
    for (size_t i = 0; i < subject->summary.file_count; i++)
        if (!core_add(subject->file_bytes, subject->summary.files[i].bytes, &subject->file_bytes))
            return core_error(RAFFIA_ERROR_OVERFLOW,
                              "%s: the files are too large for the address space", path);
    subject->checksums =
        core_calloc(raffia_model_tensor_count(subject->model), sizeof *subject->checksums);
    return subject->checksums ? take_checksums(subject) : RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
}

void load_subject_free(struct load_subject *subject)
{
    model_summary_free(&subject->summary);
    core_free(subject->checksums);
    raffia_model_release(subject->model);
    *subject = (struct load_subject){0};
}

raffia_status load_subject_check(const struct load_subject *subject, size_t index, const void *data)
{
    const raffia_tensor *tensor = raffia_model_tensor_at(subject->model, index);
    if (tensor->bytes == 0 || XXH3_64bits(data, tensor->bytes) == subject->checksums[index])
        return RAFFIA_OK;
    char name[CLI_NAME_MAX];
    return core_error(RAFFIA_ERROR_MISMATCH, "tensor '%s' came out wrong",
                      cli_format_name(tensor->name, name));
}

/* Offset of a tensor's file in memory that holds all files one behind the other. */
static uint64_t file_base(const struct load_subject *subject, const char *path)
{
    uint64_t base = 0;
    size_t i = 0;
    while (strcmp(subject->summary.files[i].path, path) != 0)
        base += subject->summary.files[i++].bytes;
    return base;
}

static raffia_status check_files(const struct load_subject *subject, const unsigned char *memory)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < raffia_model_tensor_count(subject->model); i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(subject->model, i);
        uint64_t offset = file_base(subject, tensor->file) + tensor->file_offset;
        status = load_subject_check(subject, i, memory + offset);
    }
    return status;
}

static raffia_status check_model(const struct load_subject *subject, const raffia_model *model)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; !status && i < raffia_model_tensor_count(model); i++)
        status = load_subject_check(subject, i, raffia_model_tensor_at(model, i)->data);
    return status;
}

static void fill_sample(struct load_sample *sample, const struct process_facts *before)
{
    struct process_facts after;
    process_facts_read(&after);
    sample->faults = after.minor_faults - before->minor_faults;
    sample->page_table_bytes = after.page_table_bytes > before->page_table_bytes
                                   ? after.page_table_bytes - before->page_table_bytes
                                   : 0;
}

raffia_status load_plainly(const struct load_subject *subject, unsigned threads, bool verify,
                           struct load_sample *sample)
{
    struct process_facts before;
    process_facts_read(&before);
    double started = core_clock_seconds();
    struct plain_load load;
    raffia_status status = plain_load_run(&subject->summary, threads, &load);
    double loaded = core_clock_seconds();
    if (status)
        return status;
    *sample = (struct load_sample){0};
    fill_sample(sample, &before);
    if (verify)
        status = check_files(subject, load.memory);
    double releasing = core_clock_seconds();
    double map_seconds = load.map_seconds;
    plain_load_free(&load);
    double released = core_clock_seconds();
    sample->seconds = loaded - started + (released - releasing);
    sample->parts[BENCH_MAP] = map_seconds;
    sample->parts[BENCH_READ] = loaded - started - map_seconds;
    sample->parts[BENCH_RELEASE] = released - releasing;
    return status;
}

static raffia_status load_by_library(const struct load_subject *subject,
                                     const raffia_load_options *options, bool verify,
                                     struct load_sample *sample)
{
    struct process_facts before;
    process_facts_read(&before);
    raffia_model *model;
    double started = core_clock_seconds();
    raffia_status status = raffia_model_load(subject->path, options, &model);
    double loaded = core_clock_seconds();
    if (status)
        return status;
    const raffia_load_report *report = raffia_model_report(model);
    *sample = (struct load_sample){.bytes_direct = report->bytes_direct, .pages = report->pages};
    fill_sample(sample, &before);
    if (verify)
        status = check_model(subject, model);
    double releasing = core_clock_seconds();
    sample->parts[BENCH_OPEN] = report->open_seconds;
    sample->parts[BENCH_MAP] = report->map_seconds;
    sample->parts[BENCH_READ] = report->read_seconds;
    raffia_model_release(model);
    double released = core_clock_seconds();
    sample->seconds = loaded - started + (released - releasing);
    sample->parts[BENCH_RELEASE] = released - releasing;
    return status;
}

raffia_status load_fresh(const struct load_subject *subject, const struct load_terms *terms,
                         bool verify, struct load_sample *sample)
{
    raffia_load_options options = base_options(terms->threads);
    options.pages = terms->pages;
    options.page_size = terms->page_size;
    return load_by_library(subject, &options, verify, sample);
}

/* Makes sure that a load which did nothing would not find the right bytes in place. */
static raffia_status overwrite(raffia_pool *pool, size_t bytes)
{
    void *block;
    raffia_status status = raffia_pool_alloc(pool, bytes, RAFFIA_TENSOR_ALIGNMENT, &block);
    if (status)
        return status;
    memset(block, 0xa5, bytes);
    return raffia_pool_free(pool, block);
}

raffia_status load_standing(const struct load_subject *subject, raffia_pool *pool, unsigned threads,
                            bool verify, struct load_sample *sample)
{
    raffia_status status = overwrite(pool, raffia_model_bytes_needed(subject->model));
    if (status)
        return status;
    raffia_load_options options = base_options(threads);
    options.pool = pool;
    status = load_by_library(subject, &options, verify, sample);
    if (status)
        return status;
    raffia_pool_stats stats;
    status = raffia_pool_query(pool, &stats);
    if (!status)
        sample->pages = stats.pages;
    return status;
}

raffia_status load_pool_make(const struct load_subject *subject, const struct load_terms *terms,
                             raffia_pool **pool_p, uint64_t *page_table_bytes_p)
{
    raffia_pool_options options = {
        .struct_size = sizeof options,
        .device = DEVICE,
        .name = "bench",
        .pages = terms->pages,
        .page_size = terms->page_size,
        .initial_bytes = raffia_model_bytes_needed(subject->model),
        .chunk_bytes = raffia_model_bytes_needed(subject->model),
        .flags = RAFFIA_POOL_FIXED,
        .threads = terms->threads,
    };
    struct process_facts before;
    process_facts_read(&before);
    raffia_status status = raffia_pool_create(&options, pool_p);
    if (status)
        return status;
    struct load_sample sample;
    fill_sample(&sample, &before);
    *page_table_bytes_p = sample.page_table_bytes;
    return RAFFIA_OK;
}
