/* Models of several files: what the index says against what the files have. */
#include "catalog_invariants.h"
#include "load/catalog.h"
#include "support/cmocka.h"
#include "support/directory.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"
#include "support/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The text with " for ', to be freed with free(). */
static char *quoted(const char *text)
{
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *byte = copy; *byte; byte++)
        if (*byte == '\'')
            *byte = '"';
    return copy;
}

/* A model of two shards in a directory of its own; the tests then break it. */
static struct test_directory model;

#define TENSOR(name, begin, end)                                                                   \
    "'" name "':{'dtype':'U8','shape':[2],'data_offsets':[" begin "," end "]}"

static void write_shard(const char *name, const char *header, size_t data_bytes)
{
    char *text = quoted(header);
    test_safetensors_write(test_path_in(&model, name).text, text, data_bytes);
    free(text);
}

static void write_index(const char *content)
{
    char *text = quoted(content);
    test_file_write(test_path_in(&model, "model.safetensors.index.json").text, text, strlen(text));
    free(text);
}

static const char right_index[] = "{'metadata':{'total_size':6},'weight_map':"
                                  "{'a':'2.safetensors','b':'1.safetensors','c':'2.safetensors'}}";

static int make_model(void **state)
{
    (void)state;
    test_directory_make(&model);
    write_shard("1.safetensors", "{'__metadata__':{'k':'one','m':'1'}," TENSOR("b", "0", "2") "}",
                2);
    write_shard("2.safetensors",
                "{" TENSOR("c", "2", "4") "," TENSOR("a", "0", "2") ",'__metadata__':{'k':'two',"
                                                                    "'a':'2'}}",
                4);
    write_index(right_index);
    return 0;
}

static int remove_model(void **state)
{
    (void)state;
    test_directory_remove(&model);
    return 0;
}

static void check_model(const struct catalog *catalog)
{
    assert_null(catalog_broken_promise(catalog, 0));
    assert_int_equal(catalog->file_count, 2);
    assert_non_null(strstr(catalog->files[0].path, "/1.safetensors"));
    assert_int_equal(catalog->tensor_count, 3);
    static const size_t files[] = {1, 0, 1}, places[] = {0, 0, 2};
    for (size_t i = 0; i < 3; i++) {
        const struct catalog_tensor *tensor = &catalog->tensors[i];
        assert_int_equal(tensor->name[0], 'a' + (int)i);
        assert_int_equal(tensor->file, files[i]);
        unsigned char bytes[2];
        int fd = catalog->files[tensor->file].fd;
        assert_int_equal(pread(fd, bytes, sizeof bytes, (off_t)tensor->offset), 2);
        assert_int_equal(bytes[0], test_pattern(places[i]));
        assert_int_equal(bytes[1], test_pattern(places[i] + 1));
    }
    /* The first file that has a key decides. */
    static const char *const metadata[][2] = {{"a", "2"}, {"k", "one"}, {"m", "1"}};
    assert_int_equal(catalog->metadata_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(catalog->metadata[i].key, metadata[i][0]);
        assert_string_equal(catalog->metadata[i].value, metadata[i][1]);
    }
}

static void opens_right(const char *path)
{
    struct catalog *catalog;
    assert_ok(catalog_open(path, NULL, &catalog));
    check_model(catalog);
    catalog_close(catalog);
}

static void a_model_of_shards_is_one_catalog(void **state)
{
    (void)state;
    opens_right(model.path);
    opens_right(test_path_in(&model, "model.safetensors.index.json").text);
    /* A relative path without any slash. */
    char *old = getcwd(NULL, 0);
    assert_int_equal(chdir(model.path), 0);
    struct catalog *catalog;
    raffia_status status = catalog_open("model.safetensors.index.json", NULL, &catalog);
    assert_int_equal(chdir(old), 0);
    free(old);
    assert_ok(status);
    assert_string_equal(catalog->files[0].path, "1.safetensors");
    catalog_close(catalog);
}

static void shards_may_be_links_as_in_a_hub_cache(void **state)
{
    (void)state;
    static const char *const names[] = {"1.safetensors", "2.safetensors",
                                        "model.safetensors.index.json"};
    struct test_path snapshot = test_path_in(&model, "snapshot"),
                     blobs = test_path_in(&model, "blobs");
    assert_int_equal(mkdir(snapshot.text, 0755), 0);
    assert_int_equal(mkdir(blobs.text, 0755), 0);
    for (size_t i = 0; i < 3; i++) {
        char blob[64], link[64], target[64];
        snprintf(blob, sizeof blob, "blobs/%zu", i);
        snprintf(link, sizeof link, "snapshot/%s", names[i]);
        snprintf(target, sizeof target, "../blobs/%zu", i);
        assert_int_equal(
            rename(test_path_in(&model, names[i]).text, test_path_in(&model, blob).text), 0);
        assert_int_equal(symlink(target, test_path_in(&model, link).text), 0);
    }
    opens_right(snapshot.text);
}

static void refuses(raffia_status expected, const char *words, const char *more_words)
{
    struct catalog *catalog = NULL;
    assert_status(expected, catalog_open(model.path, NULL, &catalog));
    assert_null(catalog);
    assert_error_mentions("model.safetensors.index.json");
    assert_error_mentions(words);
    assert_error_mentions(more_words);
}

static void a_missing_shard_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(unlink(test_path_in(&model, "2.safetensors").text), 0);
    refuses(RAFFIA_ERROR_NOT_FOUND, "2.safetensors", "No such file");
    assert_int_equal(mkdir(test_path_in(&model, "2.safetensors").text, 0755), 0);
    refuses(RAFFIA_ERROR_INVALID_ARGUMENT, "2.safetensors", "not a regular file");
}

static void a_shard_without_tensors_is_an_error(void **state)
{
    (void)state;
    write_shard("2.safetensors", "{}", 0);
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'a' is mapped to '2.safetensors'", "does not have it");
    write_shard("1.safetensors", "{}", 0);
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'a' is mapped to '2.safetensors'", "does not have it");
}

static void a_malformed_shard_is_an_error(void **state)
{
    (void)state;
    write_shard("2.safetensors", "{" TENSOR("c", "2", "4") "," TENSOR("a", "0", "2") "}", 3);
    refuses(RAFFIA_ERROR_FORMAT, "2.safetensors", "1 bytes are missing");
    test_file_write(test_path_in(&model, "2.safetensors").text, "", 0);
    refuses(RAFFIA_ERROR_FORMAT, "2.safetensors", "0 bytes");
}

static void a_tensor_that_its_shard_lacks_is_an_error(void **state)
{
    (void)state;
    write_index("{'weight_map':{'a':'2.safetensors','b':'1.safetensors','c':'2.safetensors',"
                "'d':'1.safetensors'}}");
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'd' is mapped to '1.safetensors'", "does not have it");
    write_index("{'weight_map':{'0':'2.safetensors','a':'2.safetensors','b':'1.safetensors','c':'2."
                "safetensors'}}");
    refuses(RAFFIA_ERROR_FORMAT, "tensor '0' is mapped to '2.safetensors'", "does not have it");
}

static void a_tensor_in_another_shard_is_an_error(void **state)
{
    (void)state;
    write_index("{'weight_map':{'a':'2.safetensors','b':'1.safetensors','c':'1.safetensors'}}");
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'c' is mapped to '1.safetensors'",
            "it lies in '2.safetensors'");
}

static void a_tensor_in_two_shards_is_an_error(void **state)
{
    (void)state;
    write_shard("1.safetensors", "{" TENSOR("b", "0", "2") "," TENSOR("c", "2", "4") "}", 4);
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'c' lies in two files", "1.safetensors");
    /* One file by two names. */
    write_index("{'weight_map':{'b':'1.safetensors','c':'again'}}");
    assert_int_equal(
        link(test_path_in(&model, "1.safetensors").text, test_path_in(&model, "again").text), 0);
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'b' lies in two files", "again");
}

static void a_stale_index_is_an_error(void **state)
{
    (void)state;
    write_index("{'weight_map':{'a':'2.safetensors','b':'1.safetensors'}}");
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'c' lies in '2.safetensors'", "stale");
    write_index("{'weight_map':{'b':'1.safetensors','c':'2.safetensors'}}");
    refuses(RAFFIA_ERROR_FORMAT, "tensor 'a' lies in '2.safetensors'", "stale");
}

static void a_wrong_total_is_warned_of(void **state)
{
    (void)state;
    static const char *const totals[] = {"0", "7", "9223372036854775807"};
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "{'metadata':{'total_size':%s},'weight_map':{'a':'2.safetensors',"
                 "'b':'1.safetensors','c':'2.safetensors'}}",
                 totals[i]);
        write_index(text);
        log_capture_start_at(RAFFIA_LOG_WARN);
        struct catalog *catalog;
        raffia_status status = catalog_open(model.path, NULL, &catalog);
        log_capture_stop();
        assert_ok(status);
        check_model(catalog);
        catalog_close(catalog);
        assert_int_equal(log_capture_count(), 1);
        assert_non_null(strstr(log_capture_last(), "total_size"));
    }
}

static void stray_shards_are_ignored_with_a_note(void **state)
{
    (void)state;
    log_capture_start_at(RAFFIA_LOG_INFO);
    opens_right(model.path);
    assert_int_equal(log_capture_count(), 0);
    write_shard("old.safetensors", "not a header", 0);
    opens_right(model.path);
    log_capture_stop();
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_last(), "old.safetensors"));
    assert_null(strstr(log_capture_last(), "1.safetensors"));
}

static void an_index_is_limited_like_a_header(void **state)
{
    (void)state;
    /* White space makes it larger than any header of the model. */
    enum { BYTES = 1000 };
    char text[BYTES + 1];
    snprintf(text, sizeof text, "%-*s", BYTES, right_index);
    write_index(text);
    struct catalog_limits limits = {.header_bytes = BYTES};
    struct catalog *catalog;
    assert_ok(catalog_open(model.path, &limits, &catalog));
    catalog_close(catalog);
    limits.header_bytes--;
    assert_status(RAFFIA_ERROR_LIMIT, catalog_open(model.path, &limits, &catalog));
    assert_error_mentions("the index has 1000 bytes");
    assert_error_mentions("header_limit_bytes");
}

static void running_out_of_descriptors_is_a_limit(void **state)
{
    (void)state;
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    int next = dup(0);
    close(next);
    /* Room for the index and one shard. */
    struct rlimit few = {.rlim_cur = (rlim_t)next + 2, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct catalog *catalog;
    raffia_status status =
        catalog_open(test_path_in(&model, "model.safetensors.index.json").text, NULL, &catalog);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(status, RAFFIA_ERROR_LIMIT);
    assert_error_mentions("ulimit -n");
    opens_right(model.path); /* none was left open */
}

static raffia_status open_model(void *context)
{
    struct catalog *catalog = NULL;
    raffia_status status = catalog_open(context, NULL, &catalog);
    if (status) {
        assert_null(catalog);
        return status;
    }
    check_model(catalog);
    catalog_close(catalog);
    return RAFFIA_OK;
}

static void any_call_may_fail_while_shards_are_opened(void **state)
{
    (void)state;
    log_capture_start_at(RAFFIA_LOG_INFO); /* so that strays are looked for too */
    long calls = fault_loop(open_model, model.path, 1000);
    log_capture_stop();
    assert_in_range(calls, 30, 1000);
}

#define model_test(function) cmocka_unit_test_setup_teardown(function, make_model, remove_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        model_test(a_model_of_shards_is_one_catalog),
        model_test(shards_may_be_links_as_in_a_hub_cache),
        model_test(a_missing_shard_is_an_error),
        model_test(a_shard_without_tensors_is_an_error),
        model_test(a_malformed_shard_is_an_error),
        model_test(a_tensor_that_its_shard_lacks_is_an_error),
        model_test(a_tensor_in_another_shard_is_an_error),
        model_test(a_tensor_in_two_shards_is_an_error),
        model_test(a_stale_index_is_an_error),
        model_test(a_wrong_total_is_warned_of),
        model_test(stray_shards_are_ignored_with_a_note),
        model_test(an_index_is_limited_like_a_header),
        model_test(running_out_of_descriptors_is_a_limit),
        model_test(any_call_may_fail_while_shards_are_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
