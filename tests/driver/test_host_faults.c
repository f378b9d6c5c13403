/* Every call of the host driver made to fail once. */
#include "driver/host/facts.h"
#include "driver/host/host.h"
#include "driver/host_piece.h"
#include "support/cmocka.h"
#include "support/fault_loop.h"

#include <string.h>
#include <unistd.h>

static const struct driver *driver = &host_driver;

/* As many calls as the longest scenario makes in the worst case. */
#define CALLS_MAX 500

static raffia_status map_verify_unmap(void *context)
{
    const struct driver_chunk_spec *spec = context;
    struct host_piece piece;
    raffia_status status = host_piece_get(&piece, spec);
    if (status) {
        if (piece.at)
            assert_int_not_equal(piece.reason, RAFFIA_REASON_NONE);
        assert_int_equal(status, raffia_last_status());
        return status;
    }
    piece.at[0] = piece.at[spec->bytes - 1] = 1;
    struct driver_page_evidence evidence;
    status = driver->page_size_of(0, piece.at, spec->bytes, spec->kind, spec->page_size, &evidence);
    assert_int_equal(status, RAFFIA_OK);
    if (evidence.verified)
        assert_int_equal(evidence.conforming, spec->bytes);
    status = driver->set_access(0, piece.at, spec->bytes, 0, true);
    raffia_status put = host_piece_put(&piece);
    return status ? status : put;
}

static void mapping_regular_pages(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 2048);
    spec.numa_node = 0;
    for (int remappable = 0; remappable < 2; remappable++) {
        spec.remappable = remappable;
        assert_true(fault_loop(map_verify_unmap, &spec, CALLS_MAX) > 5);
    }
}

static void mapping_transparent_pages(void **state)
{
    (void)state;
    if (!host_piece_transparent_works())
        skip();
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_TRANSPARENT, 4);
    for (int remappable = 0; remappable < 2; remappable++) {
        spec.remappable = remappable;
        assert_true(fault_loop(map_verify_unmap, &spec, CALLS_MAX) > 5);
    }
}

static raffia_status remap(void *context)
{
    struct driver_chunk_spec *spec = context;
    struct host_piece piece;
    raffia_status status = host_piece_get(&piece, spec);
    if (status)
        return status;
    strcpy((char *)piece.at, "kept");
    void *base;
    status = driver->range_reserve(0, spec->bytes, spec->page_size, &base);
    if (!status) {
        status = driver->chunk_map(0, piece.chunk, base, &piece.reason);
        if (!status) {
            assert_string_equal(base, "kept");
            status = driver->chunk_unmap(0, piece.chunk, base);
            if (status)
                assert_ok(driver->chunk_unmap(0, piece.chunk, base));
        }
        assert_ok(driver->range_release(0, base, spec->bytes));
    }
    assert_string_equal((char *)piece.at, "kept");
    raffia_status put = host_piece_put(&piece);
    return status ? status : put;
}

static void mapping_a_second_time(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 16);
    spec.remappable = true;
    assert_true(fault_loop(remap, &spec, CALLS_MAX) > 5);
}

static raffia_status hand_over(void *context)
{
    struct driver_chunk_spec *spec = context;
    driver_chunk chunk, copy;
    raffia_fallback_reason reason;
    uint64_t handle[DRIVER_HANDLE_WORDS];
    raffia_status status = driver->chunk_create(0, spec, &chunk, &reason);
    if (status)
        return status;
    status = driver->chunk_export(0, chunk, DRIVER_HANDLE_FD, handle);
    if (!status) {
        status = driver->chunk_import(0, DRIVER_HANDLE_FD, handle, spec, &copy);
        if (!status)
            assert_ok(driver->chunk_destroy(0, copy));
        close((int)handle[0]);
    }
    assert_ok(driver->chunk_destroy(0, chunk));
    return status;
}

static void exporting_and_importing(void **state)
{
    (void)state;
    struct driver_chunk_spec spec = host_piece_spec(RAFFIA_PAGE_REGULAR, 16);
    spec.handle = DRIVER_HANDLE_FD;
    assert_true(fault_loop(hand_over, &spec, CALLS_MAX) > 5);
}

static raffia_status allocate(void *context)
{
    (void)context;
    void *address;
    raffia_status status = driver->mem_alloc(0, 100, &address);
    return status ? status : driver->mem_free(0, address, 100);
}

static void allocating_regular_memory(void **state)
{
    (void)state;
    assert_int_equal(fault_loop(allocate, NULL, CALLS_MAX), 1);
}

/* Facts that cannot be read are left out: no failure. */
static raffia_status read_facts(void *context)
{
    static struct host_facts facts;
    (void)context;
    host_facts_read(&facts);
    raffia_device_info info;
    return driver->device_info(0, &info);
}

static void reading_facts(void **state)
{
    (void)state;
    assert_true(fault_loop(read_facts, NULL, 2000) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mapping_regular_pages),     cmocka_unit_test(mapping_transparent_pages),
        cmocka_unit_test(mapping_a_second_time),     cmocka_unit_test(exporting_and_importing),
        cmocka_unit_test(allocating_regular_memory), cmocka_unit_test(reading_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
