/* How the fake's functions are found by name and version. */
#include "fake.h"

#include <string.h>

#define DECLARE(symbol, name, version, parameters) CUresult symbol parameters;
CUDA_API_FUNCTIONS(DECLARE)
CUDA_API_OPTIONAL(DECLARE)
CUDA_API_FINDER(DECLARE)
#undef DECLARE

#define ROW(symbol, name, version, parameters) {#name, version, (void *)symbol},
static const struct {
    const char *name;
    int version;
    void *function;
} functions[] = {CUDA_API_FUNCTIONS(ROW) CUDA_API_OPTIONAL(ROW)};
#undef ROW

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, name) && functions[i].version == version &&
            flags == CU_GET_PROC_ADDRESS_LEGACY_STREAM) {
            *function = functions[i].function;
            *result = 0;
            return CUDA_SUCCESS;
        }
    *function = NULL;
    *result = 1;
    return CUDA_ERROR_NOT_FOUND;
}
