/*
 * A directory that plays the machine: /proc and /sys as a test wants them.
 */
#ifndef TESTS_DRIVER_FAKE_ROOT_H
#define TESTS_DRIVER_FAKE_ROOT_H

/* For cmocka's set-up: makes an empty root and puts it in force. One at a time. */
int fake_root_enter(void **state);

/* For its tear-down: returns to the real machine and removes the root. */
int fake_root_leave(void **state);

/* A cmocka test with such a root of its own. */
#define fake_root_test(function)                                                                   \
    cmocka_unit_test_setup_teardown(function, fake_root_enter, fake_root_leave)

/* Writes a file, and the directories above it. */
void fake_root_write(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the files of a hugetlb pool, all counts but the size 0. */
void fake_root_add_pool(unsigned long size_kb);

#endif
