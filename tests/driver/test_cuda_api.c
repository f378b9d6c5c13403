/*
 * Our declarations of CUDA against NVIDIA's own, by the compiler. There is nothing to run: where
 * the header is missing the test says so and counts as skipped.
 */
#include <stdio.h>

#ifdef HAVE_CUDA_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stddef.h>

#define CUDA_API_LISTS_ONLY
#include "driver/cuda/cuda_api.h"

#define SAME_VALUE(name, value) _Static_assert((int)(name) == (value), #name);
CUDA_API_CONSTANTS(SAME_VALUE)
_Static_assert(CU_MEMHOSTREGISTER_PORTABLE == CUDA_API_MEMHOSTREGISTER_PORTABLE, "portable");
_Static_assert(CU_MEMHOSTALLOC_PORTABLE == CUDA_API_MEMHOSTALLOC_PORTABLE, "portable");

#define SAME_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type);
#define SAME_OFFSET(type, member, offset)                                                          \
    _Static_assert(offsetof(type, member) == (offset), #type "." #member);
CUDA_API_LAYOUT(SAME_SIZE, SAME_OFFSET)

#define SAME_FUNCTION(symbol, name, version, parameters)                                           \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), CUresult parameters), #symbol);
CUDA_API_FUNCTIONS(SAME_FUNCTION)
CUDA_API_FINDER(SAME_FUNCTION)

/* The library has others by these names now; ours are asked for by version. */
#define SAME_AT_VERSION(symbol, name, version, parameters)                                         \
    _Static_assert(__builtin_types_compatible_p(PFN_OF(name, version), CUresult(*) parameters),    \
                   #name);
#define PFN_OF(name, version)   PFN_NAME(name, version)
#define PFN_NAME(name, version) PFN_##name##_v##version
#if CUDA_VERSION >= 12080
#undef cuMemcpyBatchAsync
CUDA_API_OPTIONAL(SAME_AT_VERSION)
#endif

int main(void)
{
    printf("checked against the header of CUDA %d.%d\n", CUDA_VERSION / 1000,
           CUDA_VERSION % 1000 / 10);
    return 0;
}

#else

int main(void)
{
    printf("skipped: this machine has no cuda.h\n");
    return 77;
}

#endif
