#include "core/fallbacks.h"

#include "core/log.h"
#include "core/process.h"
#include "core/text.h"

#include <string.h>

/* Kinds x sizes x reasons that can really occur are far fewer; what does not fit is lumped together
 * in the last row. */
#define ROWS_MAX 64

/* Both guarded by the lock of the process. */
static raffia_fallback_count rows[ROWS_MAX];
static size_t row_count;

static bool same_step(const raffia_fallback_count *a, const raffia_fallback_count *b)
{
    return a->from_kind == b->from_kind && a->from_size == b->from_size &&
           a->to_kind == b->to_kind && a->to_size == b->to_size && a->reason == b->reason;
}

/* Returns the count of the step after this one. */
static uint64_t count_step(const raffia_fallback_count *step)
{
    for (size_t i = 0; i < row_count; i++)
        if (same_step(&rows[i], step))
            return ++rows[i].count;
    if (row_count == ROWS_MAX)
        return ++rows[ROWS_MAX - 1].count;
    rows[row_count] = *step;
    return rows[row_count++].count = 1;
}

static uint64_t count_locked(const raffia_fallback_count *step)
{
    core_process_lock();
    uint64_t count = count_step(step);
    core_process_unlock();
    return count;
}

void core_fallback(raffia_page_kind from_kind, size_t from_size, raffia_page_kind to_kind,
                   size_t to_size, raffia_fallback_reason reason, const char *detail)
{
    const raffia_fallback_count step = {.from_kind = from_kind,
                                        .from_size = from_size,
                                        .to_kind = to_kind,
                                        .to_size = to_size,
                                        .reason = reason};
    uint64_t count = count_locked(&step);

    char from_text[CORE_SIZE_TEXT_MAX], to_text[CORE_SIZE_TEXT_MAX];
    core_log(count == 1 ? RAFFIA_LOG_WARN : RAFFIA_LOG_INFO, "no %s %s pages (%s: %s); %s%s%s%s",
             core_format_size(from_size, from_text), raffia_page_kind_name(from_kind),
             raffia_fallback_reason_name(reason), detail,
             to_size ? "using " : "nothing left to try",
             to_size ? core_format_size(to_size, to_text) : "", to_size ? " " : "",
             to_size ? raffia_page_kind_name(to_kind) : "");
}

/* Of a block of any size: rounded up to a power of two, or every size would take a row. */
static size_t coarse(size_t bytes)
{
    size_t rounded = 1;
    while (rounded < bytes && rounded <= SIZE_MAX / 2)
        rounded *= 2;
    return bytes ? rounded : 0;
}

/* SPEC B11: what has a good way out is no warning. */
void core_fallback_pin(raffia_page_kind from_kind, size_t from_size, raffia_page_kind to_kind,
                       size_t to_size, const char *what, const char *detail)
{
    const raffia_fallback_count step = {.from_kind = from_kind,
                                        .from_size = coarse(from_size),
                                        .to_kind = to_kind,
                                        .to_size = coarse(to_size),
                                        .reason = RAFFIA_REASON_PIN};
    uint64_t count = count_locked(&step);
    char from_text[CORE_SIZE_TEXT_MAX];
    core_log(count == 1 && !to_size ? RAFFIA_LOG_WARN : RAFFIA_LOG_INFO,
             "host memory cannot be pinned in pieces of %s (%s); %s",
             core_format_size(from_size, from_text), detail, what);
}

size_t raffia_fallbacks(raffia_fallback_count *copy, size_t capacity)
{
    core_process_lock();
    size_t count = row_count;
    if (capacity > 0)
        memcpy(copy, rows, (count < capacity ? count : capacity) * sizeof *copy);
    core_process_unlock();
    return count;
}
