#include "driver/cuda/library.h"

#include "core/error.h"
#include "core/log.h"
#include "core/process.h"
#include "driver/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY_NAME "libcuda.so.1"
#define LIBRARY_ENV  "RAFFIA_CUDA_LIBRARY"

struct cuda_library cuda_library;

static atomic_int presence = CUDA_UNKNOWN;
static atomic_ulong opener; /* fork generation of the process that opened it; 0: nobody did */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct core_error_record why_not; /* written before `presence`, then constant */

/* Where a function's address goes, and by which names it is found. */
struct symbol {
    void **address_p;
    const char *symbol;
    const char *name;
    int version;
    bool optional;
};

#define ROW(symbol, name, version, parameters)                                                     \
    {(void **)&cuda_library.symbol, #symbol, #name, version, false},
#define OPTIONAL_ROW(symbol, name, version, parameters)                                            \
    {(void **)&cuda_library.symbol, #symbol, #name, version, true},
static const struct symbol symbols[] = {CUDA_API_FUNCTIONS(ROW) CUDA_API_OPTIONAL(OPTIONAL_ROW)};
#undef ROW
#undef OPTIONAL_ROW

/* NOLINTNEXTLINE(bugprone-macro-parentheses): it is a declaration */
#define FINDER(symbol, name, version, parameters) typedef CUresult(*finder) parameters;
CUDA_API_FINDER(FINDER)
#undef FINDER

static const char *library_name(void)
{
    const char *name = secure_getenv(LIBRARY_ENV);
    return name && *name ? name : LIBRARY_NAME;
}

/* What came with a newer CUDA under an older name is told apart by version through the driver's own
 * search; plain symbols serve where it knows nothing. */
static void *find(void *library, finder ask, const struct symbol *symbol)
{
    void *address = NULL;
    CUdriverProcAddressQueryResult answer = 0;
    if (core_fault(symbol->symbol))
        return NULL;
    if (ask &&
        ask(symbol->name, &address, symbol->version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &answer) ==
            CUDA_SUCCESS &&
        address)
        return address;
    return dlsym(library, symbol->symbol);
}

/* The first function that is missing and needed, or NULL. */
static const char *find_all(void *library)
{
    finder ask = NULL;
    void *address = dlsym(library, "cuGetProcAddress_v2");
    memcpy(&ask, &address, sizeof ask); /* ISO C has no conversion to a function's pointer */
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        address = find(library, ask, &symbols[i]);
        if (!address && !symbols[i].optional)
            return symbols[i].symbol;
        memcpy(symbols[i].address_p, &address, sizeof address);
    }
    return NULL;
}

static enum cuda_presence refuse_start(CUresult result)
{
    const char *name = NULL;
    if (cuda_library.cuGetErrorName(result, &name) || !name)
        name = "an unknown error";
    switch (result) {
    case CUDA_ERROR_NO_DEVICE:
        core_error_native(RAFFIA_ERROR_NOT_FOUND, name,
                          "the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES and the container "
                          "may hide them)");
        return CUDA_NO_DEVICE;
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_OPERATING_SYSTEM:
        core_error_native(RAFFIA_ERROR_PERMISSION, name,
                          "the NVIDIA driver cannot be used (%s): the process needs read and write "
                          "permission for /dev/nvidiactl, /dev/nvidia-uvm and /dev/nvidia0",
                          name);
        return CUDA_BROKEN;
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        core_error_native(RAFFIA_ERROR_UNSUPPORTED, name,
                          "the NVIDIA driver library and the kernel module are of different "
                          "versions (%s): reload the module, or reboot",
                          name);
        return CUDA_BROKEN;
    case CUDA_ERROR_STUB_LIBRARY:
        core_error_native(RAFFIA_ERROR_UNSUPPORTED, name,
                          "%s is the stub that programs are linked against, not a driver: take the "
                          "toolkit's 'stubs' folder out of LD_LIBRARY_PATH",
                          library_name());
        return CUDA_BROKEN;
    default:
        core_error_native(RAFFIA_ERROR_DRIVER, name,
                          "the NVIDIA driver does not start: %s; nvidia-smi may say more", name);
        return CUDA_BROKEN;
    }
}

static enum cuda_presence start(const char *missing)
{
    int version = 0, count = 0;
    if (cuda_library.cuDriverGetVersion &&
        cuda_library.cuDriverGetVersion(&version) == CUDA_SUCCESS && version < CUDA_VERSION_MIN) {
        core_error(RAFFIA_ERROR_UNSUPPORTED,
                   "the NVIDIA driver is too old: it is for CUDA %d.%d, and %d.%d is needed "
                   "(driver 525 or newer)",
                   version / 1000, version % 1000 / 10, CUDA_VERSION_MIN / 1000,
                   CUDA_VERSION_MIN % 1000 / 10);
        return CUDA_BROKEN;
    }
    if (missing) {
        core_error(RAFFIA_ERROR_UNSUPPORTED, "%s has no function %s: it is no complete CUDA driver",
                   library_name(), missing);
        return CUDA_BROKEN;
    }
    CUresult result = CUDA_CALL(cuInit, 0);
    if (!result)
        result = CUDA_CALL(cuDeviceGetCount, &count);
    if (!result && count <= 0)
        result = CUDA_ERROR_NO_DEVICE;
    if (result)
        return refuse_start(result);
    cuda_library.version = version;
    cuda_library.device_count = count < CUDA_DEVICES_MAX ? count : CUDA_DEVICES_MAX;
    return CUDA_READY;
}

/* The library stays open for good: threads of its own may run in it. */
static enum cuda_presence open_library(void)
{
    const char *name = library_name();
    if (!strcmp(name, "none")) {
        core_error(RAFFIA_ERROR_UNSUPPORTED, "there is no CUDA driver: " LIBRARY_ENV "=none");
        return CUDA_NO_LIBRARY;
    }
    void *library = core_fault("dlopen") ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        core_error(RAFFIA_ERROR_UNSUPPORTED,
                   "there is no CUDA driver on this machine (%s); use the device 'host'",
                   reason ? reason : name);
        return CUDA_NO_LIBRARY;
    }
    return start(find_all(library));
}

enum cuda_presence cuda_library_presence(void)
{
    return (enum cuda_presence)atomic_load_explicit(&presence, memory_order_acquire);
}

enum cuda_presence cuda_library_open(void)
{
    enum cuda_presence found = cuda_library_presence();
    if (found == CUDA_UNKNOWN) {
        /* Before the lock: a child of a fork in between must not wait for it. */
        unsigned long nobody = 0;
        atomic_compare_exchange_strong(&opener, &nobody, core_fork_generation());
        pthread_mutex_lock(&open_lock);
        found = cuda_library_presence();
        if (found == CUDA_UNKNOWN) {
            found = open_library();
            if (found != CUDA_READY)
                core_error_save(&why_not);
            atomic_store_explicit(&presence, found, memory_order_release);
        }
        pthread_mutex_unlock(&open_lock);
    }
    if (found != CUDA_READY)
        core_error_restore(&why_not);
    return found;
}

bool cuda_is_forked(void)
{
    switch (cuda_library_presence()) {
    case CUDA_UNKNOWN:
    case CUDA_READY: {
        unsigned long born = atomic_load_explicit(&opener, memory_order_relaxed);
        return born && born != core_fork_generation();
    }
    default:
        return false; /* what is not there can be answered anywhere */
    }
}

bool cuda_is_present(void)
{
    static atomic_bool warned;
    if (cuda_is_forked())
        return cuda_library_presence() == CUDA_READY;
    enum cuda_presence found = cuda_library_presence();
    if (found == CUDA_READY)
        return true;
    struct core_error_record before;
    core_error_save(&before);
    found = cuda_library_open();
    if (found == CUDA_BROKEN && !atomic_exchange(&warned, true))
        core_log_warn("%s; the default device is 'host'", raffia_last_error());
    core_error_restore(&before); /* who only asked did not fail */
    return found == CUDA_READY;
}
