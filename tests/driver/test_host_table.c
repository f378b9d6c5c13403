/* The parts of the host's table that are not about chunks. */
#include "driver/host/host.h"
#include "support/cmocka.h"

#include <string.h>

static const struct driver *driver = &host_driver;

static void every_verb_is_there(void **state)
{
    (void)state;
    /* Behind the name and the capabilities the table holds nothing but function pointers. */
    const unsigned char *table = (const unsigned char *)driver;
    size_t first = offsetof(struct driver, devices);
    assert_int_equal((sizeof *driver - first) % sizeof(void (*)(void)), 0);
    for (size_t at = first; at < sizeof *driver; at += sizeof(void (*)(void))) {
        void (*verb)(void);
        memcpy(&verb, table + at, sizeof verb);
        assert_true(verb != NULL);
    }
    int count = 0;
    assert_ok(driver->devices(&count));
    assert_int_equal(count, 1);
    assert_ok(driver->context_state(0));
    assert_string_equal(driver->name, "host");
}

static void regular_memory_is_aligned(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 255, 257, 4096, (size_t)5 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *address;
        assert_ok(driver->mem_alloc(0, sizes[i], &address));
        assert_int_equal((uintptr_t)address % 256, 0);
        memset(address, 1, sizes[i]);
        assert_ok(driver->mem_free(0, address, sizes[i]));
    }
    void *address = NULL;
    assert_status(RAFFIA_ERROR_INVALID_ARGUMENT, driver->mem_alloc(0, 0, &address));
    assert_status(RAFFIA_ERROR_OUT_OF_MEMORY, driver->mem_alloc(0, SIZE_MAX, &address));
    assert_null(address);
}

static void copies_are_done_on_return(void **state)
{
    (void)state;
    char source[] = "abcdef", destination[8] = "";
    assert_ok(driver->copy(0, NULL, destination, source, sizeof source));
    assert_string_equal(destination, "abcdef");
    assert_ok(driver->copy(0, NULL, NULL, NULL, 0));
    assert_ok(driver->fill(0, NULL, destination + 1, 'x', 2));
    assert_string_equal(destination, "axxdef");
    assert_ok(driver->fill(0, NULL, NULL, 'x', 0));
    struct driver_copy copies[] = {{destination, source + 3, 1}, {destination + 5, source, 1}};
    assert_ok(driver->copy_batch(0, NULL, copies, 2));
    assert_string_equal(destination, "dxxdea");
    assert_ok(driver->copy_batch(0, NULL, NULL, 0));
}

static void the_default_stream_is_always_idle(void **state)
{
    (void)state;
    uint64_t id = 7;
    bool capturing = true;
    assert_ok(driver->stream_id(0, NULL, &id));
    assert_int_equal(id, 0);
    assert_ok(driver->stream_is_capturing(0, NULL, &capturing));
    assert_false(capturing);
    assert_ok(driver->stream_wait(0, NULL));
    assert_ok(driver->device_wait(0));
    assert_ok(driver->stream_retire(0, NULL));
    assert_int_equal(driver->default_stream(0), DRIVER_DEFAULT_STREAM_NONE);
}

static void foreign_streams_are_refused(void **state)
{
    (void)state;
    char memory[2] = "a";
    driver_stream stream = memory;
    uint64_t id = 7;
    bool capturing = true;
    struct driver_copy copy = {memory, memory, 0};
    raffia_status bad = RAFFIA_ERROR_INVALID_ARGUMENT;
    assert_status(bad, driver->copy(0, stream, memory, memory, 1));
    assert_status(bad, driver->copy_batch(0, stream, &copy, 1));
    assert_status(bad, driver->fill(0, stream, memory, 'b', 1));
    assert_status(bad, driver->stream_id(0, stream, &id));
    assert_status(bad, driver->stream_is_capturing(0, stream, &capturing));
    assert_status(bad, driver->stream_wait(0, stream));
    assert_status(bad, driver->stream_retire(0, stream));
    assert_string_equal(memory, "a");
    assert_int_equal(id, 7);
    assert_true(capturing);
}

static void what_the_host_lacks_is_said(void **state)
{
    (void)state;
    raffia_status none = RAFFIA_ERROR_UNSUPPORTED;
    driver_stream stream;
    driver_event event;
    driver_module module;
    driver_function function;
    bool done;
    char memory[1];
    struct driver_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    assert_status(none, driver->stream_create(0, &stream));
    assert_error_mentions("the host driver has no streams");
    assert_status(none, driver->stream_destroy(0, memory));
    assert_status(none, driver->event_create(0, &event));
    assert_status(none, driver->event_destroy(0, NULL));
    assert_status(none, driver->event_record(0, NULL, NULL));
    assert_status(none, driver->event_done(0, NULL, &done));
    assert_status(none, driver->event_wait(0, NULL));
    assert_status(none, driver->stream_wait_event(0, NULL, NULL));
    assert_status(none, driver->host_register(0, memory, 1));
    assert_status(none, driver->host_unregister(0, memory, 1));
    assert_status(none, driver->module_load(0, memory, 1, &module));
    assert_status(none, driver->module_unload(0, NULL));
    assert_status(none, driver->module_function(0, NULL, "f", &function));
    assert_status(none, driver->launch(0, NULL, NULL, &launch));
    assert_int_equal(driver->capabilities & (DRIVER_IS_ASYNCHRONOUS | DRIVER_CAN_REGISTER |
                                             DRIVER_CAN_LAUNCH | DRIVER_HAS_PEERS),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_verb_is_there),
        cmocka_unit_test(regular_memory_is_aligned),
        cmocka_unit_test(copies_are_done_on_return),
        cmocka_unit_test(the_default_stream_is_always_idle),
        cmocka_unit_test(foreign_streams_are_refused),
        cmocka_unit_test(what_the_host_lacks_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
