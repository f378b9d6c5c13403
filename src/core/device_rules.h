/*
 * The setting `device_parameters`: parameters for each vendor and model of device.
 *
 * Rules are separated by ';', and the first whose pattern matches counts. A rule is a shell pattern
 * for the model, ':', and parameters separated by ',':
 *
 *     NVIDIA H200*:threshold=32MiB,share=10%,maximum=32GiB;AMD*:threshold=8MiB
 *
 * Nothing is guessed: an unknown parameter, one that is given twice, a rule without any, or space
 * around a pattern makes all of the text bad.
 */
#ifndef CORE_DEVICE_RULES_H
#define CORE_DEVICE_RULES_H

#include <raffia/base.h>
#include <raffia/status.h>

/* Most of a device's memory that a default pool may take. */
#define CORE_POOL_SHARE_MAX 0.16

/* Least cap of a default pool: a page. */
#define CORE_POOL_MAXIMUM_MIN ((size_t)4096)

struct core_device_rule {
    bool has_threshold, has_share, has_maximum;
    size_t threshold; /* requests larger than this use huge pages; RAFFIA_NONE: none do */
    double share;     /* of the device's memory, for a default pool */
    size_t maximum;   /* cap of a default pool */
};

/* Reads all of the text and gives the first rule that matches the model; one without parameters if
 * none does. INVALID_ARGUMENT, for whatever model, if any of the text is bad. */
raffia_status core_device_rules_find(const char *text, const char *model,
                                     struct core_device_rule *rule);

#endif
