/* The last failure of a thread. */
#include "core/error.h"
#include "support/cmocka.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Must be the first test. */
static void there_is_no_error_at_first(void **state)
{
    (void)state;
    struct core_error_record saved;
    assert_int_equal(raffia_last_status(), RAFFIA_OK);
    assert_string_equal(raffia_last_error(), "");
    assert_string_equal(raffia_last_native_error(), "");
    core_error_save(&saved);
    assert_int_equal(saved.status, RAFFIA_OK);
    assert_string_equal(saved.text, "");
}

static void an_error_is_kept_until_the_next(void **state)
{
    (void)state;
    assert_int_equal(core_error(RAFFIA_ERROR_IO, "cannot read %d", 7), RAFFIA_ERROR_IO);
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_IO);
    assert_string_equal(raffia_last_error(), "cannot read 7");
    assert_string_equal(raffia_last_native_error(), "");
    core_error(RAFFIA_ERROR_BUSY, "wait");
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_BUSY);
    assert_string_equal(raffia_last_error(), "wait");
}

static void a_failed_system_call_names_its_errno(void **state)
{
    (void)state;
    raffia_status status =
        core_error_errno(RAFFIA_ERROR_OUT_OF_MEMORY, ENOMEM, "cannot map %s", "it");
    assert_int_equal(status, RAFFIA_ERROR_OUT_OF_MEMORY);
    assert_string_equal(raffia_last_native_error(), "ENOMEM");
    assert_string_equal(raffia_last_error(), "cannot map it: Cannot allocate memory");
    core_error_errno(RAFFIA_ERROR_IO, 99999, "odd");
    assert_string_equal(raffia_last_native_error(), "");
    assert_error_mentions("odd: ");
    assert_error_mentions("99999");
}

static void a_driver_error_keeps_its_name(void **state)
{
    (void)state;
    core_error_native(RAFFIA_ERROR_DRIVER, "CUDA_ERROR_UNKNOWN", "the driver said no");
    assert_string_equal(raffia_last_native_error(), "CUDA_ERROR_UNKNOWN");
    assert_string_equal(raffia_last_error(), "the driver said no");
    core_error(RAFFIA_ERROR_IO, "another");
    assert_string_equal(raffia_last_native_error(), "");

    struct core_error_record saved;
    char name[2 * sizeof saved.native];
    memset(name, 'N', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    core_error_native(RAFFIA_ERROR_DRIVER, name, "a long name");
    assert_int_equal(strlen(raffia_last_native_error()), sizeof saved.native - 1);
}

static void context_goes_in_front(void **state)
{
    (void)state;
    core_error_errno(RAFFIA_ERROR_NOT_FOUND, ENOENT, "cannot open 'w.bin'");
    assert_int_equal(core_error_prefix("loading %s", "model"), RAFFIA_ERROR_NOT_FOUND);
    assert_string_equal(raffia_last_error(),
                        "loading model: cannot open 'w.bin': No such file or directory");
    assert_string_equal(raffia_last_native_error(), "ENOENT");
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_NOT_FOUND);
}

static void assert_cut(void)
{
    const char *text = raffia_last_error();
    assert_int_equal(strlen(text), CORE_ERROR_MAX - 1);
    assert_string_equal(text + CORE_ERROR_MAX - 4, "...");
}

static void long_sentences_are_cut_and_say_so(void **state)
{
    (void)state;
    char text[2 * CORE_ERROR_MAX];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    core_error(RAFFIA_ERROR_IO, "%s", text);
    assert_cut();
    core_error_prefix("context");
    assert_cut();
    assert_int_equal(strncmp(raffia_last_error(), "context: xxx", 12), 0);
    core_error_prefix("%s", text);
    assert_cut();
    core_error_errno(RAFFIA_ERROR_IO, EIO, "%s", text);
    assert_cut();
    assert_string_equal(raffia_last_native_error(), "EIO");

    /* The sentence fits; what is appended does not. */
    text[CORE_ERROR_MAX - 6] = '\0';
    core_error_errno(RAFFIA_ERROR_IO, EIO, "%s", text);
    assert_cut();
    /* As long as can be: nothing is cut. */
    text[CORE_ERROR_MAX - 6] = 'x';
    text[CORE_ERROR_MAX - 1] = '\0';
    core_error(RAFFIA_ERROR_IO, "%s", text);
    assert_string_equal(raffia_last_error(), text);
}

static void a_sentence_may_quote_the_one_before(void **state)
{
    (void)state;
    core_error_native(RAFFIA_ERROR_IO, "EFIRST", "the first");
    core_error_native(RAFFIA_ERROR_FORMAT, raffia_last_native_error(), "the second, after '%s'",
                      raffia_last_error());
    assert_string_equal(raffia_last_error(), "the second, after 'the first'");
    assert_string_equal(raffia_last_native_error(), "EFIRST");
}

static void *fail_in_thread(void *record)
{
    if (raffia_last_status() || *raffia_last_error())
        return NULL;
    core_error_errno(RAFFIA_ERROR_PERMISSION, EACCES, "the thread may not");
    core_error_save(record);
    return record;
}

static void threads_have_errors_of_their_own(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct core_error_record records[THREADS];
    core_error(RAFFIA_ERROR_BUSY, "mine");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_in_thread, &records[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_ptr_equal(result, &records[i]);
    }
    assert_string_equal(raffia_last_error(), "mine");

    assert_int_equal(core_error_restore(&records[2]), RAFFIA_ERROR_PERMISSION);
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_PERMISSION);
    assert_string_equal(raffia_last_error(), "the thread may not: Permission denied");
    assert_string_equal(raffia_last_native_error(), "EACCES");
}

static void *restore_in_thread(void *record)
{
    return core_error_restore(record) == RAFFIA_ERROR_IO &&
                   strcmp(raffia_last_error(), "handed over") == 0
               ? record
               : NULL;
}

static void a_thread_without_an_error_can_be_given_one(void **state)
{
    (void)state;
    struct core_error_record record = {.status = RAFFIA_ERROR_IO, .text = "handed over"};
    pthread_t thread;
    void *result;
    assert_int_equal(pthread_create(&thread, NULL, restore_in_thread, &record), 0);
    pthread_join(thread, &result);
    assert_ptr_equal(result, &record);
}

static void errnos_have_statuses(void **state)
{
    (void)state;
    static const struct {
        int error_number;
        raffia_status status;
    } rows[] = {
        {ENOMEM, RAFFIA_ERROR_OUT_OF_MEMORY},
        {ENOSPC, RAFFIA_ERROR_OUT_OF_MEMORY},
        {EACCES, RAFFIA_ERROR_PERMISSION},
        {EPERM, RAFFIA_ERROR_PERMISSION},
        {ENOENT, RAFFIA_ERROR_NOT_FOUND},
        {ENOTDIR, RAFFIA_ERROR_NOT_FOUND},
        {EMFILE, RAFFIA_ERROR_LIMIT},
        {ENFILE, RAFFIA_ERROR_LIMIT},
        {ENOSYS, RAFFIA_ERROR_UNSUPPORTED},
        {EOPNOTSUPP, RAFFIA_ERROR_UNSUPPORTED},
        {ENODEV, RAFFIA_ERROR_UNSUPPORTED},
        {EIO, RAFFIA_ERROR_IO},
        {EINVAL, RAFFIA_ERROR_IO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(core_status_of_errno(rows[i].error_number), rows[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_error_at_first),
        cmocka_unit_test(an_error_is_kept_until_the_next),
        cmocka_unit_test(a_failed_system_call_names_its_errno),
        cmocka_unit_test(a_driver_error_keeps_its_name),
        cmocka_unit_test(context_goes_in_front),
        cmocka_unit_test(long_sentences_are_cut_and_say_so),
        cmocka_unit_test(a_sentence_may_quote_the_one_before),
        cmocka_unit_test(threads_have_errors_of_their_own),
        cmocka_unit_test(a_thread_without_an_error_can_be_given_one),
        cmocka_unit_test(errnos_have_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
