#include "driver/conformance.h"

#include "support/cmocka.h"
#include "support/huge_requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Larger pages are tried for themselves, but not used where any page would do. */
#define USUAL_PAGE_MAX ((size_t)4 << 20)

/* So many of them the tests use at once, at most. */
#define USUAL_PAGES 8

/* Room for reading device memory that the CPU cannot touch. */
#define WINDOW_BYTES ((size_t)64 << 10)

bool subject_can(const struct subject *s, enum driver_capability capability)
{
    if (!(s->driver->capabilities & capability))
        return false;
    switch (capability) {
    case DRIVER_CAN_VERIFY:
        return s->info.verifies_pages;
    case DRIVER_CPU_ACCESSIBLE:
        return s->info.cpu_accessible;
    case DRIVER_IS_ASYNCHRONOUS:
        return s->info.asynchronous;
    default:
        return true;
    }
}

bool subject_make_pool(const struct subject *s, driver_pool *pool_p)
{
    const struct driver_pool_spec spec = {.release_threshold = SIZE_MAX};
    if (!(s->driver->capabilities & DRIVER_HAS_POOLS))
        return false;
    raffia_status status = s->driver->pool_create(s->index, &spec, pool_p);
    assert_true(!status || status == RAFFIA_ERROR_UNSUPPORTED);
    return !status;
}

struct driver_chunk_spec subject_spec(const raffia_page_offer *offer, size_t pages)
{
    return (struct driver_chunk_spec){.bytes = pages * offer->size,
                                      .page_size = offer->size,
                                      .kind = offer->kind,
                                      .numa_node = -1,
                                      .threads = 1};
}

raffia_status subject_place(const struct subject *s, const struct driver_chunk_spec *spec, void *at,
                            driver_chunk *chunk_p, raffia_fallback_reason *reason)
{
    driver_chunk chunk;
    raffia_status status = s->driver->chunk_create(s->index, spec, &chunk, reason);
    if (status)
        return status;
    status = s->driver->chunk_map(s->index, chunk, at, reason);
    if (status) {
        assert_ok(s->driver->chunk_destroy(s->index, chunk));
        return status;
    }
    *chunk_p = chunk;
    return RAFFIA_OK;
}

void subject_take_away(const struct subject *s, driver_chunk chunk, void *at)
{
    assert_ok(s->driver->chunk_unmap(s->index, chunk, at));
    assert_ok(s->driver->chunk_destroy(s->index, chunk));
}

/* Whether the tests can have their pages of this kind now. */
static bool can_be_had(const struct subject *s, const raffia_page_offer *offer)
{
    void *base;
    driver_chunk chunk;
    raffia_fallback_reason reason;
    struct driver_chunk_spec spec = subject_spec(offer, USUAL_PAGES);
    assert_ok(s->driver->range_reserve(s->index, spec.bytes, spec.page_size, &base));
    bool had = subject_place(s, &spec, base, &chunk, &reason) == RAFFIA_OK;
    if (had)
        subject_take_away(s, chunk, base);
    assert_ok(s->driver->range_release(s->index, base, spec.bytes));
    return had;
}

const raffia_page_offer *subject_usual_pages(const struct subject *s)
{
    for (size_t i = 0; i < s->info.page_count; i++)
        if (s->info.pages[i].size <= USUAL_PAGE_MAX && can_be_had(s, &s->info.pages[i]))
            return &s->info.pages[i];
    fail_msg("the device gives no pages of at most %zu bytes", USUAL_PAGE_MAX);
    return NULL;
}

static void wait_for_copies(const struct subject *s)
{
    if (subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        assert_ok(s->driver->stream_wait(s->index, NULL));
}

void subject_write(const struct subject *s, void *at, const void *bytes, size_t count)
{
    if (subject_can(s, DRIVER_CPU_ACCESSIBLE)) {
        memcpy(at, bytes, count);
        return;
    }
    assert_ok(s->driver->copy(s->index, NULL, at, bytes, count));
    wait_for_copies(s);
}

void subject_read(const struct subject *s, const void *at, void *bytes, size_t count)
{
    if (subject_can(s, DRIVER_CPU_ACCESSIBLE)) {
        memcpy(bytes, at, count);
        return;
    }
    assert_ok(s->driver->copy(s->index, NULL, bytes, at, count));
    wait_for_copies(s);
}

void subject_fill(const struct subject *s, void *at, unsigned char value, size_t count)
{
    if (subject_can(s, DRIVER_CPU_ACCESSIBLE)) {
        memset(at, value, count);
        return;
    }
    assert_ok(s->driver->fill(s->index, NULL, at, value, count));
    wait_for_copies(s);
}

void subject_expect(const struct subject *s, const void *at, unsigned char value, size_t count)
{
    static unsigned char window[WINDOW_BYTES], wanted[WINDOW_BYTES];
    memset(wanted, value, sizeof wanted);
    for (size_t done = 0; done < count;) {
        size_t piece = count - done < WINDOW_BYTES ? count - done : WINDOW_BYTES;
        subject_read(s, (const char *)at + done, window, piece);
        for (size_t i = 0; memcmp(window, wanted, piece) && i < piece; i++)
            if (window[i] != value)
                fail_msg("byte %zu of %zu at %p is %#x, not %#x", done + i, count, at, window[i],
                         value);
        done += piece;
    }
}

static int nothing_failed(void **state)
{
    const struct subject *s = *state;
    return s->driver->context_state(s->index) == RAFFIA_OK ? 0 : -1;
}

int conformance_run(const char *name, const struct conformance *what)
{
    struct subject s = {.device = what->device,
                        .driver = what->device.driver,
                        .index = what->device.index,
                        .has_fault_points = what->has_fault_points,
                        .streams_ignore_default = what->streams_ignore_default};
    if (s.driver->device_info(s.index, &s.info)) {
        fprintf(stderr, "%s: no device to test: %s\n", name, raffia_last_error());
        return 1;
    }
#define PART(function)                                                                             \
    {                                                                                              \
#function, function, NULL, nothing_failed, &s                                              \
    }
    const struct CMUnitTest tests[] = {
        PART(device_describes_itself),
        PART(ranges_are_aligned_as_asked),
        PART(every_kind_of_page_that_can_be_had_lives_its_life),
        PART(refused_specs_leave_nothing),
        PART(a_failed_map_leaves_the_range_usable),
        PART(chunks_share_one_range),
        PART(a_remapped_chunk_keeps_its_content),
        PART(an_alias_shows_the_same_bytes),
        PART(an_imported_chunk_is_the_exported_one),
        PART(a_chunk_may_fail_at_every_call_of_its_life),
        PART(regular_memory_of_any_size_is_aligned),
        PART(regular_memory_that_nobody_has_is_refused),
        PART(regular_memory_may_fail_at_every_call),
        PART(copies_move_exactly_what_was_asked),
        PART(memory_is_told_apart_for_code_that_touches_it),
        PART(host_memory_is_registered_and_unregistered),
        PART(host_memory_of_the_driver_can_be_copied),
        PART(pools_give_memory_in_the_order_of_streams),
        PART(pools_use_freed_memory_again),
        PART(pools_may_fail_at_every_call),
        PART(missing_verbs_say_so),
        PART(stream_ids_are_never_given_twice),
        PART(events_order_streams),
        PART(the_default_stream_works),
        PART(order_may_fail_at_every_call),
        PART(a_forked_child_is_told_the_truth),
    };
#undef PART
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
