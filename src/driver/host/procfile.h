/*
 * Reading the kernel's text files (/proc, /sys) below the root of sys_set_root().
 */
#ifndef DRIVER_HOST_PROCFILE_H
#define DRIVER_HOST_PROCFILE_H

#include <raffia/base.h>

/* Room for any path this driver reads or names, its NUL included. */
#define HOST_PATH_MAX 512

/* "No limit" and "not known" in numbers of bytes that the kernel reports. */
#define HOST_UNLIMITED UINT64_MAX

/* Reads a text file of any length into memory for core_free(); NULL if it cannot be read. */
char *host_read_whole(const char *path);

/* Finds the line that starts with `key` (as "MemTotal:") and reads the number behind it. */
bool host_find_number(const char *text, const char *key, uint64_t *value_p);

/* The same for a line in kB; gives bytes. */
bool host_find_kilobytes(const char *text, const char *key, uint64_t *bytes_p);

/* a + b and a - b, held between 0 and UINT64_MAX. */
uint64_t host_add(uint64_t a, uint64_t b);
uint64_t host_subtract(uint64_t a, uint64_t b);

#endif
