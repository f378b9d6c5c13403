/*
 * One chunk behind one range of the host driver, for tests.
 */
#ifndef TESTS_DRIVER_HOST_PIECE_H
#define TESTS_DRIVER_HOST_PIECE_H

#include "driver/driver.h"

#include <raffia/status.h>

struct host_piece {
    struct driver_chunk_spec spec;
    driver_chunk chunk;
    unsigned char *at;
    raffia_fallback_reason reason;
};

/* A chunk of `pages` pages; the page size is the machine's for the kind. Hugetlb means 2 MiB. */
struct driver_chunk_spec host_piece_spec(raffia_page_kind kind, size_t pages);

/* Reserves, creates and maps. On failure everything is undone. */
raffia_status host_piece_get(struct host_piece *piece, const struct driver_chunk_spec *spec);

/* Unmaps, destroys and releases; tries again once what a test made fail, and returns the first
 * failure. */
raffia_status host_piece_put(struct host_piece *piece);

/* Asserts that the memory is there, zero, writable, and read back as pages of its size. */
void host_piece_check(const struct host_piece *piece);

/* True if the machine has transparent huge pages for those who ask. */
bool host_piece_transparent_works(void);

/* Runs `body` in a forked child; returns its exit code, or minus the signal that ended it. */
int host_piece_in_child(int (*body)(void *context), void *context);

/* For host_piece_in_child(): write to or read from `context`, an address. */
int host_piece_write(void *address);
int host_piece_read(void *address);

#endif
