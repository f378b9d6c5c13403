/* Reading traces: what is accepted, what is refused and how that is said. */
#include "cli/trace.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER "op,id,size,stream,t_us\n"
#define RMM    "Thread,Time,Action,Pointer,Size,Stream\n"

static raffia_status parse(const char *text, struct trace *trace)
{
    return trace_parse("file", text, strlen(text), trace);
}

static void assert_op(const struct trace *trace, size_t at, bool frees, uint32_t block,
                      uint64_t bytes)
{
    assert_true(at < trace->count);
    assert_int_equal(trace->ops[at].frees, frees);
    assert_int_equal(trace->ops[at].block, block);
    assert_int_equal(trace->ops[at].bytes, bytes);
}

static void a_table_is_read(void **state)
{
    struct trace trace;
    assert_ok(parse(HEADER "a,7,100,0,0\n"
                           "a,9,50,2562147312,3\n"
                           "f,7,100,0,4\n"
                           "a,7,20,0,4\n",
                    &trace));
    assert_int_equal(trace.form, TRACE_TABLE);
    assert_int_equal(trace.count, 4);
    assert_op(&trace, 0, false, 0, 100);
    assert_op(&trace, 1, false, 1, 50);
    assert_op(&trace, 2, true, 0, 100);
    assert_op(&trace, 3, false, 2, 20); /* the id came again, the block is another */
    assert_int_equal(trace.blocks, 3);
    assert_int_equal(trace.streams, 2);
    assert_int_equal(trace.peak_bytes, 150);
    assert_int_equal(trace.peak_at, 1);
    assert_int_equal(trace.asked_bytes, 170);
    assert_int_equal(trace.live_max, 2);
    assert_int_equal(trace.live_end, 2);
    trace_clear(&trace);
    assert_null(trace.ops);
    (void)state;
}

static void plain_lines_are_read(void **state)
{
    struct trace trace;
    assert_ok(parse("a 0 4096\r\na 1 0\r\nf 0\r\nf 1\r\n", &trace));
    assert_int_equal(trace.form, TRACE_LINES);
    assert_int_equal(trace.count, 4);
    assert_op(&trace, 1, false, 1, 0);
    assert_op(&trace, 2, true, 0, 4096);
    assert_int_equal(trace.streams, 0);
    assert_int_equal(trace.live_end, 0);
    trace_clear(&trace);
    (void)state;
}

static void a_log_of_rmm_is_read_by_the_names_of_its_columns(void **state)
{
    struct trace trace;
    assert_ok(parse(RMM "140,10:00:00:000001,allocate,0x7f0000000000,1024,0x0\n"
                        "140,10:00:00:000002,allocate failure,(nil),99999,0x0\n"
                        "141,10:00:00:000003,allocate,(nil),0,0xab\n"
                        "140,10:00:00:000004,free,0x7f0000000000,1024,0x0\n",
                    &trace));
    assert_int_equal(trace.form, TRACE_RMM);
    assert_int_equal(trace.count, 2);
    assert_int_equal(trace.skipped, 2);
    assert_op(&trace, 1, true, 0, 1024);
    trace_clear(&trace);
    assert_ok(parse("Size,Action,Pointer\n8,allocate,a0\n8,free,0xA0\n", &trace));
    assert_int_equal(trace.count, 2);
    trace_clear(&trace);
    (void)state;
}

/* Text, and what the sentence about it mentions. */
struct refusal {
    const char *text, *line, *mention;
};

static void what_is_wrong_is_refused_with_its_line(void **state)
{
    static const struct refusal cases[] = {
        {"", "file", "nothing to replay"},
        {HEADER, "file", "nothing to replay"},
        {"\n", "line 1", "begins no trace"},
        {"op,id,size\n", "line 1", "begins no trace"},
        {"Thread,Time,Action,Pointer\n", "line 1", "begins no trace"},
        {HEADER "a,0,1,0,0", "line 2", "cut short"},
        {HEADER "a,0,1,0\n", "line 2", "4 fields where 5"},
        {HEADER "a,0,1,0,0,0\n", "line 2", "6 fields where 5"},
        {HEADER "b,0,1,0,0\n", "line 2", "neither 'a' nor 'f'"},
        {HEADER "aa,0,1,0,0\n", "line 2", "neither 'a' nor 'f'"},
        {HEADER "a,-1,1,0,0\n", "line 2", "id '-1'"},
        {HEADER "a,0,1.5,0,0\n", "line 2", "size '1.5'"},
        {HEADER "a,0, 1,0,0\n", "line 2", "size ' 1'"},
        {HEADER "a,0,,0,0\n", "line 2", "size ''"},
        {HEADER "a,0,18446744073709551615,0,0\n", "line 2",
         "size 18446744073709551615 is too large"},
        {HEADER "a,0,99999999999999999999,0,0\n", "line 2", "is too large"},
        {HEADER "a,0,1,x,0\n", "line 2", "stream 'x'"},
        {HEADER "a,0,1,0,now\n", "line 2", "time 'now'"},
        {HEADER "a,0,1,0,0\na,0,1,0,0\n", "line 3", "since line 2"},
        {HEADER "a,0,1,0,0\nf,1,1,0,0\n", "line 3", "block 1 is freed"},
        {HEADER "a,0,1,0,0\nf,0,1,0,0\nf,0,1,0,0\n", "line 4", "block 0 is freed"},
        {HEADER "a,0,1,0,0\nf,0,2,0,0\n", "line 3", "2 bytes"},
        {HEADER "a,0,18446744073709551000,0,0\na,1,1000,0,0\n", "line 3", "exceed 64 bits"},
        {HEADER "a,0,1,0,0\n\n", "line 3", "1 fields where 5"},
        {"a 0 1\na 1\n", "line 2", "2 fields where 3"},
        {"a 0 1\nf 0 1\n", "line 2", "3 fields where 2"},
        {"a 0 1\nf  0\n", "line 2", "3 fields where 2"},
        {"f 0\n", "line 1", "not allocated"},
        {RMM "1,t,allocate,0x10,8,0\n1,t,grow,0x10,8,0\n", "line 3", "action 'grow'"},
        {RMM "1,t,allocate,0xzz,8,0\n", "line 2", "pointer '0xzz'"},
        {RMM "1,t,allocate,0x,8,0\n", "line 2", "pointer '0x'"},
        {RMM "1,t,allocate,0x11112222333344445,8,0\n", "line 2", "hexadecimal"},
        {RMM "1,t,allocate,(nil),8,0\n", "line 2", "no address"},
        {RMM "1,t,allocate,0x10,8\n", "line 2", "5 fields where 6"},
        {RMM "1,t,allocate,0x10,8,0\n1,t,allocate,0x10,8,0\n", "line 3", "block 0x10 is allocated"},
        {RMM "1,t,free,0x10,8,0\n", "line 2", "block 0x10 is freed"},
        {RMM "1,t,allocate,0x1f,8,0\n1,t,free,0x1F,9,0\n", "line 3", "block 0x1f is freed with 9"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trace trace = {.count = 77};
        assert_status(RAFFIA_ERROR_FORMAT, parse(cases[i].text, &trace));
        assert_error_mentions("file");
        assert_error_mentions(cases[i].line);
        assert_error_mentions(cases[i].mention);
        assert_int_equal(trace.count, 77);
    }
    (void)state;
}

static void a_nul_and_an_endless_line_are_refused(void **state)
{
    static const char nul[] = "a 0 1\nf\0 0\n";
    struct trace trace;
    assert_status(RAFFIA_ERROR_FORMAT, trace_parse("file", nul, sizeof nul - 1, &trace));
    assert_error_mentions("line 2: there is a NUL");
    char *text = malloc(5000);
    assert_non_null(text);
    memset(text, 'a', 5000);
    text[4999] = '\n';
    assert_status(RAFFIA_ERROR_FORMAT, trace_parse("file", text, 5000, &trace));
    assert_error_mentions("longer than");
    free(text);
    (void)state;
}

/* More than the first sizes of the tables hold. */
static char *long_text(size_t blocks)
{
    char *text = malloc(blocks * 64 + 64), *end = text;
    assert_non_null(text);
    end += sprintf(end, HEADER);
    for (size_t i = 0; i < blocks; i++)
        end += sprintf(end, "a,%zu,%zu,%zu,0\n", i * 4096, i, i % 3);
    for (size_t i = 0; i < blocks; i++)
        end += sprintf(end, "f,%zu,%zu,%zu,0\n", i * 4096, i, i % 3);
    return text;
}

static void thousands_of_blocks_are_kept_apart(void **state)
{
    const size_t blocks = 5000;
    struct trace trace;
    char *text = long_text(blocks);
    assert_ok(parse(text, &trace));
    assert_int_equal(trace.count, 2 * blocks);
    assert_int_equal(trace.live_max, blocks);
    assert_int_equal(trace.streams, 3);
    assert_int_equal(trace.peak_bytes, blocks * (blocks - 1) / 2);
    for (size_t i = 0; i < blocks; i++)
        assert_op(&trace, blocks + i, true, (uint32_t)i, i);
    trace_clear(&trace);
    free(text);
    (void)state;
}

static raffia_status read_and_clear(void *context)
{
    struct trace trace;
    raffia_status status = parse(context, &trace);
    if (!status)
        trace_clear(&trace);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    char *text = long_text(1500);
    assert_true(fault_loop(read_and_clear, text, 100) >= 4);
    free(text);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_is_read),
        cmocka_unit_test(plain_lines_are_read),
        cmocka_unit_test(a_log_of_rmm_is_read_by_the_names_of_its_columns),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_line),
        cmocka_unit_test(a_nul_and_an_endless_line_are_refused),
        cmocka_unit_test(thousands_of_blocks_are_kept_apart),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
