/* Conformance: chunks that are mapped again, elsewhere, twice or by others, and failing calls. */
#include "driver/conformance.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <unistd.h>

/* Larger pages are not worth the time. */
#define PAGE_MAX ((size_t)4 << 20)

/* A chunk of the usual pages with the extras asked for, mapped in a range with room for two. */
struct pair {
    struct driver_chunk_spec spec;
    char *first, *second; /* the two places */
    driver_chunk chunk;   /* mapped at the first */
};

static void open_pair(const struct subject *s, bool remappable, enum driver_handle_type handle,
                      struct pair *pair)
{
    pair->spec = subject_spec(subject_usual_pages(s), 1);
    pair->spec.remappable = remappable;
    pair->spec.handle = handle;
    void *base;
    assert_ok(
        s->driver->range_reserve(s->index, 2 * pair->spec.bytes, pair->spec.page_size, &base));
    pair->first = base;
    pair->second = pair->first + pair->spec.bytes;
    raffia_fallback_reason reason;
    assert_ok(subject_place(s, &pair->spec, pair->first, &pair->chunk, &reason));
}

static void close_pair(const struct subject *s, const struct pair *pair)
{
    assert_ok(s->driver->chunk_destroy(s->index, pair->chunk));
    assert_ok(s->driver->range_release(s->index, pair->first, 2 * pair->spec.bytes));
}

void a_remapped_chunk_keeps_its_content(void **state)
{
    const struct subject *s = *state;
    if (!subject_can(s, DRIVER_CAN_REMAP))
        skip();
    struct pair pair;
    raffia_fallback_reason reason;
    open_pair(s, true, DRIVER_HANDLE_NONE, &pair);
    subject_fill(s, pair.first, 0x77, pair.spec.bytes);
    assert_ok(s->driver->chunk_unmap(s->index, pair.chunk, pair.first));
    assert_ok(s->driver->chunk_map(s->index, pair.chunk, pair.second, &reason));
    subject_expect(s, pair.second, 0x77, pair.spec.bytes);
    assert_ok(s->driver->chunk_unmap(s->index, pair.chunk, pair.second));
    close_pair(s, &pair);
}

void an_alias_shows_the_same_bytes(void **state)
{
    const struct subject *s = *state;
    if (!subject_can(s, DRIVER_CAN_ALIAS))
        skip();
    struct pair pair;
    raffia_fallback_reason reason;
    open_pair(s, true, DRIVER_HANDLE_NONE, &pair);
    assert_ok(s->driver->chunk_map(s->index, pair.chunk, pair.second, &reason));
    subject_fill(s, pair.first, 0x11, pair.spec.bytes);
    subject_expect(s, pair.second, 0x11, pair.spec.bytes);
    subject_fill(s, pair.second, 0x22, pair.spec.bytes);
    subject_expect(s, pair.first, 0x22, pair.spec.bytes);
    assert_ok(s->driver->chunk_unmap(s->index, pair.chunk, pair.first));
    subject_expect(s, pair.second, 0x22, pair.spec.bytes);
    assert_ok(s->driver->chunk_unmap(s->index, pair.chunk, pair.second));
    close_pair(s, &pair);
}

void an_imported_chunk_is_the_exported_one(void **state)
{
    const struct subject *s = *state;
    if (!subject_can(s, DRIVER_CAN_EXPORT))
        skip();
    struct pair pair;
    open_pair(s, true, DRIVER_HANDLE_FD, &pair);
    subject_fill(s, pair.first, 0x33, pair.spec.bytes);
    uint64_t handle[DRIVER_HANDLE_WORDS];
    driver_chunk imported;
    raffia_fallback_reason reason;
    assert_ok(s->driver->chunk_export(s->index, pair.chunk, DRIVER_HANDLE_FD, handle));
    assert_ok(s->driver->chunk_import(s->index, DRIVER_HANDLE_FD, handle, &pair.spec, &imported));
    assert_int_equal(close((int)handle[0]), 0);
    assert_ok(s->driver->chunk_map(s->index, imported, pair.second, &reason));
    subject_expect(s, pair.second, 0x33, pair.spec.bytes);
    subject_fill(s, pair.second, 0x44, pair.spec.bytes);
    subject_expect(s, pair.first, 0x44, pair.spec.bytes);
    /* The memory lives as long as one of the two. */
    assert_ok(s->driver->chunk_unmap(s->index, pair.chunk, pair.first));
    assert_ok(s->driver->chunk_destroy(s->index, pair.chunk));
    subject_expect(s, pair.second, 0x44, pair.spec.bytes);
    assert_ok(s->driver->chunk_unmap(s->index, imported, pair.second));
    assert_ok(s->driver->chunk_destroy(s->index, imported));
    assert_ok(s->driver->range_release(s->index, pair.first, 2 * pair.spec.bytes));
}

/* A verb that gives something back, and failed, left things as they were: it can be called again.
 */
#define GIVE_BACK(call)                                                                            \
    do {                                                                                           \
        if (call)                                                                                  \
            assert_ok(call);                                                                       \
    } while (0)

struct life {
    const struct subject *s;
    struct driver_chunk_spec spec;
};

static raffia_status live_mapped(const struct life *life, driver_chunk chunk, char *at)
{
    const struct subject *s = life->s;
    raffia_fallback_reason reason = RAFFIA_REASON_COUNT;
    raffia_status status = s->driver->chunk_map(s->index, chunk, at, &reason);
    if (status) {
        assert_true(reason < RAFFIA_REASON_COUNT);
        return status;
    }
    if (subject_can(s, DRIVER_CPU_ACCESSIBLE)) {
        at[0] = 1;
        at[life->spec.bytes - 1] = 2;
    }
    struct driver_page_evidence evidence;
    status = s->driver->page_size_of(s->index, at, life->spec.bytes, life->spec.kind,
                                     life->spec.page_size, &evidence);
    GIVE_BACK(s->driver->chunk_unmap(s->index, chunk, at));
    return status;
}

static raffia_status live_shared(const struct life *life, driver_chunk chunk)
{
    const struct subject *s = life->s;
    uint64_t handle[DRIVER_HANDLE_WORDS];
    raffia_status status = s->driver->chunk_export(s->index, chunk, DRIVER_HANDLE_FD, handle);
    if (status)
        return status;
    driver_chunk imported;
    status = s->driver->chunk_import(s->index, DRIVER_HANDLE_FD, handle, &life->spec, &imported);
    close((int)handle[0]);
    if (!status)
        GIVE_BACK(s->driver->chunk_destroy(s->index, imported));
    return status;
}

static raffia_status live(void *context)
{
    const struct life *life = context;
    const struct subject *s = life->s;
    void *base;
    raffia_status status =
        s->driver->range_reserve(s->index, 2 * life->spec.bytes, life->spec.page_size, &base);
    if (status)
        return status;
    driver_chunk chunk;
    raffia_fallback_reason reason = RAFFIA_REASON_COUNT;
    status = s->driver->chunk_create(s->index, &life->spec, &chunk, &reason);
    if (status) {
        assert_true(reason < RAFFIA_REASON_COUNT);
    } else {
        status = live_mapped(life, chunk, base);
        if (!status)
            status = live_mapped(life, chunk, (char *)base + life->spec.bytes);
        if (!status && life->spec.handle)
            status = live_shared(life, chunk);
        GIVE_BACK(s->driver->chunk_destroy(s->index, chunk));
    }
    GIVE_BACK(s->driver->range_release(s->index, base, 2 * life->spec.bytes));
    return status;
}

void a_chunk_may_fail_at_every_call_of_its_life(void **state)
{
    const struct subject *s = *state;
    if (!s->has_fault_points)
        skip();
    for (size_t i = 0; i < s->info.page_count; i++) {
        if (s->info.pages[i].size > PAGE_MAX)
            continue;
        struct life life = {s, subject_spec(&s->info.pages[i], 2)};
        if (live(&life))
            continue; /* not to be had now */
        assert_true(fault_loop(live, &life, 1000) > 0);
        life.spec.remappable = subject_can(s, DRIVER_CAN_REMAP);
        if (subject_can(s, DRIVER_CAN_EXPORT))
            life.spec.handle = DRIVER_HANDLE_FD;
        assert_true(fault_loop(live, &life, 1000) > 0);
    }
}
