/* The simulated device: ranges, chunks, pages and blocks. */
#include "driver/sim_test.h"

#include <stdlib.h>
#include <unistd.h>

static const struct driver *const d = &sim_driver;

static void without_any_call_there_are_two_devices(void **state)
{
    (void)state;
    int count = 0;
    raffia_device_info info;
    assert_ok(d->devices(&count));
    assert_int_equal(count, 2);
    assert_ok(d->device_info(1, &info));
    assert_string_equal(info.name, "sim:1");
    assert_int_equal(info.total_bytes, GIB);
    assert_int_equal(info.free_bytes, GIB);
    assert_int_equal(info.page_count, 2);
    assert_int_equal(info.pages[0].size, 2 * MIB);
    assert_int_equal(info.pages[1].size, 4 * KIB);
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->device_info(2, &info));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, d->device_info(-1, &info));
    assert_ok(sim_set_devices(0));
    assert_ok(d->devices(&count));
    assert_int_equal(count, 0);
}

static void configurations_are_checked(void **state)
{
    (void)state;
    struct sim_config config = {.page_count = 1, .pages = {{RAFFIA_PAGE_DEVICE, 3 * MIB}}};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, sim_configure(0, &config));
    config.pages[0].size = KIB;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, sim_configure(0, &config));
    config.page_count = 2;
    config.pages[0] = (raffia_page_offer){RAFFIA_PAGE_REGULAR, 4 * KIB};
    config.pages[1] = (raffia_page_offer){RAFFIA_PAGE_DEVICE, 2 * MIB};
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, sim_configure(0, &config));
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, sim_configure(SIM_DEVICES_MAX, NULL));
    assert_ok(sim_configure(SIM_DEVICES_MAX - 1, NULL));
    int count;
    assert_ok(d->devices(&count));
    assert_int_equal(count, SIM_DEVICES_MAX);
}

static void a_device_in_use_keeps_its_shape(void **state)
{
    (void)state;
    char *base = sim_test_reserve(0, 2 * MIB);
    struct sim_config config = {.synchronous = true};
    assert_status(RAFFIA_ERROR_BUSY, sim_configure(0, &config));
    config = (struct sim_config){.capacity_bytes = 2 * MIB};
    assert_ok(sim_configure(0, &config));
    raffia_device_info info;
    assert_ok(d->device_info(0, &info));
    assert_int_equal(info.total_bytes, 2 * MIB);
    assert_true(info.asynchronous);
    assert_ok(d->range_release(0, base, 2 * MIB));
}

static void the_capacity_is_shared_by_chunks_and_blocks(void **state)
{
    (void)state;
    const struct sim_config config = {.capacity_bytes = 5 * MIB};
    assert_ok(sim_configure(0, &config));
    struct driver_chunk_spec spec = sim_test_device_spec(4 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec), second = NULL;
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, d->chunk_create(0, &spec, &second, &reason));
    assert_int_equal(reason, RAFFIA_REASON_MEMORY);
    assert_error_mentions("1 MiB of 5 MiB are free");
    void *block, *other;
    assert_ok(d->mem_alloc(0, MIB, &block));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, d->mem_alloc(0, 1, &other));
    raffia_device_info info;
    assert_ok(d->device_info(0, &info));
    assert_int_equal(info.free_bytes, 0);
    assert_ok(d->mem_free(0, block, MIB));
    assert_ok(d->mem_alloc(0, 1, &other));
    assert_ok(d->mem_free(0, other, 1));
    assert_ok(d->chunk_destroy(0, chunk));
    assert_int_equal(sim_calls("chunk_create"), 2);
    assert_int_equal(sim_calls("mem_alloc"), 3);
    assert_int_equal(sim_calls("no such verb"), -1);
}

static void usage_counts_what_exists(void **state)
{
    (void)state;
    char *base = sim_test_reserve(0, 8 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    spec.remappable = true;
    driver_chunk chunk = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    sim_test_map(0, chunk, base + 4 * MIB);
    struct sim_usage usage = sim_test_usage(0);
    assert_int_equal(usage.ranges, 1);
    assert_int_equal(usage.range_bytes, 8 * MIB);
    assert_int_equal(usage.chunks, 1);
    assert_int_equal(usage.chunk_bytes, 2 * MIB);
    assert_int_equal(usage.mappings, 2);
    assert_int_equal(usage.mapped_bytes, 4 * MIB);
    assert_false(sim_is_idle());
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_ok(d->chunk_unmap(0, chunk, base + 4 * MIB));
    assert_ok(d->chunk_destroy(0, chunk));
    assert_ok(d->range_release(0, base, 8 * MIB));
    assert_true(sim_is_idle());
    assert_int_equal(sim_test_usage(0).chunk_bytes, 0);
}

static void bases_are_misaligned_as_often_as_asked(void **state)
{
    (void)state;
    const struct sim_config config = {.misaligned_bases = 2};
    assert_ok(sim_configure(0, &config));
    for (int i = 0; i < 4; i++) {
        void *base;
        assert_ok(d->range_reserve(0, 4 * MIB, 2 * MIB, &base));
        assert_int_equal((uintptr_t)base % (2 * MIB), i < 2 ? SIM_BASE_PAGE : 0);
        assert_ok(d->range_release(0, base, 4 * MIB));
    }
}

static void smaller_pages_are_delivered_and_admitted(void **state)
{
    (void)state;
    const struct sim_config config = {.smaller_pages = 1};
    assert_ok(sim_configure(0, &config));
    char *base = sim_test_reserve(0, 4 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk small = sim_test_create(0, &spec), right = sim_test_create(0, &spec);
    sim_test_map(0, small, base);
    sim_test_map(0, right, base + 2 * MIB);
    struct driver_page_evidence evidence;
    assert_ok(d->page_size_of(0, base, 4 * MIB, spec.kind, 2 * MIB, &evidence));
    assert_true(evidence.verified);
    assert_int_equal(evidence.smallest, SIM_BASE_PAGE);
    assert_int_equal(evidence.conforming, 2 * MIB);
    assert_ok(d->page_size_of(0, base + 2 * MIB, 2 * MIB, spec.kind, 2 * MIB, &evidence));
    assert_int_equal(evidence.smallest, 2 * MIB);
    assert_ok(d->chunk_unmap(0, small, base));
    assert_ok(d->chunk_unmap(0, right, base + 2 * MIB));
    assert_ok(d->chunk_destroy(0, small));
    assert_ok(d->chunk_destroy(0, right));
    assert_ok(d->range_release(0, base, 4 * MIB));
}

static void transparent_pages_can_be_split_later(void **state)
{
    (void)state;
    const struct sim_config config = {
        .page_count = 2,
        .pages = {{RAFFIA_PAGE_HUGETLB, 2 * MIB}, {RAFFIA_PAGE_TRANSPARENT, 2 * MIB}}};
    assert_ok(sim_configure(0, &config));
    char *base = sim_test_reserve(0, 10 * MIB);
    struct driver_chunk_spec spec = sim_test_spec(RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 8 * MIB);
    struct driver_chunk_spec fixed = sim_test_spec(RAFFIA_PAGE_HUGETLB, 2 * MIB, 2 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec), solid = sim_test_create(0, &fixed);
    sim_test_map(0, chunk, base);
    sim_test_map(0, solid, base + 8 * MIB);
    /* Touches the second and the third of four pages. */
    assert_ok(sim_split(0, base + 4 * MIB - 1, 2));
    assert_status(RAFFIA_ERROR_NOT_FOUND, sim_split(0, base + 8 * MIB, MIB));
    struct driver_page_evidence evidence;
    assert_ok(d->page_size_of(0, base, 10 * MIB, spec.kind, 2 * MIB, &evidence));
    assert_int_equal(evidence.smallest, SIM_BASE_PAGE);
    assert_int_equal(evidence.conforming, 6 * MIB);
    assert_ok(d->page_size_of(0, base, 2 * MIB, spec.kind, 2 * MIB, &evidence));
    assert_int_equal(evidence.smallest, 2 * MIB);
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_ok(d->chunk_unmap(0, solid, base + 8 * MIB));
    assert_ok(d->chunk_destroy(0, chunk));
    assert_ok(d->chunk_destroy(0, solid));
    assert_ok(d->range_release(0, base, 10 * MIB));
}

static void kinds_of_pages_run_out_for_their_reason(void **state)
{
    (void)state;
    const struct sim_config config = {
        .commits_at_map = true,
        .page_count = 2,
        .pages = {{RAFFIA_PAGE_HUGETLB, GIB}, {RAFFIA_PAGE_HUGETLB, 2 * MIB}},
        .limits = {{RAFFIA_PAGE_HUGETLB, GIB, 0, RAFFIA_REASON_DISABLED},
                   {RAFFIA_PAGE_HUGETLB, 2 * MIB, 6 * MIB, RAFFIA_REASON_POOL_EMPTY}}};
    assert_ok(sim_configure(0, &config));
    void *base;
    assert_ok(d->range_reserve(0, GIB, GIB, &base));
    raffia_fallback_reason reason = RAFFIA_REASON_NONE;
    struct driver_chunk_spec spec = sim_test_spec(RAFFIA_PAGE_HUGETLB, GIB, GIB);
    driver_chunk chunk = sim_test_create(0, &spec);
    assert_status(RAFFIA_ERROR_UNSUPPORTED, d->chunk_map(0, chunk, base, &reason));
    assert_int_equal(reason, RAFFIA_REASON_DISABLED);
    assert_ok(d->chunk_destroy(0, chunk));

    spec = sim_test_spec(RAFFIA_PAGE_HUGETLB, 2 * MIB, 4 * MIB);
    driver_chunk first = sim_test_create(0, &spec), second = sim_test_create(0, &spec);
    assert_int_equal(sim_test_usage(0).chunk_bytes, 0);
    sim_test_map(0, first, base);
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY,
                  d->chunk_map(0, second, (char *)base + 4 * MIB, &reason));
    assert_int_equal(reason, RAFFIA_REASON_POOL_EMPTY);
    assert_int_equal(sim_test_usage(0).mappings, 1);
    /* Room made is room to be had. */
    assert_ok(d->chunk_unmap(0, first, base));
    sim_test_map(0, second, (char *)base + 4 * MIB);
    assert_ok(d->chunk_unmap(0, second, (char *)base + 4 * MIB));
    assert_ok(d->chunk_destroy(0, first));
    assert_ok(d->chunk_destroy(0, second));
    assert_ok(d->range_release(0, base, GIB));

    spec = sim_test_spec(RAFFIA_PAGE_TRANSPARENT, 2 * MIB, 2 * MIB);
    assert_status(RAFFIA_ERROR_UNSUPPORTED, d->chunk_create(0, &spec, &chunk, &reason));
    assert_int_equal(reason, RAFFIA_REASON_UNSUPPORTED);
}

static void content_is_lost_unless_remappable(void **state)
{
    (void)state;
    char *base = sim_test_reserve(0, 2 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    driver_chunk chunk = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    memset(base, 0x31, 2 * MIB);
    assert_ok(d->chunk_unmap(0, chunk, base));
    sim_test_map(0, chunk, base);
    /* Neither kept nor zero. */
    assert_int_equal((unsigned char)base[0], 0xdd);
    assert_int_not_equal(base[MIB], 0x31);
    assert_ok(d->chunk_unmap(0, chunk, base));
    assert_ok(d->chunk_destroy(0, chunk));
    assert_ok(d->range_release(0, base, 2 * MIB));
}

static void many_chunks_cost_no_descriptors(void **state)
{
    enum { COUNT = 3000 };
    (void)state;
    char *base = sim_test_reserve(0, COUNT * SIM_BASE_PAGE);
    struct driver_chunk_spec spec = sim_test_spec(RAFFIA_PAGE_REGULAR, 4 * KIB, 4 * KIB);
    spec.remappable = true;
    driver_chunk *chunks = malloc(COUNT * sizeof *chunks);
    assert_non_null(chunks);
    int before = dup(0);
    for (size_t i = 0; i < COUNT; i++) {
        chunks[i] = sim_test_create(0, &spec);
        sim_test_map(0, chunks[i], base + i * SIM_BASE_PAGE);
        memcpy(base + i * SIM_BASE_PAGE, &i, sizeof i);
    }
    int after = dup(0);
    assert_true(after <= before + 2);
    close(before);
    close(after);
    for (size_t i = 0; i < COUNT; i++) {
        assert_memory_equal(base + i * SIM_BASE_PAGE, &i, sizeof i);
        assert_ok(d->chunk_unmap(0, chunks[i], base + i * SIM_BASE_PAGE));
        assert_ok(d->chunk_destroy(0, chunks[i]));
    }
    free(chunks);
    assert_ok(d->range_release(0, base, COUNT * SIM_BASE_PAGE));
}

static void a_reset_gives_everything_back(void **state)
{
    (void)state;
    char *base = sim_test_reserve(0, 4 * MIB);
    struct driver_chunk_spec spec = sim_test_device_spec(2 * MIB);
    spec.handle = DRIVER_HANDLE_FD;
    driver_chunk chunk = sim_test_create(0, &spec);
    sim_test_map(0, chunk, base);
    void *block;
    assert_ok(d->mem_alloc(1, 5000, &block));
    sim_reset();
    assert_true(sim_is_idle());
    assert_int_equal(sim_calls("chunk_map"), 0);
    assert_misuse(d->chunk_unmap(0, chunk, base), "not a chunk");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SIM_TEST(without_any_call_there_are_two_devices),
        SIM_TEST(configurations_are_checked),
        SIM_TEST(a_device_in_use_keeps_its_shape),
        SIM_TEST(the_capacity_is_shared_by_chunks_and_blocks),
        SIM_TEST(usage_counts_what_exists),
        SIM_TEST(bases_are_misaligned_as_often_as_asked),
        SIM_TEST(smaller_pages_are_delivered_and_admitted),
        SIM_TEST(transparent_pages_can_be_split_later),
        SIM_TEST(kinds_of_pages_run_out_for_their_reason),
        SIM_TEST(content_is_lost_unless_remappable),
        SIM_TEST(many_chunks_cost_no_descriptors),
        SIM_TEST_OF_MISUSE(a_reset_gives_everything_back),
    };
    return cmocka_run_group_tests_name("sim memory", tests, NULL, NULL);
}
