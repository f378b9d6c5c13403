#include "core/error.h"
#include "core/options.h"
#include "support/cmocka.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static void nothing_has_failed_in_a_new_thread(void **state)
{
    (void)state;
    assert_int_equal(raffia_last_status(), RAFFIA_OK);
    assert_string_equal(raffia_last_error(), "");
    assert_string_equal(raffia_last_native_error(), "");
}

static void a_failure_keeps_its_sentence_and_native_name(void **state)
{
    (void)state;
    assert_status(RAFFIA_ERROR_FORMAT, core_error(RAFFIA_ERROR_FORMAT, "byte %d is odd", 7));
    assert_string_equal(raffia_last_error(), "byte 7 is odd");
    assert_string_equal(raffia_last_native_error(), "");
    assert_int_equal(raffia_last_status(), RAFFIA_ERROR_FORMAT);

    assert_status(RAFFIA_ERROR_IO,
                  core_error_errno(RAFFIA_ERROR_IO, ENOENT, "cannot open '%s'", "x"));
    assert_string_equal(raffia_last_error(), "cannot open 'x': No such file or directory");
    assert_string_equal(raffia_last_native_error(), "ENOENT");
    core_error_errno(RAFFIA_ERROR_IO, 99999, "odd");
    assert_string_equal(raffia_last_native_error(), "");

    assert_status(RAFFIA_ERROR_DRIVER, core_error_native(RAFFIA_ERROR_DRIVER, "GPU_LOST", "gone"));
    assert_status(RAFFIA_ERROR_DRIVER, core_error_prefix("loading %s", "m"));
    assert_string_equal(raffia_last_error(), "loading m: gone");
    assert_string_equal(raffia_last_native_error(), "GPU_LOST");
}

static void long_sentences_are_cut_visibly(void **state)
{
    (void)state;
    char word[2 * CORE_ERROR_MAX];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    core_error(RAFFIA_ERROR_LIMIT, "%s", word);
    size_t length = strlen(raffia_last_error());
    assert_int_equal(length, CORE_ERROR_MAX - 1);
    assert_string_equal(raffia_last_error() + length - 3, "...");
    core_error_prefix("context");
    length = strlen(raffia_last_error());
    assert_int_equal(length, CORE_ERROR_MAX - 1);
    assert_string_equal(raffia_last_error() + length - 3, "...");
    core_error_prefix("%s", word);
    assert_int_equal(strlen(raffia_last_error()), CORE_ERROR_MAX - 1);
    core_error_errno(RAFFIA_ERROR_LIMIT, ENOMEM, "%s", word);
    assert_int_equal(strlen(raffia_last_error()), CORE_ERROR_MAX - 1);
}

static void *fail_elsewhere(void *record)
{
    core_error_save(record);
    assert_int_equal(((struct core_error_record *)record)->status, RAFFIA_OK);
    core_error_native(RAFFIA_ERROR_CHANGED, "ESTALE", "another thread failed");
    core_error_save(record);
    return NULL;
}

static void a_failure_travels_between_threads_only_when_handed_over(void **state)
{
    (void)state;
    core_error(RAFFIA_ERROR_BUSY, "mine");
    struct core_error_record record;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &record), 0);
    pthread_join(thread, NULL);
    assert_string_equal(raffia_last_error(), "mine");
    assert_status(RAFFIA_ERROR_CHANGED, core_error_restore(&record));
    assert_string_equal(raffia_last_error(), "another thread failed");
    assert_string_equal(raffia_last_native_error(), "ESTALE");
}

static void every_errno_has_a_status(void **state)
{
    (void)state;
    for (int error = 1; error < 140; error++)
        assert_true(core_status_of_errno(error) < 0);
    assert_int_equal(core_status_of_errno(ENOMEM), RAFFIA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(core_status_of_errno(EACCES), RAFFIA_ERROR_PERMISSION);
    assert_int_equal(core_status_of_errno(ENOENT), RAFFIA_ERROR_NOT_FOUND);
}

static void every_status_has_a_name_and_a_text(void **state)
{
    (void)state;
#define CHECK_STATUS(name, code, text)                                                             \
    assert_int_equal(name, code);                                                                  \
    assert_string_equal(raffia_status_name(name), #name);                                          \
    assert_string_equal(raffia_status_text(name), text);
    RAFFIA_STATUS_LIST(CHECK_STATUS)
#undef CHECK_STATUS
    assert_string_equal(raffia_status_name((raffia_status)-9999), "RAFFIA_UNKNOWN");
    assert_string_equal(raffia_status_text((raffia_status)1), "unknown status");
}

struct options_v1 {
    size_t struct_size;
    int first;
};

struct options_v2 {
    size_t struct_size;
    int first, padding;
    size_t second;
};

static void options_of_older_and_newer_programs_are_understood(void **state)
{
    (void)state;
    struct options_v2 copy;
    memset(&copy, 0xff, sizeof copy);
    assert_ok(core_options_copy(&copy, sizeof copy, NULL, "options"));
    assert_int_equal(copy.struct_size, sizeof copy);
    assert_int_equal(copy.first, 0);
    assert_int_equal(copy.second, 0);

    struct options_v1 older = {.struct_size = sizeof older, .first = 5};
    assert_ok(core_options_copy(&copy, sizeof copy, &older, "options"));
    assert_int_equal(copy.first, 5);
    assert_int_equal(copy.second, 0);

    struct options_v2 newer = {.struct_size = sizeof newer, .first = 6};
    struct options_v1 known;
    assert_ok(core_options_copy(&known, sizeof known, &newer, "options"));
    assert_int_equal(known.first, 6);
    assert_int_equal(known.struct_size, sizeof known);
    newer.second = 1;
    assert_status(RAFFIA_ERROR_UNSUPPORTED,
                  core_options_copy(&known, sizeof known, &newer, "options"));
    newer.struct_size = 0;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT,
                  core_options_copy(&known, sizeof known, &newer, "options"));
    assert_error_mentions("sizeof(options)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_has_failed_in_a_new_thread),
        cmocka_unit_test(a_failure_keeps_its_sentence_and_native_name),
        cmocka_unit_test(long_sentences_are_cut_visibly),
        cmocka_unit_test(a_failure_travels_between_threads_only_when_handed_over),
        cmocka_unit_test(every_errno_has_a_status),
        cmocka_unit_test(every_status_has_a_name_and_a_text),
        cmocka_unit_test(options_of_older_and_newer_programs_are_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
