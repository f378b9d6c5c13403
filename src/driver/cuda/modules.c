/* Code: PTX text, cubins and fat binaries. */
#include "core/checked.h"
#include "core/memory.h"
#include "driver/cuda/context.h"
#include "driver/cuda/failure.h"
#include "driver/cuda/verbs.h"

#include <limits.h>
#include <string.h>

#define JIT_LOG_MAX 400

/* The handles of the contract are CUDA's own under other names. */
static CUmodule native(driver_module module)
{
    return (CUmodule)(void *)module;
}

/* CUDA finds the end of an image in the image: of PTX by a NUL, which is not everywhere. */
static char *ended_copy(const void *image, size_t bytes)
{
    size_t room;
    if (!image || !bytes || !core_add(bytes, 1, &room)) {
        core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "cuda: an image of %zu bytes is no module",
                   bytes);
        return NULL;
    }
    char *copy = core_malloc(room);
    if (!copy)
        return NULL;
    memcpy(copy, image, bytes);
    copy[bytes] = '\0';
    return copy;
}

static raffia_status load(int index, const char *image, driver_module *module_p)
{
    char log[JIT_LOG_MAX] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CUmodule module = NULL;
    CUresult result = CUDA_CALL(cuModuleLoadDataEx, &module, image, 2, options, values);
    log[sizeof log - 1] = '\0';
    log[strcspn(log, "\n")] = '\0';
    if (result)
        return cuda_failed(index, result, "cannot load a module%s%s", *log ? ": " : "", log);
    *module_p = (driver_module)(void *)module;
    return RAFFIA_OK;
}

raffia_status cuda_module_load(int index, const void *image, size_t bytes, driver_module *module_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "module_load");
    if (status)
        return status;
    char *copy = ended_copy(image, bytes);
    status = copy ? load(index, copy, module_p) : raffia_last_status();
    cuda_leave(&scope);
    core_free(copy);
    return status;
}

raffia_status cuda_module_unload(int index, driver_module module)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_giving_back(&scope, index, "module_unload");
    if (status)
        return status;
    CUresult result = CUDA_GIVE_BACK(cuModuleUnload, native(module));
    cuda_leave(&scope);
    return result ? cuda_failed(index, result, "cannot unload a module") : RAFFIA_OK;
}

raffia_status cuda_module_function(int index, driver_module module, const char *name,
                                   driver_function *function_p)
{
    struct cuda_scope scope;
    raffia_status status = cuda_enter_beside_capture(&scope, index, "module_function");
    if (status)
        return status;
    CUfunction function = NULL;
    CUresult result = CUDA_CALL(cuModuleGetFunction, &function, native(module), name);
    cuda_leave(&scope);
    if (result)
        return cuda_failed(index, result, "the module gives no function '%s'", name);
    *function_p = (driver_function)(void *)function;
    return RAFFIA_OK;
}

raffia_status cuda_launch(int index, driver_stream stream, driver_function function,
                          const struct driver_launch *how)
{
    if (how->shared_bytes > UINT_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "cuda:%d: a launch with %zu bytes of shared memory", index,
                          how->shared_bytes);
    struct cuda_scope scope;
    raffia_status status = cuda_enter(&scope, index, "launch");
    if (status)
        return status;
    CUresult result =
        CUDA_CALL(cuLaunchKernel, (CUfunction)(void *)function, how->grid[0], how->grid[1],
                  how->grid[2], how->block[0], how->block[1], how->block[2],
                  (unsigned)how->shared_bytes, stream, how->arguments, NULL);
    cuda_leave(&scope);
    return result ? cuda_failed(index, result,
                                "cannot launch a kernel of %u x %u x %u blocks of %u x %u x %u "
                                "threads",
                                how->grid[0], how->grid[1], how->grid[2], how->block[0],
                                how->block[1], how->block[2])
                  : RAFFIA_OK;
}
