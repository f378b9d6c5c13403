/*
 * Resource limits of the process, from nothing to enough, in small steps: each load and each pool
 * either works or says what it lacks, and what failed leaves nothing behind.
 */
#include "child.h"
#include "models.h"
#include "support/cmocka.h"

#include <raffia/log.h>

#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SHARDS = 4, DESCRIPTORS = 16, SPACE_STEPS = 16, COME_TRUE = 42 };

static struct test_directory directory;
static struct life_model model;
static struct test_path sharded;

static void write_shards(void)
{
    char index[600] = "{\"weight_map\":{";
    for (int i = 0; i < SHARDS; i++) {
        char name[64], header[128];
        snprintf(name, sizeof name, "model-%d.safetensors", i);
        snprintf(header, sizeof header,
                 "{\"t%d\":{\"dtype\":\"U8\",\"shape\":[100000],\"data_offsets\":[0,100000]}}", i);
        test_safetensors_write(test_path_in(&directory, name).text, header, 100000);
        const size_t length = strlen(index);
        snprintf(index + length, sizeof index - length, "%s\"t%d\":\"%s\"", i ? "," : "", i, name);
    }
    strcat(index, "}}");
    sharded = test_path_in(&directory, "model.safetensors.index.json");
    test_file_write(sharded.text, index, strlen(index));
}

static size_t open_files(void)
{
    DIR *listing = opendir("/proc/self/fd");
    size_t count = 0;
    while (listing && readdir(listing))
        count++;
    if (listing)
        closedir(listing);
    return count;
}

/* The number of bytes that are addressed now. */
static size_t address_bytes(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%zu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static bool is_a_shortage(raffia_status status)
{
    return status == RAFFIA_ERROR_OUT_OF_MEMORY || status == RAFFIA_ERROR_OUT_OF_HOST_MEMORY ||
           status == RAFFIA_ERROR_LIMIT;
}

/* One way of using the library; both succeed or fail for want of something. */
typedef raffia_status (*life_use)(void);

static raffia_status load_shards(void)
{
    raffia_model *loaded = NULL;
    raffia_status status = raffia_model_load(
        sharded.text, &LOAD_OPTIONS(.reader = RAFFIA_READER_DIRECT, .threads = 2), &loaded);
    for (size_t i = 0; !status && i < SHARDS; i++) {
        const raffia_tensor *tensor = raffia_model_tensor_at(loaded, i);
        for (size_t at = 0; at < tensor->bytes; at += 99)
            if (((unsigned char *)tensor->data)[at] != test_pattern(at))
                status = RAFFIA_ERROR_MISMATCH;
    }
    raffia_model_release(loaded);
    return status;
}

static raffia_status load_into_huge_pages(void)
{
    return life_load_once(&model, &LOAD_OPTIONS(.pages = RAFFIA_PAGES_TRY, .threads = 2));
}

static raffia_status use_shareable_chunks(void)
{
    raffia_pool *pool;
    void *block;
    raffia_status status = raffia_pool_create(
        &POOL_OPTIONS(.pages = RAFFIA_PAGES_OFF, .initial_bytes = MIB, .maximum_bytes = 8 * MIB,
                      .chunk_bytes = MIB, .flags = RAFFIA_POOL_SHAREABLE),
        &pool);
    if (status)
        return status;
    status = raffia_pool_alloc(pool, 4 * MIB, 0, &block);
    if (!status) {
        memset(block, 1, 4 * MIB);
        status = raffia_pool_free(pool, block);
    }
    if (raffia_pool_check(pool))
        status = RAFFIA_ERROR_CORRUPT;
    raffia_pool_release(pool);
    return status;
}

struct limited {
    life_use use;
    __rlimit_resource_t resource;
    rlim_t limit;
};

static int set_limit(const struct limited *limited, rlim_t soft)
{
    struct rlimit limits;
    EXPECT(getrlimit(limited->resource, &limits) == 0);
    limits.rlim_cur = soft;
    EXPECT(setrlimit(limited->resource, &limits) == 0);
    return 0;
}

/* Runs in a child. COME_TRUE if it worked under the limit, 0 if it was refused as it should be. */
static int use_within_a_limit(void *context)
{
    const struct limited *limited = context;
    struct rlimit before;
    EXPECT(getrlimit(limited->resource, &before) == 0);
    const size_t files = open_files();
    const rlim_t base = limited->resource == RLIMIT_AS ? address_bytes() : 0;
    EXPECT(!set_limit(limited, base + limited->limit));
    const raffia_status status = limited->use();
    EXPECT(!set_limit(limited, before.rlim_cur));
    if (status && !is_a_shortage(status)) {
        fprintf(stderr, "limit %lu: %s\n", (unsigned long)limited->limit,
                raffia_status_name(status));
        EXPECT(is_a_shortage(status));
    }
    EXPECT(!status || (raffia_last_status() == status && *raffia_last_error()));
    EXPECT(open_files() == files);
    EXPECT(limited->use() == RAFFIA_OK);
    return status ? 0 : COME_TRUE;
}

/* Raises the limit step by step. It must refuse at first and work at last. */
static void sweep(life_use use, __rlimit_resource_t resource, rlim_t first, rlim_t step, int steps)
{
    int refused = 0, worked = 0, last = 0;
    for (int i = 0; i < steps; i++) {
        struct limited limited = {use, resource, first + step * (rlim_t)i};
        last = child_run(use_within_a_limit, &limited);
        if (last != 0 && last != COME_TRUE)
            fail_msg("with a limit of %lu the child ended with %d", (unsigned long)limited.limit,
                     last);
        refused += last == 0;
        worked += last == COME_TRUE;
    }
    assert_int_equal(last, COME_TRUE);
    assert_true(refused > 0 && worked > 0);
}

static void few_descriptors_are_a_clean_error(void **state)
{
    (void)state;
    sweep(load_shards, RLIMIT_NOFILE, 0, 1, DESCRIPTORS);
    sweep(load_into_huge_pages, RLIMIT_NOFILE, 0, 1, DESCRIPTORS);
    sweep(use_shareable_chunks, RLIMIT_NOFILE, 0, 1, DESCRIPTORS);
}

/* Sanitizers address terabytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static void little_address_space_is_a_clean_error(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    sweep(load_shards, RLIMIT_AS, 0, MIB, SPACE_STEPS);
    sweep(load_into_huge_pages, RLIMIT_AS, 0, 2 * MIB, SPACE_STEPS);
    sweep(use_shareable_chunks, RLIMIT_AS, 0, MIB, SPACE_STEPS);
}

/* A limit on files sends a signal to those who exceed it, and memory files are files. */
static void a_limit_on_files_raises_no_signal(void **state)
{
    (void)state;
    sweep(use_shareable_chunks, RLIMIT_FSIZE, 0, 512 * KIB, 4);
}

static int make_models(void **state)
{
    (void)state;
    raffia_log_set_level(RAFFIA_LOG_OFF);
    test_directory_make(&directory);
    life_model_make(&model, &directory, "model", 3 * MIB, 5);
    write_shards();
    return 0;
}

static int remove_models(void **state)
{
    (void)state;
    test_directory_remove(&directory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_descriptors_are_a_clean_error),
        cmocka_unit_test(little_address_space_is_a_clean_error),
        cmocka_unit_test(a_limit_on_files_raises_no_signal),
    };
    return cmocka_run_group_tests_name("life limits", tests, make_models, remove_models);
}
