/*
 * A model from the inside.
 */
#ifndef LOAD_MODEL_H
#define LOAD_MODEL_H

#include "load/destination.h"
#include "load/options.h"

struct raffia_model {
    struct catalog *catalog;
    struct load_selection selection;
    struct load_plan plan;
    struct load_destination destination;
    raffia_tensor *tensors; /* in order of name; as many as selected */
    size_t *slots;          /* table by hash of name: index into tensors plus one, 0 = free */
    size_t slot_mask;
    size_t needed; /* see raffia_model_bytes_needed() */
    raffia_load_report report;
    struct load_shape shape;  /* of the ring it went through, if its destination is staged */
    unsigned long generation; /* of the process; see core/process.h */
};

/* Opens and validates the files, selects and plans. The files stay open, tensors have no data.
 * `options` are resolved. */
raffia_status load_model_open(const char *path, const raffia_load_options *options,
                              raffia_model **model_p);

/* Points the tensors at their places in the destination. */
void load_model_place(raffia_model *model);

/* Closes the files and drops what only a load needs. Strings and shapes stay. */
void load_model_settle(raffia_model *model);

#endif
