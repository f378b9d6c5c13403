/*
 * What every driver must do, whatever its device: a suite driven through driver.h alone.
 */
#ifndef TESTS_DRIVER_CONFORMANCE_H
#define TESTS_DRIVER_CONFORMANCE_H

#include "driver/driver.h"

/* The device under test, and what the suite cannot find out by itself. */
struct conformance {
    struct driver_device device;
    bool has_fault_points;       /* the driver's calls can be failed by core/fault.h */
    bool streams_ignore_default; /* those of stream_create() do not wait for the default stream */
};

/* Runs the suite; `name` heads its report. Returns the number of tests that failed. Kinds of pages
 * that the machine cannot give now are passed over, with a line that says so. */
int conformance_run(const char *name, const struct conformance *subject);

/* ---- for the parts of the suite ---------------------------------------------------------------*/

/* The tests get this as their state. */
struct subject {
    struct driver_device device;
    const struct driver *driver; /* of the device */
    int index;                   /* of the device */
    bool has_fault_points;
    bool streams_ignore_default;
    raffia_device_info info;
};

/* Whether the driver has the capability, and this device of it does not lack it. */
bool subject_can(const struct subject *s, enum driver_capability capability);

/* A pool of the driver's that keeps all; false, and none, where the device has none. */
bool subject_make_pool(const struct subject *s, driver_pool *pool_p);

/* A chunk of `pages` pages of the kind, without the extras. */
struct driver_chunk_spec subject_spec(const raffia_page_offer *offer, size_t pages);

/* The kind of page the other tests use: the first that can be had now, and is not wastefully
 * large. */
const raffia_page_offer *subject_usual_pages(const struct subject *s);

/* Creates a chunk and maps it; on failure nothing is left. */
raffia_status subject_place(const struct subject *s, const struct driver_chunk_spec *spec, void *at,
                            driver_chunk *chunk_p, raffia_fallback_reason *reason);

/* Unmaps and destroys it. */
void subject_take_away(const struct subject *s, driver_chunk chunk, void *at);

/* Device memory by the CPU where it may, else by copies; done on return. */
void subject_write(const struct subject *s, void *at, const void *bytes, size_t count);
void subject_read(const struct subject *s, const void *at, void *bytes, size_t count);
void subject_fill(const struct subject *s, void *at, unsigned char value, size_t count);

/* Fails the test unless all bytes have the value. */
void subject_expect(const struct subject *s, const void *at, unsigned char value, size_t count);

/* The parts: each adds nothing but test functions. */
void device_describes_itself(void **state);
void ranges_are_aligned_as_asked(void **state);
void every_kind_of_page_that_can_be_had_lives_its_life(void **state);
void refused_specs_leave_nothing(void **state);
void a_failed_map_leaves_the_range_usable(void **state);
void chunks_share_one_range(void **state);
void a_remapped_chunk_keeps_its_content(void **state);
void an_alias_shows_the_same_bytes(void **state);
void an_imported_chunk_is_the_exported_one(void **state);
void a_chunk_may_fail_at_every_call_of_its_life(void **state);
void regular_memory_of_any_size_is_aligned(void **state);
void regular_memory_that_nobody_has_is_refused(void **state);
void regular_memory_may_fail_at_every_call(void **state);
void copies_move_exactly_what_was_asked(void **state);
void memory_is_told_apart_for_code_that_touches_it(void **state);
void host_memory_is_registered_and_unregistered(void **state);
void host_memory_of_the_driver_can_be_copied(void **state);
void pools_give_memory_in_the_order_of_streams(void **state);
void pools_use_freed_memory_again(void **state);
void pools_may_fail_at_every_call(void **state);
void missing_verbs_say_so(void **state);
void stream_ids_are_never_given_twice(void **state);
void events_order_streams(void **state);
void the_default_stream_works(void **state);
void order_may_fail_at_every_call(void **state);
void a_forked_child_is_told_the_truth(void **state);

#endif
