/* The index of a sharded model by itself. With `--corpus DIRECTORY` the texts are written as seeds
 * for the fuzzer instead. */
#include "load/catalog_build.h"
#include "load/shard_index.h"
#include "support/cmocka.h"
#include "support/directory.h"
#include "support/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--corpus") == 0)
        return write_corpus(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_of_an_index_is_enforced),
        cmocka_unit_test(an_index_lists_tensors_and_files_in_order),
        cmocka_unit_test(the_number_of_files_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
