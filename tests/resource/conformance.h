/*
 * SPEC A10 and A11: one suite over every resource of makers.h, on devices of any kind.
 */
#ifndef TESTS_RESOURCE_CONFORMANCE_H
#define TESTS_RESOURCE_CONFORMANCE_H

#include "driver/driver.h"
#include "resource/makers.h"

/* A device to run it on. */
struct conformance_device {
    const char *name;
    bool hidden; /* the CPU cannot touch its memory */
    /* Makes it ready before each test. NULL: it always is. */
    void (*set_up)(void);
    /* Says how it was misused since then; "" if it was not. NULL: it cannot tell. */
    const char *(*misuse)(void);
};

/* Runs the suite; `name` heads its report. Returns the number of tests that failed. */
int conformance_run(const char *name, const struct conformance_device *devices, size_t count);

/* ---- for the parts of the suite ---------------------------------------------------------------*/

/* One maker on one device: the state of every test. */
struct subject {
    const struct maker *maker;
    const struct conformance_device *device;
    const struct driver *driver; /* of the device */
    int index;                   /* of the device */
    bool cpu_sees;               /* the CPU may touch the blocks */
    raffia_resource *resource;   /* during a test */
    raffia_resource_ref ref;
};

/* Whether blocks can be used on the device's streams, and freed there: the resource waits for the
 * streams, or orders by them. */
bool subject_orders(const struct subject *subject);

void *must_allocate(const struct subject *subject, size_t bytes, size_t alignment);
void must_free(const struct subject *subject, void *block, size_t bytes, size_t alignment);

/* How the suite reads and writes blocks: by the CPU where it may, else by copies of the driver's;
 * done on return. False if the driver refuses. Asserts nothing, for threads. */
bool subject_copy(const struct subject *subject, const struct driver_copy *copies, size_t count);

/* Writes its own address into both ends of a block, and reads it back; as subject_copy(). Blocks
 * that are too small for it pass as marked. */
bool mark(const struct subject *subject, void *block, size_t bytes);
bool is_marked(const struct subject *subject, void *block, size_t bytes);

/* Counts into a size_t. */
bool count_block(void *context, const raffia_block *block);

/* The parts: each adds nothing but test functions. */
void sizes_from_nothing_to_a_gibibyte(void **state);
void a_pebibyte_is_refused_and_changes_nothing(void **state);
void alignments_are_honoured_or_refused(void **state);
void random_sizes_do_not_overlap(void **state);
void mixed_sequences(void **state);
void a11_threads_allocate_and_free_at_once(void **state);
void a11_one_thread_allocates_and_another_frees(void **state);
void a11_blocks_move_between_streams(void **state);
void a4_a_live_block_keeps_its_owner_alive(void **state);
void a4_frees_through_the_wrong_resource_are_refused(void **state);
void frees_with_another_size_are_refused(void **state);
void no_alignment_makes_a_wrong_size_right(void **state);
void another_alignment_is_refused_where_it_takes_room(void **state);
void blocks_are_found_by_address(void **state);
void a_block_that_is_found_has_the_size_asked_for(void **state);
void a10_it_says_what_it_is(void **state);
void any_call_may_fail_and_nothing_is_lost(void **state);
void a_child_neither_uses_nor_ends_its_parents(void **state);

#endif
