#include "resource/umd_fixture.h"

#include "support/cmocka.h"
#include "support/log_capture.h"

#include <raffia/config.h>

#include <stdlib.h>

int set_up_umd(void **state)
{
    (void)state;
    size_t count;
    const raffia_setting *settings = raffia_config_settings(&count);
    for (size_t i = 0; i < count; i++) {
        unsetenv(settings[i].environment);
        assert_ok(raffia_config_set(settings[i].name, NULL));
    }
    sim_reset();
    assert_ok(raffia_config_set("driver", "sim"));
    log_capture_start(); /* warnings of fallbacks are wanted here */
    return 0;
}

int tear_down_umd(void **state)
{
    (void)state;
    log_capture_stop();
    struct sim_usage usage;
    for (int device = 0; device < 2; device++) {
        sim_query(device, &usage);
        assert_string_equal(usage.first_misuse, "");
    }
    assert_true(sim_is_idle());
    return 0;
}

PoolStatus status_of(int device_id)
{
    PoolStatus status;
    assert_int_equal(umd_huge_page_pool_query(device_id, &status), 0);
    assert_int_equal(status.device_id, device_id);
    return status;
}

void must_init(int device_id, size_t bytes)
{
    assert_ok((raffia_status)umd_huge_page_pool_init(device_id, bytes));
}

void must_destroy(int device_id)
{
    assert_ok((raffia_status)umd_huge_page_pool_destroy(device_id));
}

void *must_get(int device_id, size_t bytes, size_t align)
{
    char *address = umd_huge_page_alloc(device_id, bytes, align);
    if (!address)
        fail_msg("no %zu bytes: %s", bytes, raffia_last_error());
    assert_int_equal((uintptr_t)address & ((align ? align : PAGE) - 1), 0);
    address[0] = 1;
    address[bytes - 1] = 2;
    return address;
}

void must_give(int device_id, void *address)
{
    assert_ok((raffia_status)umd_huge_page_free(device_id, address));
}

bool is_in_pool(int device_id, const void *address)
{
    const PoolStatus status = status_of(device_id);
    const uint64_t at = (uintptr_t)address;
    return at >= status.gpu_addr && at - status.gpu_addr < status.total_size;
}

void refused(raffia_status expected, int device_id, size_t bytes, size_t align)
{
    assert_null(umd_huge_page_alloc(device_id, bytes, align));
    if (raffia_last_status() != expected)
        fail_msg("%s instead of %s: %s", raffia_status_name(raffia_last_status()),
                 raffia_status_name(expected), raffia_last_error());
}
