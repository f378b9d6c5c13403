/* Conformance: the regular path, copies, registered host memory, and what a driver lacks. */
#include "driver/conformance.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

#define REGULAR_ALIGNMENT 256u

void regular_memory_of_any_size_is_aligned(void **state)
{
    const struct subject *s = *state;
    const size_t sizes[] = {1,    2,     255,     256,     257,      4095,    4096,
                            4097, 65536, MIB + 1, 3 * MIB, 16 * MIB, 64 * MIB};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    void *blocks[SIZES];
    for (int i = 0; i < SIZES; i++) {
        assert_ok(s->driver->mem_alloc(s->index, sizes[i], &blocks[i]));
        assert_int_equal((uintptr_t)blocks[i] % REGULAR_ALIGNMENT, 0);
        subject_fill(s, blocks[i], (unsigned char)(i + 1), sizes[i] < MIB ? sizes[i] : MIB);
        char last = (char)(i + 1);
        subject_write(s, (char *)blocks[i] + sizes[i] - 1, &last, 1);
    }
    for (int i = 0; i < SIZES; i++) {
        subject_expect(s, blocks[i], (unsigned char)(i + 1), sizes[i] < MIB ? sizes[i] : MIB);
        subject_expect(s, (char *)blocks[i] + sizes[i] - 1, (unsigned char)(i + 1), 1);
    }
    for (int i = 0; i < SIZES; i++)
        assert_ok(s->driver->mem_free(s->index, blocks[i], sizes[i]));
}

/* Whatever it is that there is not so much of. */
void regular_memory_that_nobody_has_is_refused(void **state)
{
    const struct subject *s = *state;
    void *block = NULL;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  s->driver->mem_alloc(s->index, (size_t)1 << 50, &block));
    assert_null(block);
}

static raffia_status allocate_and_free(void *context)
{
    const struct subject *s = context;
    void *block = NULL;
    raffia_status status = s->driver->mem_alloc(s->index, MIB, &block);
    if (status) {
        assert_null(block);
        return status;
    }
    assert_ok(s->driver->mem_free(s->index, block, MIB));
    return RAFFIA_OK;
}

void regular_memory_may_fail_at_every_call(void **state)
{
    struct subject *s = *state;
    if (!s->has_fault_points)
        skip();
    assert_true(fault_loop(allocate_and_free, s, 1000) > 0);
}

static void wait_for_work(const struct subject *s)
{
    if (subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        assert_ok(s->driver->stream_wait(s->index, NULL));
}

#define ROOM (2 * MIB)

/* host -> regular -> chunk -> host, at odd offsets; what lies around it must stay as it was. */
static void copy_around(const struct subject *s, struct test_random *random, char *regular,
                        char *chunk, size_t room, unsigned char *from, unsigned char *to)
{
    size_t bytes = test_random_size(random, room);
    size_t a = test_random_below(random, room - bytes + 1);
    size_t b = test_random_below(random, room - bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)test_random_next(random);
    memset(to, 0xee, room);
    subject_fill(s, regular, 0x99, room);
    subject_fill(s, chunk, 0x66, room);
    assert_ok(s->driver->copy(s->index, NULL, regular + a, from, bytes));
    assert_ok(s->driver->copy(s->index, NULL, chunk + b, regular + a, bytes));
    assert_ok(s->driver->copy(s->index, NULL, to, chunk + b, bytes));
    wait_for_work(s);
    assert_memory_equal(to, from, bytes);
    if (bytes < room)
        assert_int_equal(to[bytes], 0xee);
    subject_expect(s, regular, 0x99, a);
    subject_expect(s, regular + a + bytes, 0x99, room - a - bytes);
    subject_expect(s, chunk, 0x66, b);
    subject_expect(s, chunk + b + bytes, 0x66, room - b - bytes);
}

static void fill_around(const struct subject *s, struct test_random *random, char *at, size_t room)
{
    size_t bytes = test_random_size(random, room);
    size_t offset = test_random_below(random, room - bytes + 1);
    subject_fill(s, at, 0x10, room);
    assert_ok(s->driver->fill(s->index, NULL, at + offset, 0xfe, bytes));
    wait_for_work(s);
    subject_expect(s, at, 0x10, offset);
    subject_expect(s, at + offset, 0xfe, bytes);
    subject_expect(s, at + offset + bytes, 0x10, room - offset - bytes);
}

static void copy_in_batches(const struct subject *s, char *at, unsigned char *from,
                            unsigned char *to)
{
    enum { PIECES = 50, PIECE = 37 };
    struct driver_copy copies[PIECES];
    for (size_t i = 0; i < (size_t)PIECES * PIECE; i++)
        from[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < PIECES; i++)
        copies[i] = (struct driver_copy){at + (PIECES - 1 - i) * PIECE, from + i * PIECE,
                                         i == 3 ? 0 : PIECE};
    subject_fill(s, at, 0x42, (size_t)PIECES * PIECE);
    assert_ok(s->driver->copy_batch(s->index, NULL, copies, PIECES));
    assert_ok(s->driver->copy_batch(s->index, NULL, copies, 0));
    assert_ok(s->driver->copy_batch(s->index, NULL, NULL, 0));
    assert_ok(s->driver->copy_batch(s->index, (driver_stream)copies, copies, 0)); /* is none */
    wait_for_work(s);
    subject_read(s, at, to, (size_t)PIECES * PIECE);
    for (size_t i = 0; i < PIECES; i++) {
        const unsigned char *got = to + (PIECES - 1 - i) * PIECE;
        if (i == 3)
            assert_int_equal(got[0], 0x42);
        else
            assert_memory_equal(got, from + i * PIECE, PIECE);
    }
}

void copies_move_exactly_what_was_asked(void **state)
{
    enum { ROUNDS = 12 };
    const struct subject *s = *state;
    struct test_random random = test_random_seeded("copies_move_exactly_what_was_asked");
    const raffia_page_offer *usual = subject_usual_pages(s);
    struct driver_chunk_spec spec = subject_spec(usual, (ROOM + usual->size - 1) / usual->size);
    void *base, *regular;
    driver_chunk chunk;
    raffia_fallback_reason reason;
    assert_ok(s->driver->range_reserve(s->index, spec.bytes, spec.page_size, &base));
    assert_ok(subject_place(s, &spec, base, &chunk, &reason));
    assert_ok(s->driver->mem_alloc(s->index, ROOM, &regular));
    unsigned char *from = malloc(ROOM), *to = malloc(ROOM);
    assert_true(from && to);
    for (int round = 0; round < ROUNDS; round++) {
        copy_around(s, &random, regular, base, ROOM, from, to);
        fill_around(s, &random, base, ROOM);
    }
    copy_in_batches(s, regular, from, to);
    assert_ok(s->driver->copy(s->index, NULL, to, from, 0));
    wait_for_work(s);
    free(from);
    free(to);
    assert_ok(s->driver->mem_free(s->index, regular, ROOM));
    subject_take_away(s, chunk, base);
    assert_ok(s->driver->range_release(s->index, base, spec.bytes));
}

void host_memory_is_registered_and_unregistered(void **state)
{
    const struct subject *s = *state;
    if (!subject_can(s, DRIVER_CAN_REGISTER))
        skip();
    void *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 4096, MIB), 0);
    memset(memory, 0x21, MIB);
    void *regular;
    assert_ok(s->driver->mem_alloc(s->index, MIB, &regular));
    for (int round = 0; round < 2; round++) {
        assert_ok(s->driver->host_register(s->index, memory, MIB));
        assert_ok(s->driver->copy(s->index, NULL, regular, memory, MIB));
        wait_for_work(s);
        subject_expect(s, regular, 0x21, MIB);
        assert_ok(s->driver->host_unregister(s->index, memory, MIB));
    }
    assert_ok(s->driver->mem_free(s->index, regular, MIB));
    free(memory);
}

void host_memory_of_the_driver_can_be_copied(void **state)
{
    const struct subject *s = *state;
    const struct driver *d = s->driver;
    if (!subject_can(s, DRIVER_CAN_ALLOC_HOST))
        skip();
    static const size_t sizes[] = {1, 4095, 4097, 3 * MIB + 5};
    void *none = NULL;
    assert_true(d->host_alloc(s->index, 0, &none) != RAFFIA_OK);
    assert_null(none);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *host, *regular;
        assert_ok(d->host_alloc(s->index, sizes[i], &host));
        assert_int_equal((uintptr_t)host % 4096, 0);
        memset(host, 0x37, sizes[i]);
        assert_ok(d->mem_alloc(s->index, sizes[i], &regular));
        assert_ok(d->copy(s->index, NULL, regular, host, sizes[i]));
        wait_for_work(s);
        memset(host, 0, sizes[i]);
        subject_expect(s, regular, 0x37, sizes[i]);
        assert_ok(d->copy(s->index, NULL, host, regular, sizes[i]));
        wait_for_work(s);
        assert_int_equal(*(unsigned char *)host, 0x37);
        assert_int_equal(((unsigned char *)host)[sizes[i] - 1], 0x37);
        assert_ok(d->mem_free(s->index, regular, sizes[i]));
        assert_ok(d->host_free(s->index, host, sizes[i]));
    }
}

/* All of [at, at + bytes), looked up from its start and from its end, is of the kind. */
static void expect_kind(const struct subject *s, const char *at, size_t bytes,
                        enum driver_memory_kind kind)
{
    for (int end = 0; end < 2; end++) {
        const char *where = end ? at + bytes - 1 : at;
        struct driver_memory memory = {.start = 1, .bytes = 1};
        assert_ok(s->driver->find_memory(s->index, where, &memory));
        assert_int_equal(memory.kind, kind);
        if (kind == DRIVER_MEMORY_UNKNOWN)
            continue;
        assert_true((uintptr_t)where - memory.start < memory.bytes);
        if (memory.bytes >= bytes) /* else the driver tells of less at once, such as one chunk */
            assert_true(memory.start <= (uintptr_t)at &&
                        (uintptr_t)at + bytes <= memory.start + memory.bytes);
    }
}

void memory_is_told_apart_for_code_that_touches_it(void **state)
{
    const struct subject *s = *state;
    const struct driver *d = s->driver;
    if (!subject_can(s, DRIVER_CAN_LAUNCH) || !subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        skip();
    const struct driver_chunk_spec spec = subject_spec(subject_usual_pages(s), 1);
    raffia_fallback_reason reason;
    driver_chunk chunk;
    void *base, *regular, *host, *memory = NULL;
    assert_int_equal(posix_memalign(&memory, 4096, MIB), 0);
    memset(memory, 1, MIB);
    expect_kind(s, memory, MIB, DRIVER_MEMORY_UNKNOWN);
    expect_kind(s, NULL, 1, DRIVER_MEMORY_UNKNOWN);
    assert_ok(d->host_register(s->index, memory, MIB));
    expect_kind(s, memory, MIB, DRIVER_MEMORY_PINNED);
    assert_ok(d->host_unregister(s->index, memory, MIB));
    expect_kind(s, memory, MIB, DRIVER_MEMORY_UNKNOWN);
    assert_ok(d->host_alloc(s->index, MIB, &host));
    expect_kind(s, host, MIB, DRIVER_MEMORY_PINNED);
    assert_ok(d->host_free(s->index, host, MIB));
    assert_ok(d->mem_alloc(s->index, MIB, &regular));
    expect_kind(s, regular, MIB, DRIVER_MEMORY_DEVICE);
    assert_ok(d->mem_free(s->index, regular, MIB));
    assert_ok(d->range_reserve(s->index, spec.bytes, spec.page_size, &base));
    assert_ok(subject_place(s, &spec, base, &chunk, &reason));
    expect_kind(s, base, spec.bytes, DRIVER_MEMORY_DEVICE);
    subject_take_away(s, chunk, base);
    assert_ok(d->range_release(s->index, base, spec.bytes));
    free(memory);
}

#define EXPECT_UNSUPPORTED(call)                                                                   \
    do {                                                                                           \
        assert_status(RAFFIA_ERROR_UNSUPPORTED, call);                                             \
        assert_true(strlen(raffia_last_error()) > 0);                                              \
    } while (0)

static void expect_no_order(const struct subject *s)
{
    const struct driver *d = s->driver;
    driver_stream stream;
    driver_event event;
    uint64_t id = 1;
    bool answer = true;
    assert_int_equal(d->default_stream(s->index), DRIVER_DEFAULT_STREAM_NONE);
    /* NULL stands for the one stream that is always idle. */
    assert_ok(d->stream_id(s->index, NULL, &id));
    assert_int_equal(id, 0);
    assert_ok(d->stream_is_capturing(s->index, NULL, &answer));
    assert_false(answer);
    assert_ok(d->stream_retire(s->index, NULL));
    assert_ok(d->stream_wait(s->index, NULL));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->stream_wait(s->index, &id));
    EXPECT_UNSUPPORTED(d->stream_create(s->index, &stream));
    EXPECT_UNSUPPORTED(d->stream_destroy(s->index, NULL));
    EXPECT_UNSUPPORTED(d->event_create(s->index, &event));
    EXPECT_UNSUPPORTED(d->event_destroy(s->index, NULL));
    EXPECT_UNSUPPORTED(d->event_record(s->index, NULL, NULL));
    EXPECT_UNSUPPORTED(d->event_done(s->index, NULL, &answer));
    EXPECT_UNSUPPORTED(d->event_wait(s->index, NULL));
    EXPECT_UNSUPPORTED(d->stream_wait_event(s->index, NULL, NULL));
}

static void expect_no_export(const struct subject *s)
{
    uint64_t handle[DRIVER_HANDLE_WORDS] = {0};
    struct driver_chunk_spec spec = subject_spec(subject_usual_pages(s), 1);
    driver_chunk chunk, imported;
    raffia_fallback_reason reason;
    assert_ok(s->driver->chunk_create(s->index, &spec, &chunk, &reason));
    EXPECT_UNSUPPORTED(s->driver->chunk_export(s->index, chunk, DRIVER_HANDLE_FD, handle));
    EXPECT_UNSUPPORTED(
        s->driver->chunk_import(s->index, DRIVER_HANDLE_FD, handle, &spec, &imported));
    assert_ok(s->driver->chunk_destroy(s->index, chunk));
}

void missing_verbs_say_so(void **state)
{
    const struct subject *s = *state;
    const struct driver *d = s->driver;
    /* Every verb is there to be called. */
    const void *const *verbs = (const void *const *)&d->devices;
    size_t count = (sizeof *d - offsetof(struct driver, devices)) / sizeof *verbs;
    for (size_t i = 0; i < count; i++)
        assert_non_null(verbs[i]);

    static char memory[4096];
    if (!subject_can(s, DRIVER_IS_ASYNCHRONOUS))
        expect_no_order(s);
    if (!subject_can(s, DRIVER_CAN_EXPORT))
        expect_no_export(s);
    if (!subject_can(s, DRIVER_CAN_REGISTER)) {
        EXPECT_UNSUPPORTED(d->host_register(s->index, memory, sizeof memory));
        EXPECT_UNSUPPORTED(d->host_unregister(s->index, memory, sizeof memory));
    }
    if (!subject_can(s, DRIVER_CAN_ALLOC_HOST)) {
        void *host;
        EXPECT_UNSUPPORTED(d->host_alloc(s->index, sizeof memory, &host));
        EXPECT_UNSUPPORTED(d->host_free(s->index, memory, sizeof memory));
    }
    if (!subject_can(s, DRIVER_HAS_POOLS)) {
        const struct driver_pool_spec spec = {0};
        driver_pool pool;
        void *block;
        EXPECT_UNSUPPORTED(d->pool_create(s->index, &spec, &pool));
        EXPECT_UNSUPPORTED(d->pool_destroy(s->index, NULL));
        EXPECT_UNSUPPORTED(d->pool_alloc(s->index, NULL, NULL, sizeof memory, &block));
        EXPECT_UNSUPPORTED(d->pool_free(s->index, NULL, NULL, memory));
        EXPECT_UNSUPPORTED(d->pool_trim(s->index, NULL, 0));
    }
    if (!subject_can(s, DRIVER_HAS_PEERS))
        EXPECT_UNSUPPORTED(d->set_access(s->index, memory, sizeof memory, s->index + 1, true));
    if (!subject_can(s, DRIVER_CAN_LAUNCH)) {
        driver_module module;
        driver_function function;
        const struct driver_launch launch = {{1, 1, 1}, {1, 1, 1}, 0, NULL};
        struct driver_memory found;
        EXPECT_UNSUPPORTED(d->find_memory(s->index, memory, &found));
        EXPECT_UNSUPPORTED(d->module_load(s->index, memory, sizeof memory, &module));
        EXPECT_UNSUPPORTED(d->module_unload(s->index, NULL));
        EXPECT_UNSUPPORTED(d->module_function(s->index, NULL, "f", &function));
        EXPECT_UNSUPPORTED(d->launch(s->index, NULL, NULL, &launch));
    }
}

/* What a forked child finds; no cmocka in it, whose report is the parent's. */
static int look_from_child(const struct subject *s)
{
    const struct driver *d = s->driver;
    bool survives = subject_can(s, DRIVER_SURVIVES_FORK);
    raffia_status expected = survives ? RAFFIA_OK : RAFFIA_ERROR_FORKED;
    if (d->context_state(s->index) != expected)
        return 1;
    void *address, *base;
    if (d->mem_alloc(s->index, 4096, &address) != expected ||
        d->range_reserve(s->index, 4096, 4096, &base) != expected)
        return 2;
    const struct driver_pool_spec spec = {0};
    driver_pool pool;
    if (!survives && subject_can(s, DRIVER_HAS_POOLS) &&
        d->pool_create(s->index, &spec, &pool) != RAFFIA_ERROR_FORKED)
        return 5;
    if (!survives)
        return strlen(raffia_last_error()) > 0 ? 0 : 3;
    *(volatile char *)address = 1;
    if (d->range_release(s->index, base, 4096) || d->mem_free(s->index, address, 4096))
        return 4;
    return 0;
}

void a_forked_child_is_told_the_truth(void **state)
{
    const struct subject *s = *state;
    assert_ok(s->driver->context_state(s->index));
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(look_from_child(s));
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_ok(s->driver->context_state(s->index));
}
