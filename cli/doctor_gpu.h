/*
 * What `raffia doctor` finds out about GPUs.
 */
#ifndef CLI_DOCTOR_GPU_H
#define CLI_DOCTOR_GPU_H

#include "cli/doctor.h"

#include <jansson.h>

#define DOCTOR_GPUS_MAX 16

struct doctor_gpu {
    raffia_device_info info;
    char link[64];             /* speed and width of its place on the bus; "" if not known */
    struct doctor_trial trial; /* one page of its memory */
    raffia_status pin_status;  /* of pinning host memory for it */
    char pin_message[768];     /* why not */
};

struct doctor_gpus {
    size_t count;
    char why[768]; /* there are none */
    struct doctor_gpu items[DOCTOR_GPUS_MAX];
};

/* Opens each GPU, makes one page of its memory and pins some host memory for it, and gives both
 * back. Where there is no GPU it says why. */
void doctor_gpus_examine(struct doctor_gpus *gpus);

void doctor_gpus_print(const struct doctor_gpus *gpus);
json_t *doctor_gpus_json(const struct doctor_gpus *gpus);

#endif
