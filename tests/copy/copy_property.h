/*
 * Copies at random, compared byte for byte with what memcpy() would have done.
 */
#ifndef TESTS_COPY_COPY_PROPERTY_H
#define TESTS_COPY_COPY_PROPERTY_H

#include <stddef.h>

/* Batches of all sizes and alignments, both ways, by the kernel and by the driver. The device must
 * be there and pin memory. */
void copy_property(const char *test, const char *device, size_t rounds);

#endif
