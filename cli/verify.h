/*
 * Is what lies in memory what stands in the file? By the pattern if the model was made with it,
 * else by reading the file a second time in the plainest way there is.
 */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include <raffia/load.h>
#include <raffia/status.h>

struct verify_result {
    bool by_pattern; /* else by the file */
    uint64_t seed;   /* of the pattern */
    size_t tensors;  /* compared */
    uint64_t bytes;
    double seconds;

    /* With MISMATCH: the first difference found. The name belongs to the model. */
    const char *bad_tensor;
    uint64_t bad_offset; /* in the tensor */
};

/*
 * Compares every tensor of a loaded model, copied back if it lies in memory that the CPU cannot
 * read. MISMATCH, with the result
 * filled in, if one differs; the sentence names tensor and offset.
 */
raffia_status verify_model(const raffia_model *model, unsigned threads,
                           struct verify_result *result);

#endif
