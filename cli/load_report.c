#include "cli/load_report.h"

#include "cli/format.h"
#include "cli/json.h"
#include "cli/page_text.h"
#include "core/text.h"

#include <stdio.h>
#include <stdlib.h>

static int by_total(const void *left, const void *right)
{
    double a = ((const raffia_load_report *)left)->total_seconds;
    double b = ((const raffia_load_report *)right)->total_seconds;
    return (a > b) - (a < b);
}

static void print_phase(const char *name, double seconds, uint64_t bytes)
{
    char time[CLI_FORMAT_MAX], rate[CLI_FORMAT_MAX];
    printf("  %-10s %10s", name, cli_format_seconds(seconds, time));
    if (bytes)
        printf("  %s", cli_format_rate((double)bytes, seconds, rate));
    printf("\n");
}

static void print_times(const struct load_outcome *outcome, const raffia_load_report *median)
{
    uint64_t bytes = median->bytes_total;
    print_phase("total", median->total_seconds, bytes);
    if (outcome->runs > 1) {
        char least[CLI_FORMAT_MAX], most[CLI_FORMAT_MAX];
        printf("  %-10s median of %u runs, from %s to %s\n", "", outcome->runs,
               cli_format_seconds(outcome->reports[0].total_seconds, least),
               cli_format_seconds(outcome->reports[outcome->runs - 1].total_seconds, most));
    }
    print_phase("open", median->open_seconds, 0);
    if (median->pinned)
        print_phase("context", median->context_seconds, 0);
    print_phase("map", median->map_seconds, 0);
    if (median->pinned)
        print_phase("ring", median->ring_seconds, 0);
    print_phase("read", median->read_seconds, bytes);
    if (median->pinned)
        print_phase("wait", median->wait_seconds, 0);
    if (outcome->model)
        print_phase("checksum", median->checksum_seconds, bytes);
}

static void print_reading(const struct load_outcome *outcome, const raffia_load_report *report)
{
    char buffered[CORE_SIZE_TEXT_MAX], direct[CORE_SIZE_TEXT_MAX], staged[CORE_SIZE_TEXT_MAX];
    char staging[CORE_SIZE_TEXT_MAX];
    printf("  %-10s %s: %s through the page cache, %s direct", "reader", outcome->reader,
           core_format_size(report->bytes_buffered, buffered),
           core_format_size(report->bytes_direct, direct));
    if (report->bytes_staged)
        printf(" (%s of it staged)", core_format_size(report->bytes_staged, staged));
    printf("\n  %-10s %llu read%s of %llu window%s by %u thread%s, staging memory %s\n", "",
           (unsigned long long)report->reads, cli_plural(report->reads),
           (unsigned long long)report->windows, cli_plural(report->windows), report->threads,
           cli_plural(report->threads), core_format_size(report->staging_bytes, staging));
    if (report->direct_refusals)
        printf("  %-10s direct reading was refused for %llu window%s\n", "",
               (unsigned long long)report->direct_refusals, cli_plural(report->direct_refusals));
}

static void print_copying(const raffia_load_report *report)
{
    char bytes[CORE_SIZE_TEXT_MAX], slot[CORE_SIZE_TEXT_MAX], page[CORE_SIZE_TEXT_MAX];
    if (!report->pinned)
        return;
    printf("  %-10s %s to the device in %llu cop%s through %u slot%s of %s, %s, in %s %s pages\n",
           "copied", core_format_size(report->bytes_copied, bytes),
           (unsigned long long)report->copies, report->copies == 1 ? "y" : "ies", report->slots,
           cli_plural(report->slots), core_format_size(report->slot_bytes, slot), report->pinned,
           core_format_size(report->staging_page_size, page),
           raffia_page_kind_name(report->staging_page_kind));
}

static void print_pages(const raffia_page_report *pages)
{
    if (pages->total_bytes == 0)
        return;
    char text[PAGE_TEXT_MAX];
    printf("  %-10s %s\n", "pages", page_text_report(pages, text));
    if (pages->reason != RAFFIA_REASON_NONE)
        printf("  %-10s %s\n", "", page_text_reason(pages, text));
}

static void print_process(const struct load_outcome *outcome)
{
    const struct process_facts *before = &outcome->before, *after = &outcome->after;
    char tables_before[CORE_SIZE_TEXT_MAX], tables_after[CORE_SIZE_TEXT_MAX];
    printf("  %-10s %llu minor and %llu major page faults; page tables %s before, %s after\n",
           "process", (unsigned long long)(after->minor_faults - before->minor_faults),
           (unsigned long long)(after->major_faults - before->major_faults),
           core_format_size(before->page_table_bytes, tables_before),
           core_format_size(after->page_table_bytes, tables_after));
}

static void print_verification(const struct verify_result *result)
{
    char size[CORE_SIZE_TEXT_MAX];
    printf("  %-10s %zu tensor%s, %s: ", "verified", result->tensors, cli_plural(result->tensors),
           core_format_size(result->bytes, size));
    if (result->by_pattern)
        printf("each byte is the pattern's (seed %llu)\n", (unsigned long long)result->seed);
    else
        printf("each byte is the file's, read a second time\n");
}

static void print_checksums(const raffia_model *model)
{
    for (size_t i = 0; i < raffia_model_tensor_count(model); i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(model, i);
        char name[CLI_NAME_MAX];
        printf("%016llx  %s\n", (unsigned long long)tensor->checksum,
               cli_format_name(tensor->name, name));
    }
}

static void print_text(const struct load_outcome *outcome, const raffia_load_report *median)
{
    char size[CORE_SIZE_TEXT_MAX], memory[CORE_SIZE_TEXT_MAX];
    printf("%s: %zu tensor%s, %s from %zu file%s into %s of %s memory\n", outcome->path,
           outcome->tensors, cli_plural(outcome->tensors),
           core_format_size(median->bytes_total, size), median->files, cli_plural(median->files),
           core_format_size(median->memory_bytes, memory), outcome->device);
    print_times(outcome, median);
    print_reading(outcome, median);
    print_copying(median);
    print_pages(&median->pages);
    print_process(outcome);
    if (outcome->verified)
        print_verification(&outcome->verification);
    if (outcome->model)
        print_checksums(outcome->model);
}

static json_t *json_seconds(const struct load_outcome *outcome, const raffia_load_report *median)
{
    json_t *seconds = json_object(), *runs = json_array();
    cli_json_real(seconds, "total", median->total_seconds);
    cli_json_real(seconds, "open", median->open_seconds);
    cli_json_real(seconds, "map", median->map_seconds);
    cli_json_real(seconds, "read", median->read_seconds);
    cli_json_real(seconds, "checksum", median->checksum_seconds);
    cli_json_real(seconds, "context", median->context_seconds);
    cli_json_real(seconds, "ring", median->ring_seconds);
    cli_json_real(seconds, "wait", median->wait_seconds);
    cli_json_real(seconds, "min", outcome->reports[0].total_seconds);
    cli_json_real(seconds, "max", outcome->reports[outcome->runs - 1].total_seconds);
    for (unsigned i = 0; i < outcome->runs; i++)
        cli_json_append(runs, json_real(outcome->reports[i].total_seconds));
    cli_json_set(seconds, "runs", runs);
    return seconds;
}

static json_t *json_reading(const struct load_outcome *outcome, const raffia_load_report *report)
{
    json_t *reader = json_object();
    cli_json_text(reader, "asked", outcome->reader);
    cli_json_count(reader, "bytes_buffered", report->bytes_buffered);
    cli_json_count(reader, "bytes_direct", report->bytes_direct);
    cli_json_count(reader, "bytes_staged", report->bytes_staged);
    cli_json_count(reader, "direct_refusals", report->direct_refusals);
    cli_json_count(reader, "windows", report->windows);
    cli_json_count(reader, "reads", report->reads);
    cli_json_count(reader, "threads", report->threads);
    cli_json_count(reader, "staging_bytes", report->staging_bytes);
    return reader;
}

static json_t *json_copying(const raffia_load_report *report)
{
    json_t *copying = json_object();
    cli_json_count(copying, "bytes", report->bytes_copied);
    cli_json_count(copying, "copies", report->copies);
    cli_json_count(copying, "slot_bytes", report->slot_bytes);
    cli_json_count(copying, "slots", report->slots);
    cli_json_text(copying, "pinned", report->pinned);
    cli_json_text(copying, "page_kind", raffia_page_kind_name(report->staging_page_kind));
    cli_json_count(copying, "page_size", report->staging_page_size);
    return copying;
}

static json_t *json_process(const struct load_outcome *outcome)
{
    const struct process_facts *before = &outcome->before, *after = &outcome->after;
    json_t *process = json_object();
    cli_json_count(process, "minor_faults", after->minor_faults - before->minor_faults);
    cli_json_count(process, "major_faults", after->major_faults - before->major_faults);
    cli_json_count(process, "page_table_bytes_before", before->page_table_bytes);
    cli_json_count(process, "page_table_bytes_after", after->page_table_bytes);
    return process;
}

static json_t *json_verification(const struct verify_result *result)
{
    json_t *verification = json_object();
    cli_json_text(verification, "method", result->by_pattern ? "pattern" : "file");
    if (result->by_pattern)
        cli_json_count(verification, "seed", result->seed);
    cli_json_count(verification, "tensors", result->tensors);
    cli_json_count(verification, "bytes", result->bytes);
    cli_json_real(verification, "seconds", result->seconds);
    return verification;
}

static json_t *json_checksums(const raffia_model *model)
{
    json_t *checksums = json_object();
    for (size_t i = 0; i < raffia_model_tensor_count(model); i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(model, i);
        char text[24];
        snprintf(text, sizeof text, "%016llx", (unsigned long long)tensor->checksum);
        cli_json_text(checksums, tensor->name, text);
    }
    return checksums;
}

static raffia_status print_json(const struct load_outcome *outcome,
                                const raffia_load_report *median)
{
    json_t *root = json_object();
    cli_json_text(root, "path", outcome->path);
    cli_json_text(root, "device", outcome->device);
    cli_json_count(root, "runs", outcome->runs);
    cli_json_count(root, "tensors", outcome->tensors);
    cli_json_count(root, "files", median->files);
    cli_json_count(root, "bytes", median->bytes_total);
    cli_json_count(root, "memory_bytes", median->memory_bytes);
    cli_json_set(root, "seconds", json_seconds(outcome, median));
    if (median->total_seconds > 0)
        cli_json_real(root, "gb_per_second",
                      (double)median->bytes_total / median->total_seconds * 1e-9);
    cli_json_set(root, "reader", json_reading(outcome, median));
    if (median->pinned)
        cli_json_set(root, "copying", json_copying(median));
    cli_json_set(root, "pages", cli_json_pages(&median->pages));
    cli_json_set(root, "process", json_process(outcome));
    if (outcome->verified)
        cli_json_set(root, "verified", json_verification(&outcome->verification));
    if (outcome->model)
        cli_json_set(root, "checksums", json_checksums(outcome->model));
    return cli_json_print(root);
}

raffia_status load_report_print(struct load_outcome *outcome, bool json)
{
    qsort(outcome->reports, outcome->runs, sizeof *outcome->reports, by_total);
    const raffia_load_report *median = &outcome->reports[(outcome->runs - 1) / 2];
    if (json)
        return print_json(outcome, median);
    print_text(outcome, median);
    return RAFFIA_OK;
}
