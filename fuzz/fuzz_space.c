/*
 * Bytes as steps of the space's model (tests/support/space_model.h).
 *
 * The first byte chooses the granule, the second the length of the range; then each step takes
 * seven bytes: the verb and three numbers of two. Everything is compared at the end, and each step
 * is checked when it is done.
 */
#include "support/space_model.h"

#include <stdlib.h>

#define HEADER_BYTES 2
#define STEP_BYTES   7

/* Enough for every branch of the bins' classes, small enough to compare at each run. */
#define GRANULES_STEP 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t number_at(const uint8_t *data)
{
    return (uint32_t)data[0] | (uint32_t)data[1] << 8;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t granules[] = {256, 4096, (size_t)2 << 20};
    if (size < HEADER_BYTES)
        return 0;
    size_t granule = granules[data[0] % (sizeof granules / sizeof *granules)];
    struct space_model *model = space_model_create(granule, 1 + GRANULES_STEP * (uint32_t)data[1]);
    if (!model)
        abort();
    for (size_t at = HEADER_BYTES; at + STEP_BYTES <= size; at += STEP_BYTES) {
        struct space_model_step step = {
            .verb = (enum space_model_verb)(data[at] % SPACE_MODEL_VERBS),
            .a = number_at(data + at + 1),
            .b = number_at(data + at + 3),
            .c = number_at(data + at + 5),
        };
        space_model_run(model, &step);
    }
    space_model_compare(model);
    space_model_free_all(model);
    space_model_compare(model);
    space_model_destroy(model);
    return 0;
}
