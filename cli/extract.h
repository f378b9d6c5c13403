/*
 * Writes a tensor's bytes to a file of their own.
 */
#ifndef CLI_EXTRACT_H
#define CLI_EXTRACT_H

#include <raffia/load.h>
#include <raffia/status.h>

/* Refuses requests for tensors that the load would not have, by the headers alone. */
raffia_status extract_check(const char *path, const raffia_load_options *options,
                            const char *const *requests, size_t count);

/* `request` is NAME=FILE: the name ends at the first '='. The file appears whole or not at all. */
raffia_status extract_tensor(const raffia_model *model, const char *request);

#endif
