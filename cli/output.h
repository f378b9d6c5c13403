/*
 * Files that appear whole or not at all: written under another name beside their place, synced, and
 * renamed. Only SIGKILL or a power cut can leave the other name, "<path>.partial-XXXXXX", behind.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <raffia/base.h>
#include <raffia/status.h>

#include <sys/stat.h>
#include <sys/types.h>

struct output {
    int fd;
    char *path;      /* where it shall appear */
    char *temporary; /* where it is now */
};

/* Whether output_open() would start, without leaving a trace; it may be asked long before. */
raffia_status output_check(const char *path, uint64_t bytes);

/* Whether two paths name the same entry of the same directory: the later output would replace the
 * earlier one. */
bool output_same_place(const char *a, const char *b);

/* Whether the path leads to the file that `other` describes, by whatever name: writing there would
 * replace it. False where nothing stands at the path. */
bool output_is_file(const char *path, const struct stat *other);

/* Starts a file. Fails, without leaving anything, if `bytes` of it would not fit on the disk, or if
 * something stands at `path` that is no regular file. */
raffia_status output_open(const char *path, uint64_t bytes, struct output *output);

/* CANCELLED if the user interrupted the command. */
raffia_status output_write(struct output *output, const void *data, size_t bytes);

/* Puts the file in its place, over what may stand there. `durable` waits for the disk. Whatever
 * happens the output is closed and nothing is left of it on failure. */
raffia_status output_commit(struct output *output, bool durable);

/* Removes what was written. */
void output_abandon(struct output *output);

/* All of the above for data that is in memory; waits for the disk. */
raffia_status output_write_whole(const char *path, const void *data, size_t bytes);

/* Fails unless the file system of `directory` has room for `bytes`. */
raffia_status output_check_space(const char *directory, uint64_t bytes);

/* What a file or directory that was made for its owner alone shall allow instead: `wanted` less
 * what the user's umask takes. */
mode_t output_mode(mode_t wanted);

#endif
