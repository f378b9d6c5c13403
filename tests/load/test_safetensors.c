/* The safetensors format: every rule kept and broken, limits, sizes. With `--corpus DIRECTORY` it
 * writes the cases as seeds for the fuzzer instead. */
#include "catalog_invariants.h"
#include "load/catalog.h"
#include "load/catalog_build.h"
#include "load/safetensors.h"
#include "safetensors_cases.h"
#include "support/cmocka.h"
#include "support/directory.h"
#include "support/fault_loop.h"
#include "support/log_capture.h"
#include "support/random.h"
#include "support/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct test_directory directory;

static int make_directory(void **state)
{
    (void)state;
    test_directory_make(&directory);
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

static void case_gives_its_status(const struct safetensors_case *item)
{
    size_t bytes;
    unsigned char *image = safetensors_case_image(item, &bytes);
    struct test_path path = test_path_in(&directory, item->name);
    test_file_write(path.text, image, bytes);
    free(image);

    struct catalog *catalog = NULL;
    raffia_status status = catalog_open(path.text, NULL, &catalog);
    if (status != item->status)
        fail_msg("%s: %s (%s)", item->name, raffia_status_name(status),
                 status ? raffia_last_error() : "");
    if (status) {
        assert_null(catalog);
        assert_int_equal(raffia_last_status(), status);
        assert_error_mentions(item->name); /* the file */
        for (size_t i = 0; i < SAFETENSORS_CASE_WORDS_MAX && item->words[i]; i++)
            assert_error_mentions(item->words[i]);
        return;
    }
    if (catalog->tensor_count != item->tensors)
        fail_msg("%s: %zu tensors", item->name, catalog->tensor_count);
    const char *broken = catalog_broken_promise(catalog, 0);
    if (broken)
        fail_msg("%s: it does not hold that %s", item->name, broken);
    catalog_close(catalog);
}

static void every_rule_is_enforced(void **state)
{
    (void)state;
    for (size_t i = 0; i < safetensors_case_count; i++)
        case_gives_its_status(&safetensors_cases[i]);
}

static const char two_tensors[] =
    "{\"b\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
    "\"__metadata__\":{\"z\":\"last\",\"format\":\"pt\"},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[12,13]}}";

static void a_catalog_holds_what_the_header_says(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "two");
    test_safetensors_write(path.text, two_tensors, 13);
    struct catalog *catalog;
    assert_ok(catalog_open(path.text, NULL, &catalog));
    uint64_t data_offset = SAFETENSORS_LENGTH_BYTES + strlen(two_tensors);

    assert_int_equal(catalog->tensor_count, 2);
    const struct catalog_tensor *a = &catalog->tensors[0], *b = &catalog->tensors[1];
    assert_string_equal(a->name, "a");
    assert_int_equal(a->dtype, RAFFIA_DTYPE_U8);
    assert_int_equal(a->rank, 0);
    assert_int_equal(a->offset, data_offset + 12);
    assert_int_equal(a->bytes, 1);
    assert_string_equal(b->name, "b");
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->offset, data_offset);
    assert_int_equal(b->bytes, 12);
    assert_int_equal(b->file, 0);

    assert_int_equal(catalog->metadata_count, 2);
    assert_string_equal(catalog->metadata[0].key, "format");
    assert_string_equal(catalog->metadata[0].value, "pt");
    assert_string_equal(catalog->metadata[1].key, "z");

    struct stat facts;
    assert_int_equal(stat(path.text, &facts), 0);
    assert_int_equal(catalog->file_count, 1);
    const struct catalog_file *file = &catalog->files[0];
    assert_string_equal(file->path, path.text);
    assert_int_equal(file->bytes, data_offset + 13);
    assert_int_equal(file->inode, facts.st_ino);
    assert_int_equal(file->device, facts.st_dev);
    assert_int_equal(file->modified.tv_sec, facts.st_mtim.tv_sec);
    assert_int_equal(file->modified.tv_nsec, facts.st_mtim.tv_nsec);
    unsigned char byte;
    assert_int_equal(pread(file->fd, &byte, 1, (off_t)a->offset), 1);
    assert_int_equal(byte, test_pattern(12));
    catalog_close(catalog);
}

static void lenient_accepts_trailing_bytes_with_a_warning(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "trailing");
    test_safetensors_write(path.text, two_tensors, 20);
    struct catalog *catalog;
    assert_status(RAFFIA_ERROR_FORMAT, catalog_open(path.text, NULL, &catalog));
    assert_error_mentions("7 bytes follow");

    const struct catalog_limits lenient = {.lenient = true};
    log_capture_start_at(RAFFIA_LOG_WARN);
    raffia_status status = catalog_open(path.text, &lenient, &catalog);
    log_capture_stop();
    assert_ok(status);
    assert_int_equal(log_capture_count(), 1);
    assert_non_null(strstr(log_capture_last(), "7 bytes follow"));
    assert_non_null(strstr(log_capture_last(), path.text));
    assert_null(catalog_broken_promise(catalog, 0));
    catalog_close(catalog);

    /* Nothing else is forgiven. */
    test_safetensors_write(path.text, two_tensors, 12);
    assert_status(RAFFIA_ERROR_FORMAT, catalog_open(path.text, &lenient, &catalog));
    assert_error_mentions("1 bytes are missing");
}

static void headers_are_limited(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "limited");
    test_safetensors_write(path.text, two_tensors, 13);
    struct catalog *catalog = NULL;
    struct catalog_limits limits = {.header_bytes = strlen(two_tensors)};
    assert_ok(catalog_open(path.text, &limits, &catalog));
    catalog_close(catalog);
    limits.header_bytes--;
    assert_status(RAFFIA_ERROR_LIMIT, catalog_open(path.text, &limits, &catalog));
    assert_error_mentions("header_limit_bytes");
    assert_error_mentions(path.text);
    limits.header_bytes = CATALOG_HEADER_BYTES_MAX;
    assert_ok(catalog_open(path.text, &limits, &catalog));
    catalog_close(catalog);
    limits.header_bytes = CATALOG_HEADER_BYTES_MAX + 1;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, catalog_open(path.text, &limits, &catalog));
    limits.header_bytes = RAFFIA_NONE;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, catalog_open(path.text, &limits, &catalog));
}

static raffia_status declared_header(uint64_t declared, size_t limit)
{
    unsigned char start[SAFETENSORS_LENGTH_BYTES];
    for (size_t i = 0; i < sizeof start; i++)
        start[i] = (unsigned char)(declared >> (8 * i));
    size_t bytes = 0;
    raffia_status status =
        safetensors_header_bytes("file", start, declared + sizeof start, limit, &bytes);
    if (!status)
        assert_int_equal(bytes, declared);
    return status;
}

static void the_format_itself_limits_headers(void **state)
{
    (void)state;
    size_t maximum = CATALOG_HEADER_BYTES_MAX, fallback = CATALOG_HEADER_BYTES_DEFAULT;
    assert_ok(declared_header(maximum, maximum));
    assert_status(RAFFIA_ERROR_FORMAT, declared_header(maximum + 1, maximum));
    assert_error_mentions("100000001");
    assert_error_mentions("at most 100000000");
    assert_ok(declared_header(fallback, fallback));
    assert_status(RAFFIA_ERROR_LIMIT, declared_header(fallback + 1, fallback));
    /* The bytes are in little-endian order, whatever the machine's. */
    assert_ok(declared_header(0x010203, fallback));
}

static raffia_status parse(const char *header, size_t header_bytes, uint64_t data_bytes,
                           struct catalog *catalog)
{
    return safetensors_parse("file", header, header_bytes,
                             SAFETENSORS_LENGTH_BYTES + header_bytes + data_bytes, false, 0,
                             catalog);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    static const char opening[] = "{\"x\":";
    char *header = malloc(sizeof opening + DEPTH);
    assert_non_null(header);
    memcpy(header, opening, sizeof opening - 1);
    memset(header + sizeof opening - 1, '[', DEPTH);
    struct catalog *catalog = catalog_create();
    assert_non_null(catalog);
    assert_status(RAFFIA_ERROR_FORMAT, parse(header, sizeof opening - 1 + DEPTH, 0, catalog));
    assert_error_mentions("depth");
    catalog_close(catalog);
    free(header);
}

/* Sanitizers make it ten times as slow and large; they see the same code with fewer. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(SANITIZED)
#define MANY_TENSORS 50000
#else
#define MANY_TENSORS 200000
#endif

static void tensors_by_the_hundred_thousand_are_parsed(void **state)
{
    (void)state;
    enum { LINE_MAX_BYTES = 100 };
    char *header = malloc((size_t)MANY_TENSORS * LINE_MAX_BYTES);
    assert_non_null(header);
    size_t bytes = 0;
    /* Neither in order of name nor of place. */
    for (size_t i = 0; i < MANY_TENSORS; i++) {
        size_t place = i * 7919 % MANY_TENSORS;
        bytes += (size_t)sprintf(
            header + bytes,
            "%c\"layer.%zu.weight\":{\"dtype\":\"U8\",\"shape\":[2,1],\"data_offsets\":[%zu,%zu]}",
            i ? ',' : '{', place ^ 1, place * 2, place * 2 + 2);
    }
    header[bytes++] = '}';
    assert_in_range(bytes, 1, CATALOG_HEADER_BYTES_MAX);
    struct catalog *catalog = catalog_create();
    assert_non_null(catalog);
    assert_ok(parse(header, bytes, (uint64_t)MANY_TENSORS * 2, catalog));
    assert_ok(catalog_arrange(catalog));
    assert_int_equal(catalog->tensor_count, MANY_TENSORS);
    const char *broken = catalog_broken_promise(catalog, bytes + MANY_TENSORS * 2 + 8);
    assert_null(broken);
    catalog_close(catalog);
    free(header);
}

#define RANDOM_TENSORS_MAX 40

struct random_tensor {
    raffia_dtype dtype;
    unsigned rank;
    uint64_t shape[3];
    uint64_t begin, end;
};

static void make_random_tensor(struct test_random *random, struct random_tensor *tensor,
                               uint64_t begin)
{
    uint64_t bits;
    do {
        tensor->dtype = (raffia_dtype)(1 + test_random_below(random, RAFFIA_DTYPE_COUNT - 1));
        tensor->rank = (unsigned)test_random_below(random, 4);
        bits = raffia_dtype_bits(tensor->dtype);
        for (unsigned i = 0; i < tensor->rank; i++)
            bits *= tensor->shape[i] = test_random_below(random, 6);
    } while (bits % 8);
    tensor->begin = begin;
    tensor->end = begin + bits / 8;
}

/* Tensor number i is named "t<i>". */
static size_t write_random_header(const struct random_tensor *tensors, size_t count, size_t first,
                                  char *header)
{
    size_t bytes = (size_t)sprintf(header, "{");
    for (size_t k = 0; k < count; k++) {
        size_t i = (k + first) % count;
        const struct random_tensor *tensor = &tensors[i];
        bytes += (size_t)sprintf(header + bytes, "%s\"t%zu\":{\"dtype\":\"%s\",\"shape\":[",
                                 k ? "," : "", i, raffia_dtype_name(tensor->dtype));
        for (unsigned d = 0; d < tensor->rank; d++)
            bytes += (size_t)sprintf(header + bytes, "%s%llu", d ? "," : "",
                                     (unsigned long long)tensor->shape[d]);
        bytes +=
            (size_t)sprintf(header + bytes, "],\"data_offsets\":[%llu,%llu]}",
                            (unsigned long long)tensor->begin, (unsigned long long)tensor->end);
    }
    return bytes + (size_t)sprintf(header + bytes, "}");
}

static void check_random_tensor(const struct catalog_tensor *tensor,
                                const struct random_tensor *model, size_t header_bytes)
{
    assert_int_equal(tensor->dtype, model->dtype);
    assert_int_equal(tensor->rank, model->rank);
    for (unsigned i = 0; i < model->rank; i++)
        assert_int_equal(tensor->shape[i], model->shape[i]);
    assert_int_equal(tensor->offset, SAFETENSORS_LENGTH_BYTES + header_bytes + model->begin);
    assert_int_equal(tensor->bytes, model->end - model->begin);
}

static void random_headers_are_read_back_and_one_shift_is_noticed(void **state)
{
    (void)state;
    enum { ROUNDS = 300 };
    struct test_random random =
        test_random_seeded("random_headers_are_read_back_and_one_shift_is_noticed");
    static char header[RANDOM_TENSORS_MAX * 200];
    for (int round = 0; round < ROUNDS; round++) {
        struct random_tensor tensors[RANDOM_TENSORS_MAX];
        size_t count = 1 + test_random_below(&random, RANDOM_TENSORS_MAX);
        for (size_t i = 0; i < count; i++)
            make_random_tensor(&random, &tensors[i], i ? tensors[i - 1].end : 0);
        uint64_t data_bytes = tensors[count - 1].end;
        size_t bytes =
            write_random_header(tensors, count, test_random_below(&random, count), header);

        struct catalog *catalog = catalog_create();
        assert_non_null(catalog);
        assert_ok(parse(header, bytes, data_bytes, catalog));
        assert_ok(catalog_arrange(catalog));
        assert_int_equal(catalog->tensor_count, count);
        for (size_t i = 0; i < count; i++)
            check_random_tensor(&catalog->tensors[i],
                                &tensors[strtoul(catalog->tensors[i].name + 1, NULL, 10)], bytes);

        /* Move one tensor that has bytes, or change one end of it. */
        struct random_tensor *victim = &tensors[test_random_below(&random, count)];
        if (victim->begin < victim->end) {
            size_t how = test_random_below(&random, 3);
            victim->begin += how != 1;
            victim->end += how != 0;
            bytes = write_random_header(tensors, count, 0, header);
            assert_status(RAFFIA_ERROR_FORMAT, parse(header, bytes, data_bytes, catalog));
            assert_int_equal(catalog->tensor_count, count); /* as it was */
        }
        catalog_close(catalog);
    }
}

static raffia_status open_two_tensors(void *context)
{
    struct catalog *catalog = NULL;
    raffia_status status = catalog_open(context, NULL, &catalog);
    if (status) {
        assert_null(catalog);
        return status;
    }
    assert_int_equal(catalog->tensor_count, 2);
    assert_null(catalog_broken_promise(catalog, 0));
    catalog_close(catalog);
    return RAFFIA_OK;
}

static void any_call_may_fail_while_a_file_is_opened(void **state)
{
    (void)state;
    struct test_path path = test_path_in(&directory, "two");
    test_safetensors_write(path.text, two_tensors, 13);
    assert_in_range(fault_loop(open_two_tensors, path.text, 1000), 8, 1000);
}

static int write_corpus(const char *corpus)
{
    for (size_t i = 0; i < safetensors_case_count; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", corpus, safetensors_cases[i].name);
        size_t bytes;
        unsigned char *image = safetensors_case_image(&safetensors_cases[i], &bytes);
        test_file_write(path, image, bytes);
        free(image);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--corpus") == 0)
        return write_corpus(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_is_enforced),
        cmocka_unit_test(a_catalog_holds_what_the_header_says),
        cmocka_unit_test(lenient_accepts_trailing_bytes_with_a_warning),
        cmocka_unit_test(headers_are_limited),
        cmocka_unit_test(the_format_itself_limits_headers),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(tensors_by_the_hundred_thousand_are_parsed),
        cmocka_unit_test(random_headers_are_read_back_and_one_shift_is_noticed),
        cmocka_unit_test(any_call_may_fail_while_a_file_is_opened),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
