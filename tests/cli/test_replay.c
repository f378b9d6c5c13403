/* Replaying traces: what is called, counted and left. */
#include "cli/interrupt.h"
#include "cli/replay.h"
#include "cli/replay_ways.h"
#include "core/memory.h"
#include "support/cmocka.h"

#include <signal.h>
#include <string.h>

/* An allocator of so many bytes that remembers its calls. */
struct fake {
    uint64_t room, next;
    size_t takes, gives;
    uint64_t given_bytes;
    size_t fail_at; /* this call fails as no allocator should; 0 = none */
};

static raffia_status fake_take(void *context, uint64_t bytes, uint64_t *name_p)
{
    struct fake *fake = context;
    fake->takes++;
    if (fake->takes + fake->gives == fake->fail_at)
        return RAFFIA_ERROR_CORRUPT;
    if (bytes > fake->room)
        return RAFFIA_ERROR_OUT_OF_MEMORY;
    fake->room -= bytes;
    *name_p = ++fake->next;
    return RAFFIA_OK;
}

static raffia_status fake_give(void *context, uint64_t name, uint64_t bytes)
{
    struct fake *fake = context;
    assert_true(name >= 1 && name <= fake->next);
    fake->gives++;
    if (fake->takes + fake->gives == fake->fail_at)
        return RAFFIA_ERROR_CORRUPT;
    fake->room += bytes;
    fake->given_bytes += bytes;
    return RAFFIA_OK;
}

static void read_trace(const char *text, struct trace *trace, uint64_t **names_p)
{
    assert_ok(trace_parse("test", text, strlen(text), trace));
    *names_p = replay_names_new(trace);
    assert_non_null(*names_p);
}

static const char text[] = "a 0 60\na 1 50\na 2 40\nf 1\nf 0\na 3 30\n";

static void what_is_refused_is_counted_and_not_freed(void **state)
{
    struct trace trace;
    uint64_t *names;
    struct replay_result result;
    struct fake fake = {.room = 100};
    const struct replay_way way = {fake_take, fake_give, &fake};
    read_trace(text, &trace, &names);
    assert_ok(replay_run(&way, &trace, names, &result));
    assert_int_equal(result.done, 5); /* the free of block 1 is none */
    assert_int_equal(result.refused, 1);
    assert_int_equal(result.refused_bytes, 50);
    assert_int_equal(fake.takes, 4);
    assert_int_equal(fake.gives, 1);
    assert_true(names[0] == 0 && names[1] == 0 && names[2] != 0 && names[3] != 0);
    assert_ok(replay_drain(&way, &trace, names));
    assert_int_equal(fake.room, 100);
    assert_int_equal(fake.given_bytes, 60 + 40 + 30);
    for (size_t i = 0; i < trace.blocks; i++)
        assert_int_equal(names[i], 0);
    core_free(names);
    trace_clear(&trace);
    (void)state;
}

struct seen {
    size_t ops[16], count, stop_at;
};

static raffia_status see(void *context, size_t op)
{
    struct seen *seen = context;
    seen->ops[seen->count++] = op;
    return seen->count == seen->stop_at ? RAFFIA_ERROR_CANCELLED : RAFFIA_OK;
}

static void each_call_is_timed_and_each_op_observed(void **state)
{
    struct trace trace;
    uint64_t *names;
    struct replay_result result;
    double takes[4] = {0}, gives[2] = {0};
    struct seen seen = {.count = 0};
    struct fake fake = {.room = 100};
    const struct replay_way way = {fake_take, fake_give, &fake};
    struct replay_each each = {
        .take_seconds = takes, .give_seconds = gives, .observe = see, .observe_context = &seen};
    read_trace(text, &trace, &names);
    assert_ok(replay_run_each(&way, &trace, names, &each, &result));
    assert_int_equal(each.takes, 4);
    assert_int_equal(each.gives, 1);
    assert_int_equal(seen.count, trace.count);
    for (size_t i = 0; i < seen.count; i++)
        assert_int_equal(seen.ops[i], i);
    assert_ok(replay_drain(&way, &trace, names));
    seen = (struct seen){.stop_at = 2};
    assert_status(RAFFIA_ERROR_CANCELLED, replay_run_each(&way, &trace, names, &each, &result));
    assert_ok(replay_drain(&way, &trace, names));
    assert_int_equal(fake.room, 100);
    core_free(names);
    trace_clear(&trace);
    (void)state;
}

static void a_failure_that_is_no_refusal_ends_the_run(void **state)
{
    struct trace trace;
    uint64_t *names;
    read_trace(text, &trace, &names);
    for (size_t fail_at = 1; fail_at <= 5; fail_at++) {
        struct replay_result result = {.done = 77};
        struct fake fake = {.room = 100, .fail_at = fail_at};
        const struct replay_way way = {fake_take, fake_give, &fake};
        assert_status(RAFFIA_ERROR_CORRUPT, replay_run(&way, &trace, names, &result));
        assert_int_equal(result.done, 77);
        fake.fail_at = 0;
        assert_ok(replay_drain(&way, &trace, names));
    }
    core_free(names);
    trace_clear(&trace);
    (void)state;
}

static void the_index_alone_serves_and_refuses(void **state)
{
    const struct space_options options = {.range_bytes = 4096, .granule = 256};
    struct space *space;
    struct space_stats stats;
    struct trace trace;
    uint64_t *names;
    struct replay_result result;
    assert_ok(space_create(&options, &space));
    assert_ok(space_add(space, 0, 4096));
    const struct replay_way way = replay_way_space(space);
    read_trace("a 0 0\na 1 2000\na 2 3000\nf 0\nf 2\n", &trace, &names);
    assert_ok(replay_run(&way, &trace, names, &result));
    assert_int_equal(result.refused_bytes, 3000);
    space_query(space, &stats);
    assert_int_equal(stats.free_bytes, 4096 - 2048);
    assert_ok(replay_drain(&way, &trace, names));
    space_query(space, &stats);
    assert_int_equal(stats.free_bytes, 4096);
    space_destroy(space);
    core_free(names);
    trace_clear(&trace);
    (void)state;
}

static raffia_status interrupt(void *context, size_t op)
{
    (void)context;
    if (op == 2)
        raise(SIGINT);
    return RAFFIA_OK;
}

/* The last of the tests: what was interrupted stays so. */
static void an_interrupt_ends_a_run(void **state)
{
    struct trace trace;
    uint64_t *names;
    double takes[4], gives[2];
    struct replay_result result;
    struct fake fake = {.room = 100};
    const struct replay_way way = {fake_take, fake_give, &fake};
    struct replay_each each = {.take_seconds = takes, .give_seconds = gives, .observe = interrupt};
    read_trace(text, &trace, &names);
    cli_interrupt_catch();
    assert_status(RAFFIA_ERROR_CANCELLED, replay_run_each(&way, &trace, names, &each, &result));
    assert_int_equal(fake.takes + fake.gives, 3);
    assert_ok(replay_drain(&way, &trace, names));
    assert_status(RAFFIA_ERROR_CANCELLED, replay_run(&way, &trace, names, &result));
    assert_ok(replay_drain(&way, &trace, names));
    assert_int_equal(fake.room, 100);
    core_free(names);
    trace_clear(&trace);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_refused_is_counted_and_not_freed),
        cmocka_unit_test(each_call_is_timed_and_each_op_observed),
        cmocka_unit_test(a_failure_that_is_no_refusal_ends_the_run),
        cmocka_unit_test(the_index_alone_serves_and_refuses),
        cmocka_unit_test(an_interrupt_ends_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
