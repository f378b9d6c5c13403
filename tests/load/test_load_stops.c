/* Loads that are cancelled, stall, or have to do without threads. */
#include "core/fault.h"
#include "core/memory.h"
#include "core/sys.h"
#include "load_fixture.h"
#include "support/cmocka.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define DATA_OFFSET 4096
#define MODEL_BYTES (4 * MIB)
#define HOST        .device = "host", .pages = RAFFIA_PAGES_OFF

static struct test_directory directory;
static struct test_path path;
static struct model_file_tensor tensor;

/* A gate that reads of the data wait at, as if the disk did not answer. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_moved = PTHREAD_COND_INITIALIZER;
static bool gate_closed;
static unsigned gate_waiting;
static off_t gate_offset; /* reads from here on wait */

static int gate_hook(int fd, off_t offset, size_t *bytes)
{
    (void)fd;
    (void)bytes;
    if (offset < gate_offset)
        return 0;
    pthread_mutex_lock(&gate_lock);
    gate_waiting++;
    pthread_cond_broadcast(&gate_moved);
    while (gate_closed)
        pthread_cond_wait(&gate_moved, &gate_lock);
    gate_waiting--;
    pthread_cond_broadcast(&gate_moved);
    pthread_mutex_unlock(&gate_lock);
    return 0;
}

static void gate_close(off_t offset)
{
    pthread_mutex_lock(&gate_lock);
    gate_closed = true;
    gate_offset = offset;
    pthread_mutex_unlock(&gate_lock);
    sys_set_read_hook(gate_hook);
}

static void gate_open(void)
{
    pthread_mutex_lock(&gate_lock);
    gate_closed = false;
    pthread_cond_broadcast(&gate_moved);
    pthread_mutex_unlock(&gate_lock);
}

static void gate_await_arrival(void)
{
    pthread_mutex_lock(&gate_lock);
    while (gate_waiting == 0)
        pthread_cond_wait(&gate_moved, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static size_t open_descriptors(void)
{
    size_t count = 0;
    DIR *descriptors = opendir("/proc/self/fd");
    assert_non_null(descriptors);
    while (readdir(descriptors))
        count++;
    closedir(descriptors);
    return count;
}

struct progress {
    unsigned calls;
    unsigned cancel_at_call; /* 0: never */
    raffia_load_progress last;
    pthread_t caller;
};

static bool note_progress(void *context, const raffia_load_progress *progress)
{
    struct progress *seen = context;
    assert_true(pthread_equal(pthread_self(), seen->caller));
    assert_true(progress->bytes_done >= seen->last.bytes_done);
    assert_int_equal(progress->bytes_total, MODEL_BYTES);
    seen->last = *progress;
    return ++seen->calls != seen->cancel_at_call;
}

static void progress_is_told_at_the_end(void **state)
{
    (void)state;
    struct progress seen = {.caller = pthread_self()};
    raffia_model *model;
    assert_ok(raffia_model_load(
        path.text, &LOAD_OPTIONS(HOST, .progress = note_progress, .progress_context = &seen),
        &model));
    assert_true(seen.calls >= 1);
    assert_int_equal(seen.last.bytes_done, MODEL_BYTES);
    raffia_model_release(model);
}

/* Opens the gate once the caller of the load has been asked often enough. */
static bool open_gate_later(void *context, const raffia_load_progress *progress)
{
    struct progress *seen = context;
    bool go_on = note_progress(context, progress);
    if (seen->calls == 2 || !go_on)
        gate_open();
    return go_on;
}

static void progress_is_told_while_waiting(void **state)
{
    (void)state;
    struct progress seen = {.caller = pthread_self()};
    raffia_model *model;
    gate_close(DATA_OFFSET + 2 * MIB);
    assert_ok(raffia_model_load(
        path.text,
        &LOAD_OPTIONS(HOST, .progress = open_gate_later, .progress_context = &seen, .threads = 1,
                      .window_bytes = 64 * KIB, .reader = RAFFIA_READER_BUFFERED),
        &model));
    assert_true(seen.calls >= 3);
    model_file_check(raffia_model_tensor(model, "t"), tensor.offset, tensor.bytes, 0);
    raffia_model_release(model);
}

static void a_callback_cancels(void **state)
{
    (void)state;
    struct progress seen = {.caller = pthread_self(), .cancel_at_call = 1};
    raffia_model *model = NULL;
    gate_close(DATA_OFFSET);
    assert_status(RAFFIA_ERROR_CANCELLED,
                  raffia_model_load(path.text,
                                    &LOAD_OPTIONS(HOST, .progress = open_gate_later,
                                                  .progress_context = &seen, .threads = 3,
                                                  .window_bytes = 64 * KIB),
                                    &model));
    assert_null(model);
    assert_int_equal(seen.calls, 1);
}

static void a_callback_cancels_at_the_end_too(void **state)
{
    (void)state;
    struct progress seen = {.caller = pthread_self(), .cancel_at_call = 1};
    raffia_model *model = NULL;
    assert_status(
        RAFFIA_ERROR_CANCELLED,
        raffia_model_load(path.text,
                          &LOAD_OPTIONS(HOST, .progress = note_progress, .progress_context = &seen),
                          &model));
    assert_error_mentions("just as all 4194304 bytes were there");
}

static void *set_flag_when_reading(void *flag)
{
    gate_await_arrival();
    __atomic_store_n((int *)flag, 1, __ATOMIC_RELAXED);
    gate_open();
    return NULL;
}

static void a_flag_cancels(void **state)
{
    (void)state;
    int flag = 1; /* only touched atomically while a load looks at it */
    raffia_model *model = NULL;
    assert_status(RAFFIA_ERROR_CANCELLED,
                  raffia_model_load(path.text, &LOAD_OPTIONS(HOST, .cancel = &flag), &model));
    flag = 0;
    assert_ok(raffia_model_load(path.text, &LOAD_OPTIONS(HOST, .cancel = &flag), &model));
    raffia_model_release(model);

    pthread_t thread;
    gate_close(DATA_OFFSET);
    assert_int_equal(pthread_create(&thread, NULL, set_flag_when_reading, &flag), 0);
    assert_status(RAFFIA_ERROR_CANCELLED,
                  raffia_model_load(
                      path.text,
                      &LOAD_OPTIONS(HOST, .cancel = &flag, .threads = 2, .window_bytes = 64 * KIB),
                      &model));
    assert_error_mentions("cancelled");
    pthread_join(thread, NULL);
}

static int early_flag;
static unsigned data_reads;
static bool raise_at_header;

static int watch_reads(int fd, off_t offset, size_t *bytes)
{
    (void)fd;
    (void)bytes;
    if (offset >= DATA_OFFSET)
        data_reads++;
    else if (raise_at_header)
        early_flag = 1;
    return 0;
}

static raffia_status allocate_and_raise(void *context, raffia_stream stream, size_t bytes,
                                        size_t alignment, void **address_p)
{
    struct test_resource *resource = context;
    early_flag = 1;
    return test_resource_ref(resource).ops->allocate(context, stream, bytes, alignment, address_p);
}

static void a_flag_is_seen_before_each_step(void **state)
{
    (void)state;
    struct test_resource resource = {.properties = RAFFIA_HOST_ACCESSIBLE};
    raffia_resource_ops ops = *test_resource_ref(&resource).ops;
    ops.allocate = allocate_and_raise;
    const raffia_load_options options =
        LOAD_OPTIONS(.cancel = &early_flag, .threads = 1, .resource = {&ops, &resource});
    raffia_model *model = NULL;

    early_flag = 1;
    assert_status(RAFFIA_ERROR_CANCELLED, raffia_model_inspect(path.text, &options, &model));
    assert_status(RAFFIA_ERROR_CANCELLED, raffia_model_load("/no/such/file", &options, &model));
    assert_error_mentions("before any file");

    early_flag = 0;
    raise_at_header = true;
    sys_set_read_hook(watch_reads);
    assert_status(RAFFIA_ERROR_CANCELLED, raffia_model_load(path.text, &options, &model));
    assert_error_mentions("before any memory");

    early_flag = 0;
    raise_at_header = false;
    assert_status(RAFFIA_ERROR_CANCELLED, raffia_model_load(path.text, &options, &model));
    assert_error_mentions("before any tensor");
    assert_int_equal(data_reads, 0);
    assert_int_equal(resource.live, 0);
    assert_null(model);
}

static void a_stall_gives_up_at_once_with_memory_of_its_own(void **state)
{
    (void)state;
    raffia_model *model = NULL;
    long memory = core_memory_live();
    size_t descriptors = open_descriptors();
    gate_close(DATA_OFFSET);
    /* Returns although the gate stays closed. */
    assert_status(RAFFIA_ERROR_TIMED_OUT,
                  raffia_model_load(path.text,
                                    &LOAD_OPTIONS(HOST, .stall_timeout_ms = 30, .threads = 2,
                                                  .window_bytes = 64 * KIB),
                                    &model));
    assert_null(model);
    assert_error_mentions(path.text);
    assert_error_mentions("30 ms");
    assert_true(core_memory_live() > memory);
    gate_open();
    /* The readers clean up behind the call; how soon is theirs to say. */
    while (core_memory_live() != memory || open_descriptors() != descriptors)
        usleep(1000);
}

static void *open_gate_soon(void *unused)
{
    (void)unused;
    gate_await_arrival();
    usleep(100000); /* longer than the stall allowed */
    gate_open();
    return NULL;
}

static void a_stall_waits_for_readers_of_the_callers_memory(void **state)
{
    (void)state;
    struct test_memory memory = test_memory_for(path.text, NULL);
    long live = core_memory_live();
    raffia_model *model = NULL;
    pthread_t thread;
    gate_close(DATA_OFFSET);
    assert_int_equal(pthread_create(&thread, NULL, open_gate_soon, NULL), 0);
    assert_status(RAFFIA_ERROR_TIMED_OUT,
                  raffia_model_load(path.text,
                                    &LOAD_OPTIONS(.memory = memory.at, .memory_bytes = memory.bytes,
                                                  .stall_timeout_ms = 20, .threads = 2,
                                                  .window_bytes = 64 * KIB),
                                    &model));
    pthread_mutex_lock(&gate_lock);
    assert_int_equal(gate_waiting, 0);
    pthread_mutex_unlock(&gate_lock);
    pthread_join(thread, NULL);
    assert_int_equal(core_memory_live(), live);
    assert_null(model);
    test_memory_free(&memory);
}

static void a_slow_disk_is_no_stall(void **state)
{
    (void)state;
    raffia_model *model;
    assert_ok(raffia_model_load(
        path.text, &LOAD_OPTIONS(HOST, .stall_timeout_ms = 60000, .threads = 1), &model));
    raffia_model_release(model);
}

static void threads_that_cannot_be_started_are_done_without(void **state)
{
    (void)state;
    struct progress seen = {.caller = pthread_self()};
    struct test_memory memory = test_memory_for(path.text, NULL);
    raffia_load_options options =
        LOAD_OPTIONS(.memory = memory.at, .memory_bytes = memory.bytes, .threads = 3,
                     .window_bytes = 64 * KIB, .progress = note_progress, .progress_context = &seen,
                     .reader = RAFFIA_READER_BUFFERED);
    /* Which call starts the first thread is certain; after that the readers' calls come between. */
    enum { MORE = 40 };
    long end = 0;
    for (long n = 1; end == 0 || n < end; n++) {
        raffia_model *model = NULL;
        seen.last.bytes_done = 0;
        core_fault_arm(n);
        raffia_status status = raffia_model_load(path.text, &options, &model);
        const char *failed = core_fault_disarm();
        assert_non_null(failed);
        if (strcmp(failed, "pthread_create") == 0) {
            assert_ok(status);
            assert_in_range(raffia_model_report(model)->threads, 0, end ? 2 : 0);
            assert_int_equal(seen.last.bytes_done, MODEL_BYTES);
            model_file_check(raffia_model_tensor(model, "t"), tensor.offset, tensor.bytes, 0);
            end = end ? end : n + MORE;
        }
        if (!status)
            raffia_model_release(model);
    }
    test_memory_free(&memory);
}

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    path = test_path_in(&directory, "model.safetensors");
    tensor = model_file_bytes("t", MODEL_BYTES);
    model_file_write(path.text, &tensor, 1, DATA_OFFSET, 0, 0);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

static int remove_hook(void **state)
{
    (void)state;
    gate_open();
    sys_set_read_hook(NULL);
    return 0;
}

#define STOP_TEST(test) cmocka_unit_test_teardown(test, remove_hook)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STOP_TEST(progress_is_told_at_the_end),
        STOP_TEST(progress_is_told_while_waiting),
        STOP_TEST(a_callback_cancels),
        STOP_TEST(a_callback_cancels_at_the_end_too),
        STOP_TEST(a_flag_cancels),
        STOP_TEST(a_flag_is_seen_before_each_step),
        STOP_TEST(a_stall_gives_up_at_once_with_memory_of_its_own),
        STOP_TEST(a_stall_waits_for_readers_of_the_callers_memory),
        STOP_TEST(a_slow_disk_is_no_stall),
        STOP_TEST(threads_that_cannot_be_started_are_done_without),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
