/* The staging memory of loads into a device: how much, how it is pinned, how long it stays. */
#include "core/memory.h"
#include "core/sys.h"
#include "device_fixture.h"
#include "support/cmocka.h"
#include "support/process_memory.h"

#include <raffia/config.h>

#include <stdatomic.h>
#include <unistd.h>

/* SPEC L3: what is pinned and what is allocated stay below the budget, whatever the model's size.
 */
static void l3_host_memory_is_bounded_by_the_budget(void **state)
{
    (void)state;
    struct test_path large = test_path_in(&directory, "large.safetensors");
    struct model_file_tensor one = model_file_bytes("one", 40 * MIB);
    model_file_write(large.text, &one, 1, 4096, 0, 0);
    raffia_model *model;
    assert_ok(raffia_model_load(
        large.text, &LOAD_OPTIONS(.device = "sim:0", .budget_bytes = 2 * MIB, .threads = 8),
        &model));
    struct sim_usage usage;
    sim_query(0, &usage);
    assert_int_equal(usage.registered_bytes, 2 * MIB);
    assert_int_equal(raffia_model_report(model)->staging_bytes, 2 * MIB);
    check_tensor(model, "one", one.offset, one.bytes);
    raffia_model_release(model);
    unlink(large.text);
}

/* The sim's chunks are memory files, and so not among what is counted. */
static _Atomic size_t most_memory;
static atomic_uint reads_seen;

static int note_memory(int fd, off_t offset, size_t *bytes)
{
    (void)fd, (void)offset, (void)bytes;
    if (atomic_fetch_add(&reads_seen, 1) % 8 == 0) {
        size_t now = process_memory("RssAnon");
        if (now > atomic_load(&most_memory))
            atomic_store(&most_memory, now);
    }
    return 0;
}

/* The same as the kernel counts it, with room for the stacks of threads and the heap. */
static void l3_the_process_grows_by_no_more_than_the_budget_and_a_little(void **state)
{
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* their own memory grows */
#endif
    struct test_path large = test_path_in(&directory, "large.safetensors");
    struct model_file_tensor one = model_file_bytes("one", 112 * MIB);
    model_file_write(large.text, &one, 1, 4096, 0, 0);
    raffia_model *model;
    size_t before = process_memory("RssAnon");
    atomic_store(&most_memory, 0);
    sys_set_read_hook(note_memory);
    raffia_status status = raffia_model_load(
        large.text, &LOAD_OPTIONS(.device = "sim:0", .budget_bytes = 8 * MIB, .threads = 4),
        &model);
    sys_set_read_hook(NULL);
    unlink(large.text);
    assert_ok(status);
    assert_true(atomic_load(&reads_seen) > 50);
    assert_true(atomic_load(&most_memory) > 0);
    assert_true(atomic_load(&most_memory) < before + 8 * MIB + 64 * MIB);
    raffia_model_release(model);
}

static void the_slot_size_is_a_setting(void **state)
{
    (void)state;
    raffia_model *model;
    assert_ok(raffia_config_set("load_slot", "128KiB"));
    const raffia_load_report *report = load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    assert_int_equal(report->slot_bytes, 128 * KIB);
    assert_int_equal(report->slots, 8);
    raffia_model_release(model);
    assert_ok(raffia_config_set("load_slot", NULL));
}

static void the_ring_is_kept_from_load_to_load(void **state)
{
    (void)state;
    raffia_model *model;
    const raffia_load_report *report = load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    assert_true(report->ring_seconds > 0);
    raffia_model_release(model);
    long registered = sim_calls("host_register");
    report = load_and_check(&LOAD_OPTIONS(.device = "sim:0"), &model);
    assert_true(report->ring_seconds == 0);
    assert_int_equal(sim_calls("host_register"), registered);
    raffia_model_release(model);
    raffia_load_release_staging();
    assert_true(sim_is_idle());
}

static void a_thousand_loads_leave_nothing(void **state)
{
    (void)state;
    raffia_model *model;
    raffia_load_options options =
        LOAD_OPTIONS(.device = "sim:0", .threads = 2, .budget_bytes = 256 * KIB);
    long live = core_memory_live();
    for (int i = 0; i < 1000; i++) {
        assert_ok(raffia_model_load(path.text, &options, &model));
        if (i % 100 == 0)
            check_all(model);
        raffia_model_release(model);
        if (i % 300 == 299)
            raffia_load_release_staging();
    }
    raffia_load_release_staging();
    assert_true(sim_is_idle());
    assert_int_equal(core_memory_live(), live);
}

/* SPEC L4. */
static void l4_a_load_works_however_its_ring_is_pinned(void **state)
{
    (void)state;
    static const struct {
        struct sim_config config;
        const char *pinned;
    } ways[] = {
        {{.cpu_inaccessible = true}, "registered"},
        {{.cpu_inaccessible = true, .register_bytes_max = 2 * MIB}, "registered in smaller pieces"},
        {{.cpu_inaccessible = true, .register_bytes_max = 1}, "allocated by the driver"},
        {{.cpu_inaccessible = true, .register_bytes_max = 1, .refuses_host_alloc = true},
         "pageable"},
    };
    struct test_path large = test_path_in(&directory, "large.safetensors");
    struct model_file_tensor one = model_file_bytes("one", 7 * MIB);
    model_file_write(large.text, &one, 1, 4096, 0, 0);
    for (size_t i = 0; i < 4; i++) {
        raffia_load_release_staging();
        assert_ok(sim_configure(0, &ways[i].config));
        raffia_model *model;
        /* Slots of 4 MiB lie across two of the smaller pieces; a copy must not. */
        assert_ok(raffia_model_load(
            large.text, &LOAD_OPTIONS(.device = "sim:0", .threads = 3, .budget_bytes = 8 * MIB),
            &model));
        assert_string_equal(raffia_model_report(model)->pinned, ways[i].pinned);
        assert_int_equal(raffia_model_report(model)->slot_bytes, 4 * MIB);
        check_tensor(model, "one", one.offset, one.bytes);
        raffia_model_release(model);
    }
    unlink(large.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(l3_host_memory_is_bounded_by_the_budget),
        TEST(l3_the_process_grows_by_no_more_than_the_budget_and_a_little),
        TEST(the_slot_size_is_a_setting),
        TEST(the_ring_is_kept_from_load_to_load),
        TEST(a_thousand_loads_leave_nothing),
        TEST(l4_a_load_works_however_its_ring_is_pinned),
    };
    return cmocka_run_group_tests_name("rings of loads", tests, make_directory, remove_directory);
}
