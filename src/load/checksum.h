/*
 * Checksums of the tensors of a loaded model.
 */
#ifndef LOAD_CHECKSUM_H
#define LOAD_CHECKSUM_H

#include "load/model.h"

/* Computes the checksum of every tensor, in parallel. CANCELLED if the options' flag is set. */
raffia_status load_checksum(raffia_model *model, const raffia_load_options *options);

#endif
