/* One small safetensors file for every rule of the format, kept and broken. */
#ifndef TEST_LOAD_SAFETENSORS_CASES_H
#define TEST_LOAD_SAFETENSORS_CASES_H

#include <raffia/status.h>

#include <stddef.h>

#define SAFETENSORS_CASE_WORDS_MAX 3

struct safetensors_case {
    const char *name;
    const char *header; /* ' stands for " */
    size_t data_bytes;
    raffia_status status;
    const char *words[SAFETENSORS_CASE_WORDS_MAX]; /* what the error must mention */
    size_t tensors;                                /* on success */
    size_t header_bytes;                           /* where the header holds a NUL, else 0 */
    const char *raw; /* the whole file, where it is not a header and its data */
    size_t raw_bytes;
};

extern const struct safetensors_case safetensors_cases[];
extern const size_t safetensors_case_count;

/* The file of a case, to be freed with free(). */
unsigned char *safetensors_case_image(const struct safetensors_case *item, size_t *bytes_p);

#endif
