/*
 * What tests of loads into hidden device memory share: a model, and looking at it by copies only. A
 * stray access by the CPU is a fault of the test's program.
 */
#ifndef LOAD_DEVICE_FIXTURE_H
#define LOAD_DEVICE_FIXTURE_H

#include "driver/sim/sim.h"
#include "load_fixture.h"

#define DATA_OFFSET 4096

enum { TENSORS = 5 };

extern struct test_directory directory;
extern struct test_path path; /* of the model most tests load: one large tensor, some odd ones */
extern struct model_file_tensor tensors[TENSORS];

/* Fails the test unless a tensor holds these bytes of its file. */
void check_tensor(const raffia_model *model, const char *name, uint64_t offset, size_t bytes);
void check_all(const raffia_model *model);

/* Loads the model, checks it, and that its report makes sense for a device. */
const raffia_load_report *load_and_check(const raffia_load_options *options,
                                         raffia_model **model_p);

/* A load that must fail, with nothing left on sim:0. */
void expect_failure(raffia_status expected, raffia_load_options options, const char *mention);

/* The group: the model's directory. */
int make_directory(void **state);
int remove_directory(void **state);

/* Each test: two devices whose memory is hidden; afterwards they are idle, or anything. */
int hide_memory(void **state);
int left_idle(void **state);
int left_anyhow(void **state);

#define TEST(function) cmocka_unit_test_setup_teardown(function, hide_memory, left_idle)

#endif
