/*
 * A directory that plays the machine: /proc and /sys as a test wants them.
 */
#ifndef TESTS_DRIVER_FAKE_ROOT_H
#define TESTS_DRIVER_FAKE_ROOT_H

/* Makes an empty root and puts it in force. One at a time. */
void fake_root_enter(void);

/* Returns to the real machine and removes the root. */
void fake_root_leave(void);

/* Writes a file, and the directories above it. */
void fake_root_write(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes the files of a hugetlb pool, all counts but the size 0. */
void fake_root_add_pool(unsigned long size_kb);

#endif
