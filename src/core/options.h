/*
 * Options structures that can grow: struct_size first, zero means default, unknown bytes zero.
 */
#ifndef CORE_OPTIONS_H
#define CORE_OPTIONS_H

#include <raffia/base.h>
#include <raffia/status.h>

/*
 * Copies the caller's options into `copy`, `known` bytes large, whatever version of the headers the
 * caller was built with: what an older caller does not know becomes zero; what a newer caller knows
 * beyond us must be zero, or the call is refused as UNSUPPORTED. NULL options give all zeros. In
 * the copy struct_size is `known`. `what` names the structure in errors.
 */
raffia_status core_options_copy(void *copy, size_t known, const void *options, const char *what);

#endif
