/* Conformance: ranges, chunks and pages. */
#include "core/fault.h"
#include "driver/conformance.h"
#include "support/cmocka.h"

#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* How much of a large page is looked at, at its start and its end. */
#define SAMPLE (256 * KIB)

void device_describes_itself(void **state)
{
    const struct subject *s = *state;
    int count = -1;
    assert_ok(s->driver->devices(&count));
    assert_true(s->index < count);
    assert_true(s->info.total_bytes > 0);
    assert_true(s->info.free_bytes <= s->info.total_bytes);
    assert_true(s->info.numa_node >= -1);
    assert_true(strlen(s->info.model) > 0);
    size_t length = strlen(s->driver->name);
    assert_memory_equal(s->info.name, s->driver->name, length);
    assert_true(s->info.name[length] == '\0' || s->info.name[length] == ':');

    assert_in_range(s->info.page_count, 1, RAFFIA_PAGE_SIZES_MAX);
    for (size_t i = 0; i < s->info.page_count; i++) {
        const raffia_page_offer *page = &s->info.pages[i];
        assert_in_range(page->kind, RAFFIA_PAGE_REGULAR, RAFFIA_PAGE_KIND_COUNT - 1);
        assert_true(page->size >= 4 * KIB && (page->size & (page->size - 1)) == 0);
        if (i > 0)
            assert_true(page->size <= s->info.pages[i - 1].size);
    }

    assert_ok(s->driver->context_state(s->index));
}

void ranges_are_aligned_as_asked(void **state)
{
    const struct subject *s = *state;
    const size_t sizes[] = {4 * KIB, 2 * MIB, 34 * MIB};
    for (size_t alignment = 4 * KIB; alignment <= GIB; alignment *= 2) {
        void *bases[3];
        for (int i = 0; i < 3; i++) {
            assert_ok(s->driver->range_reserve(s->index, sizes[i], alignment, &bases[i]));
            assert_int_equal((uintptr_t)bases[i] & (alignment - 1), 0);
        }
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < i; k++)
                assert_true((char *)bases[i] + sizes[i] <= (char *)bases[k] ||
                            (char *)bases[k] + sizes[k] <= (char *)bases[i]);
        for (int i = 0; i < 3; i++)
            assert_ok(s->driver->range_release(s->index, bases[i], sizes[i]));
    }
    /* No address space is so large. */
    void *base = NULL;
    assert_true(s->driver->range_reserve(s->index, (size_t)1 << 62, 4 * KIB, &base) != RAFFIA_OK);
    assert_true(strlen(raffia_last_error()) > 0);
    assert_null(base);
}

/* Zero when fresh, and writable from the first byte to the last. */
static void check_fresh_memory(const struct subject *s, char *at, size_t bytes)
{
    size_t sample = bytes < SAMPLE ? bytes : SAMPLE;
    char *tail = at + bytes - sample;
    subject_expect(s, at, 0, sample);
    subject_expect(s, tail, 0, sample);
    subject_fill(s, at, 0x5a, sample);
    subject_fill(s, tail, 0xa5, sample);
    if (tail >= at + sample)
        subject_expect(s, at, 0x5a, sample);
    subject_expect(s, tail, 0xa5, sample);
}

static void check_page_size(const struct subject *s, const raffia_page_offer *offer, char *at,
                            size_t bytes)
{
    struct driver_page_evidence evidence;
    assert_ok(s->driver->page_size_of(s->index, at, bytes, offer->kind, offer->size, &evidence));
    assert_non_null(evidence.source);
    if (!subject_can(s, DRIVER_CAN_VERIFY)) {
        assert_false(evidence.verified);
        assert_int_equal(evidence.smallest, 0);
        return;
    }
    /* The kernel may lack the means for one kind of page; then it must not claim anything. */
    if (!evidence.verified) {
        assert_int_equal(evidence.smallest, 0);
        return;
    }
    assert_true(evidence.smallest >= offer->size);
    assert_int_equal(evidence.conforming, bytes);
}

/* Something else, of a kind that can be had, fits where a chunk was refused. */
static void check_still_empty(const struct subject *s, char *base)
{
    const raffia_page_offer *usual = subject_usual_pages(s);
    struct driver_chunk_spec spec = subject_spec(usual, 1);
    driver_chunk chunk;
    raffia_fallback_reason reason;
    assert_ok(subject_place(s, &spec, base, &chunk, &reason));
    check_fresh_memory(s, base, spec.bytes);
    subject_take_away(s, chunk, base);
}

static void live_once(const struct subject *s, const raffia_page_offer *offer)
{
    /* Room for any usual page too. */
    struct driver_chunk_spec spec = subject_spec(offer, offer->size >= GIB ? 1 : 2);
    size_t bytes = spec.bytes < 8 * MIB ? 8 * MIB : spec.bytes;
    size_t alignment = offer->size < 4 * MIB ? 4 * MIB : offer->size;
    void *base;
    assert_ok(s->driver->range_reserve(s->index, bytes, alignment, &base));
    driver_chunk chunk;
    raffia_fallback_reason reason = RAFFIA_REASON_COUNT;
    raffia_status status = subject_place(s, &spec, base, &chunk, &reason);
    if (status) {
        print_message("[  PASSED OVER ] %s pages of %zu bytes: %s\n",
                      raffia_page_kind_name(offer->kind), offer->size, raffia_last_error());
        assert_true(reason < RAFFIA_REASON_COUNT);
        assert_true(strlen(raffia_last_error()) > 0);
        check_still_empty(s, base);
    } else {
        check_fresh_memory(s, base, spec.bytes);
        check_page_size(s, offer, base, spec.bytes);
        subject_take_away(s, chunk, base);
        /* Fresh again, not what the last one held. */
        assert_ok(subject_place(s, &spec, base, &chunk, &reason));
        check_fresh_memory(s, base, spec.bytes);
        subject_take_away(s, chunk, base);
    }
    assert_ok(s->driver->range_release(s->index, base, bytes));
}

void every_kind_of_page_that_can_be_had_lives_its_life(void **state)
{
    const struct subject *s = *state;
    for (size_t i = 0; i < s->info.page_count; i++)
        live_once(s, &s->info.pages[i]);
    subject_usual_pages(s);
}

static void expect_refused(const struct subject *s, const struct driver_chunk_spec *spec)
{
    driver_chunk chunk = NULL;
    raffia_fallback_reason reason = RAFFIA_REASON_COUNT;
    assert_true(s->driver->chunk_create(s->index, spec, &chunk, &reason) != RAFFIA_OK);
    assert_null(chunk);
    assert_true(reason < RAFFIA_REASON_COUNT);
    assert_true(strlen(raffia_last_error()) > 0);
}

void refused_specs_leave_nothing(void **state)
{
    const struct subject *s = *state;
    const raffia_page_offer *usual = subject_usual_pages(s);
    struct driver_chunk_spec spec = subject_spec(usual, 1);
    spec.bytes += usual->size / 2;
    expect_refused(s, &spec);
    spec = subject_spec(usual, 1);
    spec.bytes = 0;
    expect_refused(s, &spec);
    spec = subject_spec(usual, 1);
    spec.page_size = spec.bytes = (size_t)1 << 44; /* no machine has such pages */
    expect_refused(s, &spec);
    spec = subject_spec(usual, 1);
    spec.kind = RAFFIA_PAGE_NONE;
    expect_refused(s, &spec);
    if (!subject_can(s, DRIVER_CAN_EXPORT)) {
        spec = subject_spec(usual, 1);
        spec.handle = DRIVER_HANDLE_FD;
        expect_refused(s, &spec);
    }
}

void a_failed_map_leaves_the_range_usable(void **state)
{
    const struct subject *s = *state;
    if (!s->has_fault_points)
        skip();
    const raffia_page_offer *usual = subject_usual_pages(s);
    struct driver_chunk_spec spec = subject_spec(usual, 2);
    void *base;
    assert_ok(s->driver->range_reserve(s->index, spec.bytes, spec.page_size, &base));
    bool failed = true;
    for (long n = 1; failed; n++) {
        assert_true(n < 1000);
        driver_chunk chunk;
        raffia_fallback_reason reason = RAFFIA_REASON_COUNT;
        assert_ok(s->driver->chunk_create(s->index, &spec, &chunk, &reason));
        core_fault_arm(n);
        raffia_status status = s->driver->chunk_map(s->index, chunk, base, &reason);
        failed = core_fault_disarm() != NULL;
        if (status) {
            assert_true(failed);
            assert_true(reason < RAFFIA_REASON_COUNT);
            /* The same chunk, at the same place. */
            assert_ok(s->driver->chunk_map(s->index, chunk, base, &reason));
        }
        check_fresh_memory(s, base, spec.bytes);
        subject_take_away(s, chunk, base);
    }
    assert_ok(s->driver->range_release(s->index, base, spec.bytes));
}

void chunks_share_one_range(void **state)
{
    enum { SLOTS = 5 };
    const struct subject *s = *state;
    const raffia_page_offer *usual = subject_usual_pages(s);
    struct driver_chunk_spec spec = subject_spec(usual, 1);
    char *base;
    void *reserved;
    assert_ok(s->driver->range_reserve(s->index, SLOTS * spec.bytes, spec.page_size, &reserved));
    base = reserved;
    driver_chunk chunks[SLOTS];
    raffia_fallback_reason reason;
    for (int i = SLOTS - 1; i >= 0; i--) {
        char *at = base + (size_t)i * spec.bytes;
        assert_ok(subject_place(s, &spec, at, &chunks[i], &reason));
        subject_fill(s, at, (unsigned char)(i + 1), spec.bytes);
    }
    check_page_size(s, usual, base, SLOTS * spec.bytes);
    /* A hole, and something new in it, leave the neighbours alone. */
    char *hole = base + 2 * spec.bytes;
    subject_take_away(s, chunks[2], hole);
    assert_ok(subject_place(s, &spec, hole, &chunks[2], &reason));
    subject_expect(s, hole, 0, spec.bytes);
    for (int i = 0; i < SLOTS; i++) {
        char *at = base + (size_t)i * spec.bytes;
        if (i != 2)
            subject_expect(s, at, (unsigned char)(i + 1), spec.bytes);
        subject_take_away(s, chunks[i], at);
    }
    assert_ok(s->driver->range_release(s->index, base, SLOTS * spec.bytes));
}
