/*
 * Content that can be checked: each 64-bit word of a tensor follows from a seed, the tensor's name
 * and the word's place. So a byte that is wrong shows, and so does a byte that is right but stands
 * in the wrong place or in the wrong tensor.
 *
 * Word i is mix(key + i * G) in little-endian order, with key = mix(hash(name) ^ mix(seed)), where
 * hash is 64-bit FNV-1a, mix is the finaliser of SplitMix64 and G = 0x9e3779b97f4a7c15. As mix is a
 * bijection and G is odd, no two words of a tensor are equal. A last word may be cut short.
 */
#ifndef CLI_PATTERN_H
#define CLI_PATTERN_H

#include <raffia/base.h>

/* What the metadata of a file made with this pattern says. */
#define PATTERN_METADATA_VERSION "raffia.pattern"
#define PATTERN_METADATA_SEED    "raffia.seed"
#define PATTERN_VERSION          "1"

/* Offsets are multiples of this many bytes. */
#define PATTERN_WORD 8u

/* The key of one tensor. */
uint64_t pattern_key(uint64_t seed, const char *tensor);

/* Writes the tensor's bytes [offset, offset + bytes). */
void pattern_fill(uint64_t key, uint64_t offset, void *buffer, size_t bytes);

/* Compares; on a difference *bad_p receives the offset, in the tensor, of the first wrong byte. */
bool pattern_check(uint64_t key, uint64_t offset, const void *buffer, size_t bytes,
                   uint64_t *bad_p);

#endif
