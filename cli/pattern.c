#include "cli/pattern.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#define STEP 0x9e3779b97f4a7c15u

/* Words compared at once before the result is looked at. */
#define CHECK_WORDS 64

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t word_at(uint64_t key, uint64_t index)
{
    return htole64(mix(key + index * STEP));
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

uint64_t pattern_key(uint64_t seed, const char *tensor)
{
    return mix(hash_of(tensor) ^ mix(seed));
}

void pattern_fill(uint64_t key, uint64_t offset, void *buffer, size_t bytes)
{
    assert(offset % PATTERN_WORD == 0);
    unsigned char *out = buffer;
    uint64_t index = offset / PATTERN_WORD;
    size_t words = bytes / PATTERN_WORD;
    for (size_t i = 0; i < words; i++) {
        uint64_t word = word_at(key, index + i);
        memcpy(out + i * PATTERN_WORD, &word, PATTERN_WORD);
    }
    uint64_t last = word_at(key, index + words);
    memcpy(out + words * PATTERN_WORD, &last, bytes % PATTERN_WORD);
}

/* Number of bytes that agree, up to `bytes`. */
static size_t agreement(uint64_t key, uint64_t index, const unsigned char *in, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        uint64_t word = word_at(key, index + i / PATTERN_WORD);
        unsigned char expected[PATTERN_WORD];
        memcpy(expected, &word, PATTERN_WORD);
        if (in[i] != expected[i % PATTERN_WORD])
            return i;
    }
    return bytes;
}

static bool words_agree(uint64_t key, uint64_t index, const unsigned char *in)
{
    uint64_t difference = 0;
    for (size_t i = 0; i < CHECK_WORDS; i++) {
        uint64_t word;
        memcpy(&word, in + i * PATTERN_WORD, PATTERN_WORD);
        difference |= word ^ word_at(key, index + i);
    }
    return difference == 0;
}

bool pattern_check(uint64_t key, uint64_t offset, const void *buffer, size_t bytes, uint64_t *bad_p)
{
    assert(offset % PATTERN_WORD == 0);
    const unsigned char *in = buffer;
    const size_t stride = CHECK_WORDS * PATTERN_WORD;
    size_t done = 0;
    while (bytes - done >= stride && words_agree(key, (offset + done) / PATTERN_WORD, in + done))
        done += stride;
    done += agreement(key, (offset + done) / PATTERN_WORD, in + done, bytes - done);
    if (done == bytes)
        return true;
    *bad_p = offset + done;
    return false;
}
