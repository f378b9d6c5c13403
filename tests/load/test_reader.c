/* Single reads: short ones, interrupted ones, refused ones, and files that end too early. */
#include "core/fault.h"
#include "core/memory.h"
#include "core/sys.h"
#include "load/options.h"
#include "load/reader.h"
#include "load_fixture.h"
#include "support/cmocka.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_BYTES (256 * KIB)

static struct test_directory directory;
static struct test_path path;

/* Small and large tensors, some of which can be read into place. */
static struct model_file_tensor tensors[] = {
    {.name = "a", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {256}},
    {.name = "b", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {700 * 1024}},
    {.name = "c", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {4096 - 256}},
    {.name = "d", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {100 * 1024}},
    {.name = "e", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {3}},
    {.name = "f", .dtype = RAFFIA_DTYPE_U8, .rank = 1, .shape = {70 * 1024 + 1}},
};
#define TENSORS (sizeof tensors / sizeof *tensors)

struct fixture {
    struct catalog *catalog;
    struct load_selection selection;
    struct load_plan plan;
    struct load_source source;
    struct load_reader *reader;
    struct test_memory memory;
};

static int open_fixture(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){0};
    raffia_load_options options = LOAD_OPTIONS(0);
    assert_ok(catalog_open(path.text, NULL, &fixture.catalog));
    assert_ok(load_select(fixture.catalog, &options, &fixture.selection));
    assert_ok(load_plan_make(&fixture.selection, &fixture.plan));
    assert_ok(load_plan_cut(&fixture.plan, WINDOW_BYTES, WINDOW_BYTES));
    assert_ok(load_source_init(&fixture.source, fixture.catalog, &fixture.plan));
    fixture.source.staging_bytes = WINDOW_BYTES;
    fixture.memory = test_memory_take(fixture.plan.needed, 4096, 0);
    for (size_t i = 0; i < fixture.plan.item_count; i++)
        fixture.source.addresses[i] = fixture.memory.at + fixture.plan.items[i].offset;
    fixture.reader = calloc(1, sizeof *fixture.reader);
    assert_non_null(fixture.reader);
    fixture.reader->source = &fixture.source;
    *state = &fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    sys_set_read_hook(NULL);
    load_reader_close(fixture->reader);
    load_source_close(&fixture->source);
    load_plan_free(&fixture->plan);
    load_selection_free(&fixture->selection);
    catalog_close(fixture->catalog);
    test_memory_free(&fixture->memory);
    free(fixture->reader);
    return 0;
}

static raffia_status read_all(struct fixture *fixture)
{
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < fixture->plan.window_count && !status; i++)
        status = load_read_window(fixture->reader, &fixture->plan.windows[i]);
    return status;
}

static void check_content(const struct fixture *fixture)
{
    for (size_t i = 0; i < fixture->plan.item_count; i++) {
        const struct load_item *item = &fixture->plan.items[i];
        raffia_tensor tensor = {
            .name = item->name, .data = fixture->source.addresses[i], .bytes = (size_t)item->bytes};
        model_file_check(&tensor, tensors[i].offset, tensors[i].bytes, 0);
    }
    assert_int_equal(fixture->source.bytes_done, fixture->selection.bytes);
    assert_int_equal(fixture->source.bytes_buffered + fixture->source.bytes_direct,
                     fixture->selection.bytes);
}

static void need_direct(void)
{
    if (!test_direct_works(path.text)) {
        print_message("O_DIRECT does not work in the temporary directory\n");
        skip();
    }
}

static void buffered_reads_go_straight_into_place(void **state)
{
    struct fixture *fixture = *state;
    fixture->source.mode = RAFFIA_READER_BUFFERED;
    assert_ok(read_all(fixture));
    check_content(fixture);
    assert_int_equal(fixture->source.reads, fixture->plan.window_count);
    assert_int_equal(fixture->source.bytes_staged, 0);
    assert_int_equal(fixture->source.staging_used, 0);
}

static void direct_reads_stage_only_what_does_not_fit_in_place(void **state)
{
    struct fixture *fixture = *state;
    need_direct();
    fixture->source.mode = RAFFIA_READER_DIRECT;
    assert_ok(read_all(fixture));
    check_content(fixture);
    assert_int_equal(fixture->source.bytes_buffered, 0);
    assert_int_equal(fixture->source.direct_refusals, 0);
    assert_int_equal(fixture->source.staging_used, WINDOW_BYTES);
    /* Tensors b and d lie at multiples of 256 in the file, so that only their ends and short cuts
     * are staged; f does not. */
    assert_in_range(fixture->source.bytes_staged, tensors[5].bytes,
                    tensors[5].bytes + 4 * LOAD_CONGRUENT_BYTES_MIN);
}

static void memory_that_does_not_agree_with_the_file_is_staged(void **state)
{
    struct fixture *fixture = *state;
    need_direct();
    test_memory_free(&fixture->memory);
    fixture->memory = test_memory_take(fixture->plan.needed, 4096, 256);
    for (size_t i = 0; i < fixture->plan.item_count; i++)
        fixture->source.addresses[i] = fixture->memory.at + fixture->plan.items[i].offset;
    fixture->source.mode = RAFFIA_READER_DIRECT;
    assert_ok(read_all(fixture));
    check_content(fixture);
    assert_int_equal(fixture->source.bytes_staged, fixture->selection.bytes);
}

/* What the hook does; set before the reads. */
static atomic_int hook_calls;
static size_t hook_short_bytes;
static int hook_errno;
static bool hook_direct_only;
static int hook_from_call;

static int hook(int fd, off_t offset, size_t *bytes)
{
    (void)offset;
    if (hook_direct_only && !test_is_direct(fd))
        return 0;
    int call = atomic_fetch_add(&hook_calls, 1);
    if (hook_short_bytes && *bytes > hook_short_bytes)
        *bytes = hook_short_bytes;
    if (hook_errno == EINTR) /* every other call is interrupted */
        return call % 2 == 0 ? EINTR : 0;
    return call >= hook_from_call ? hook_errno : 0;
}

static void set_hook(size_t short_bytes, int error_number, bool direct_only, int from_call)
{
    atomic_store(&hook_calls, 0);
    hook_short_bytes = short_bytes;
    hook_errno = error_number;
    hook_direct_only = direct_only;
    hook_from_call = from_call;
    sys_set_read_hook(hook);
}

static void short_and_interrupted_reads_go_on(void **state)
{
    struct fixture *fixture = *state;
    fixture->source.mode = RAFFIA_READER_BUFFERED;
    set_hook(1000, EINTR, false, 0);
    assert_ok(read_all(fixture));
    check_content(fixture);
    assert_true(fixture->source.reads > fixture->selection.bytes / 1000);
}

static void short_and_interrupted_direct_reads_go_on(void **state)
{
    struct fixture *fixture = *state;
    need_direct();
    fixture->source.mode = RAFFIA_READER_DIRECT;
    set_hook(3 * 4096, EINTR, true, 0);
    assert_ok(read_all(fixture));
    check_content(fixture);
    assert_int_equal(fixture->source.bytes_direct, fixture->selection.bytes);
}

static void refused(struct fixture *fixture, int error_number, int from_call)
{
    set_hook(0, error_number, true, from_call);
    fixture->source.mode = RAFFIA_READER_DIRECT;
    assert_ok(read_all(fixture));
    sys_set_read_hook(NULL);
    check_content(fixture);
    assert_true(fixture->source.direct_refusals > 0);
    assert_true(fixture->source.bytes_buffered > 0);
    assert_int_equal(atomic_load(&hook_calls), from_call + 1);
}

static void a_file_refused_at_once_is_read_through_the_cache(void **state)
{
    need_direct();
    refused(*state, EINVAL, 0);
    assert_int_equal(((struct fixture *)*state)->source.bytes_direct, 0);
}

static void a_file_refused_in_the_middle_is_read_on_through_the_cache(void **state)
{
    need_direct();
    refused(*state, EFAULT, 3);
    assert_true(((struct fixture *)*state)->source.bytes_direct > 0);
}

static void a_file_that_cannot_be_opened_again_is_read_through_the_cache(void **state)
{
    struct fixture *fixture = *state;
    fixture->source.mode = RAFFIA_READER_DIRECT;
    core_fault_arm(1);
    assert_ok(read_all(fixture));
    assert_string_equal(core_fault_disarm(), "open");
    check_content(fixture);
    assert_int_equal(fixture->source.direct_refusals, fixture->plan.window_count);
}

static void errors_name_file_tensor_and_offset(void **state)
{
    struct fixture *fixture = *state;
    set_hook(0, EIO, false, 0);
    fixture->source.mode = RAFFIA_READER_BUFFERED;
    assert_status(RAFFIA_ERROR_IO, load_read_window(fixture->reader, &fixture->plan.windows[1]));
    assert_error_mentions(path.text);
    assert_error_mentions("offset 262144");
    assert_error_mentions("tensor 'b'");
    assert_string_equal(raffia_last_native_error(), "EIO");
    fixture->source.mode = RAFFIA_READER_DIRECT;
    assert_status(RAFFIA_ERROR_IO, load_read_window(fixture->reader, &fixture->plan.windows[1]));
    assert_error_mentions("tensor 'b'");
}

static void a_file_that_ends_early_is_noticed(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(truncate(path.text, (off_t)(tensors[3].offset + 5000)), 0);
    fixture->source.mode = RAFFIA_READER_BUFFERED;
    assert_status(RAFFIA_ERROR_CHANGED, read_all(fixture));
    assert_error_mentions("shorter than when it was opened");
    fixture->source.mode = RAFFIA_READER_DIRECT;
    assert_status(RAFFIA_ERROR_CHANGED, read_all(fixture));
    assert_error_mentions("shorter than when it was opened");
}

static void a_stopped_source_is_not_read(void **state)
{
    struct fixture *fixture = *state;
    atomic_store(&fixture->source.stop, true);
    assert_ok(read_all(fixture));
    assert_int_equal(fixture->source.reads, 0);
}

/* Each test has a file of its own making, as some spoil it. */
static int write_and_open(void **state)
{
    model_file_write(path.text, tensors, TENSORS, 4096, 0, 0);
    return open_fixture(state);
}

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

#define READER_TEST(test) cmocka_unit_test_setup_teardown(test, write_and_open, close_fixture)

int main(void)
{
    const struct CMUnitTest tests[] = {
        READER_TEST(buffered_reads_go_straight_into_place),
        READER_TEST(direct_reads_stage_only_what_does_not_fit_in_place),
        READER_TEST(memory_that_does_not_agree_with_the_file_is_staged),
        READER_TEST(short_and_interrupted_reads_go_on),
        READER_TEST(short_and_interrupted_direct_reads_go_on),
        READER_TEST(a_file_refused_at_once_is_read_through_the_cache),
        READER_TEST(a_file_refused_in_the_middle_is_read_on_through_the_cache),
        READER_TEST(a_file_that_cannot_be_opened_again_is_read_through_the_cache),
        READER_TEST(errors_name_file_tensor_and_offset),
        READER_TEST(a_file_that_ends_early_is_noticed),
        READER_TEST(a_stopped_source_is_not_read),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
