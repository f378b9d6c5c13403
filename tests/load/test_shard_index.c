/* Models of several files: the index, and what it says against what the files have. With `--corpus
 * DIRECTORY` the texts are written as seeds for the fuzzer instead. */
#include "catalog_invariants.h"
#include "load/catalog.h"
#include "load/catalog_build.h"
#include "load/shard_index.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"
#include "support/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct index_case {
    const char *name, *text; /* ' stands for " */
    raffia_status status;
    const char *words[2];
};

#define VALID(name_, text_)                                                                        \
    {                                                                                              \
        .name = (name_), .text = (text_)                                                           \
    }

#define WRONG(name_, text_, ...)                                                                   \
    {                                                                                              \
        .name = (name_), .text = (text_), .status = RAFFIA_ERROR_FORMAT, .words = { __VA_ARGS__ }  \
    }

#define MAP_TO(file) "{'weight_map':{'x':" file "}}"

static const struct index_case index_cases[] = {
    VALID("plain", "{'metadata':{'total_size':8},'weight_map':{'x':'a','y':'b','z':'a'}}"),
    VALID("metadata_absent", MAP_TO("'a.safetensors'")),
    VALID("metadata_null", "{'metadata':null,'weight_map':{'x':'a'}}"),
    VALID("metadata_empty", "{'metadata':{},'weight_map':{'x':'a'}}"),
    VALID("total_fraction", "{'metadata':{'total_size':8.0},'weight_map':{'x':'a'}}"),
    VALID("total_negative", "{'metadata':{'total_size':-8},'weight_map':{'x':'a'}}"),
    VALID("total_string", "{'metadata':{'total_size':'8'},'weight_map':{'x':'a'}}"),
    VALID("other_members", "{'a':[],'weight_map':{'x':'a'},'metadata':{'more':{}}}"),
    VALID("backslash_is_a_letter", MAP_TO("'a\\\\b'")),
    VALID("dots_in_name", MAP_TO("'..a..'")),
    VALID("three_dots", MAP_TO("'...'")),
    VALID("unicode", "{'weight_map':{'\xc3\xa9':'\xe4\xb8\x96'}}"),
    VALID("white_space", " \n{'weight_map':{'x':'a'}}\n"),

    WRONG("nothing", "", "no '{'"),
    WRONG("array", "[]", "no '{'"),
    WRONG("cut_short", "{'weight_map':{'x':'a'", "invalid JSON", "offset"),
    WRONG("text_after", "{'weight_map':{'x':'a'}}x", "invalid JSON"),
    WRONG("map_absent", "{}", "weight_map is missing"),
    WRONG("map_null", "{'weight_map':null}", "weight_map is null"),
    WRONG("map_array", "{'weight_map':['a']}", "weight_map is an array"),
    WRONG("map_empty", "{'weight_map':{}}", "names no tensor"),
    WRONG("metadata_array", "{'metadata':[],'weight_map':{'x':'a'}}", "metadata is an array"),
    WRONG("tensor_twice", "{'weight_map':{'x':'a','x':'b'}}", "duplicate", "x"),
    WRONG("map_twice", "{'weight_map':{'x':'a'},'weight_map':{'y':'a'}}", "duplicate"),
    WRONG("file_number", MAP_TO("1"), "'x'", "a number"),
    WRONG("file_null", MAP_TO("null"), "'x'", "null"),
    WRONG("file_array", MAP_TO("['a','b']"), "'x'", "an array"),
    WRONG("file_empty", MAP_TO("''"), "'x'", "plain file name"),
    WRONG("file_dot", MAP_TO("'.'"), "'x'", "plain file name"),
    WRONG("file_parent", MAP_TO("'..'"), "'x'", "plain file name"),
    WRONG("file_absolute", MAP_TO("'/etc/passwd'"), "'/etc/passwd'", "plain file name"),
    WRONG("file_above", MAP_TO("'../a'"), "'../a'", "plain file name"),
    WRONG("file_below", MAP_TO("'sub/a'"), "'sub/a'", "plain file name"),
    WRONG("file_here", MAP_TO("'./a'"), "plain file name"),
    WRONG("file_slash_escaped", MAP_TO("'..\\u002fa'"), "'../a'", "plain file name"),
    WRONG("file_slash_last", MAP_TO("'a/'"), "plain file name"),
    WRONG("file_nul", MAP_TO("'a\\u0000.safetensors'"), "invalid JSON"),
    WRONG("file_bad_utf8", MAP_TO("'\xff'"), "invalid JSON"),
    WRONG("tensor_bad_utf8", "{'weight_map':{'\xff':'a'}}", "invalid JSON"),
    WRONG("total_too_big",
          "{'metadata':{'total_size':18446744073709551616},'weight_map':{'x':'a'}}",
          "too big integer"),
};

#define INDEX_CASES (sizeof index_cases / sizeof *index_cases)

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

static void every_rule_of_an_index_is_enforced(void **state)
{
    (void)state;
    for (size_t i = 0; i < INDEX_CASES; i++) {
        const struct index_case *item = &index_cases[i];
        char *text = quoted(item->text);
        struct shard_index index = {.entry_count = 4711};
        raffia_status status = shard_index_parse("the_index", text, strlen(text), &index);
        if (status != item->status)
            fail_msg("%s: %s (%s)", item->name, raffia_status_name(status),
                     status ? raffia_last_error() : "");
        if (status) {
            assert_error_mentions("the_index");
            for (size_t w = 0; w < 2 && item->words[w]; w++)
                assert_error_mentions(item->words[w]);
            assert_int_equal(index.entry_count, 4711);
        } else {
            assert_in_range(index.file_count, 1, index.entry_count);
            shard_index_clear(&index);
        }
        free(text);
    }
}

static void an_index_lists_tensors_and_files_in_order(void **state)
{
    (void)state;
    char *text = quoted("{'metadata':{'total_size':9},'weight_map':{'z':'b','y':'a','x':'b'}}");
    struct shard_index index;
    assert_ok(shard_index_parse("the_index", text, strlen(text), &index));
    free(text);
    assert_true(index.total_given);
    assert_int_equal(index.total_bytes, 9);
    assert_int_equal(index.entry_count, 3);
    assert_string_equal(index.entries[0].tensor, "x");
    assert_string_equal(index.entries[0].file, "b");
    assert_string_equal(index.entries[1].tensor, "y");
    assert_int_equal(index.file_count, 2);
    assert_string_equal(index.files[0], "a");
    assert_string_equal(index.files[1], "b");
    shard_index_clear(&index);
}

/* An index of `tensors` tensors in `files` files. */
static char *large_index(size_t tensors, size_t files, size_t *bytes_p)
{
    enum { LINE_MAX_BYTES = 64 };
    char *text = malloc((tensors + 1) * LINE_MAX_BYTES);
    assert_non_null(text);
    size_t bytes = (size_t)sprintf(text, "{\"weight_map\":");
    for (size_t i = 0; i < tensors; i++)
        bytes += (size_t)sprintf(text + bytes, "%c\"t%zu\":\"f%zu\"", i ? ',' : '{', i, i % files);
    bytes += (size_t)sprintf(text + bytes, "}}");
    *bytes_p = bytes;
    return text;
}

static void the_number_of_files_is_bounded(void **state)
{
    (void)state;
    size_t bytes;
    struct shard_index index;
    char *text = large_index(CATALOG_FILES_MAX * 3, CATALOG_FILES_MAX, &bytes);
    assert_ok(shard_index_parse("the_index", text, bytes, &index));
    assert_int_equal(index.file_count, CATALOG_FILES_MAX);
    shard_index_clear(&index);
    free(text);
    text = large_index(CATALOG_FILES_MAX + 1, CATALOG_FILES_MAX + 1, &bytes);
    assert_status(RAFFIA_ERROR_LIMIT, shard_index_parse("the_index", text, bytes, &index));
    assert_error_mentions("4097 files");
    free(text);
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
        struct log_capture log;
        log_capture_begin(&log, RAFFIA_LOG_WARN);
        struct catalog *catalog;
        raffia_status status = catalog_open(model.path, NULL, &catalog);
        log_capture_end(&log);
        assert_ok(status);
        check_model(catalog);
        catalog_close(catalog);
        assert_int_equal(log.count, 1);
        assert_non_null(strstr(log.last, "total_size"));
    }
}

static void stray_shards_are_ignored_with_a_note(void **state)
{
    (void)state;
    struct log_capture log;
    log_capture_begin(&log, RAFFIA_LOG_INFO);
    opens_right(model.path);
    assert_int_equal(log.count, 0);
    write_shard("old.safetensors", "not a header", 0);
    opens_right(model.path);
    log_capture_end(&log);
    assert_int_equal(log.count, 1);
    assert_non_null(strstr(log.last, "old.safetensors"));
    assert_null(strstr(log.last, "1.safetensors"));
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
    struct log_capture log;
    log_capture_begin(&log, RAFFIA_LOG_INFO); /* so that strays are looked for too */
    long calls = fault_loop(open_model, model.path, 1000);
    log_capture_end(&log);
    assert_in_range(calls, 30, 1000);
}

static int write_corpus(const char *corpus)
{
    for (size_t i = 0; i < INDEX_CASES; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", corpus, index_cases[i].name);
        char *text = quoted(index_cases[i].text);
        test_file_write(path, text, strlen(text));
        free(text);
    }
    return 0;
}

#define model_test(function) cmocka_unit_test_setup_teardown(function, make_model, remove_model)

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--corpus") == 0)
        return write_corpus(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_of_an_index_is_enforced),
        cmocka_unit_test(an_index_lists_tensors_and_files_in_order),
        cmocka_unit_test(the_number_of_files_is_bounded),
        model_test(a_model_of_shards_is_one_catalog),
        model_test(shards_may_be_links_as_in_a_hub_cache),
        model_test(a_missing_shard_is_an_error),
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
