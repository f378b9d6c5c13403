/*
 * Reading files in the plainest way there is, to compare the library with.
 */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include <raffia/base.h>
#include <raffia/status.h>

/* Opens a file for reading; *fd_p is the caller's to close. */
raffia_status input_open(const char *path, int *fd_p);

/* Reads exactly `bytes` at `offset`; CHANGED if the file ends before. `path` is for messages. */
raffia_status input_read(const char *path, int fd, uint64_t offset, void *to, size_t bytes);

#endif
