/**
 * @file current_resource.h
 * @brief The current resource of each device: what memory comes from when nobody says.
 *
 * There is one per device and one registry per process: copies of the library that are loaded
 * beside each other (two plugins that each brought one, a program linked statically) share it. It
 * is the counterpart of RMM's per-device resource and libcudf's current device resource.
 *
 * Until one is set, a device has its **initial resource**. It goes through policy: regular memory
 * of the device while the setting `pages` is `off`; with `try` or `on`, requests that are worth
 * huge pages (`huge_threshold`, 16 MiB) come from a pool of the device that the first of them
 * builds, of the default size (`pool_share`, `pool_maximum`).
 *
 * A device is given by name (device.h); NULL is the process's default device.
 *
 * Each call is safe against the others from any thread. The registry lives until the process ends:
 * calls from destructors and atexit() functions are safe. A forked child starts with the initial
 * resources, because its parent's resources are not its own.
 */
#ifndef RAFFIA_CURRENT_RESOURCE_H
#define RAFFIA_CURRENT_RESOURCE_H

#include <raffia/base.h>
#include <raffia/resource.h>
#include <raffia/status.h>

/** @addtogroup current_resource
 *  @{ */

/** Devices that can have a current resource, at most. */
#define RAFFIA_CURRENT_DEVICES_MAX 64u

RAFFIA_BEGIN_DECLS

/**
 * @brief Borrows the current resource of a device.
 *
 * The ref holds only until somebody sets another one and the last owner of this one goes; use
 * raffia_current_resource_acquire() where other threads may set.
 *
 * @param device see above
 * @param ref_p  receives the ref
 * @return #RAFFIA_ERROR_NOT_FOUND or #RAFFIA_ERROR_UNSUPPORTED for the device,
 *         #RAFFIA_ERROR_OUT_OF_HOST_MEMORY, #RAFFIA_ERROR_LIMIT
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_current_resource_get(const char *device,
                                                                      raffia_resource_ref *ref_p);

/**
 * @brief The current resource of a device, with an owner of the caller's: whatever other threads
 *        set meanwhile, it stays until it is released.
 * @param device     see above
 * @param resource_p receives the owner, to be released
 * @return as raffia_current_resource_get()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_current_resource_acquire(const char *device, raffia_resource **resource_p);

/**
 * @brief Makes a resource the current one of a device.
 * @param device     see above
 * @param resource   the resource, which gets an owner more: the caller keeps his own
 * @param previous_p receives the previous one, to be released, or set again; NULL: it is released
 * @return #RAFFIA_ERROR_INVALID_ARGUMENT for NULL, and for a resource that is not
 *         device-accessible, or says that its memory is another device's; as
 * raffia_current_resource_get() otherwise. Nothing is then changed
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_current_resource_set(const char *device,
                                                                      raffia_resource *resource,
                                                                      raffia_resource **previous_p);

/**
 * @brief Makes the initial resource the current one again.
 * @param device     see above
 * @param previous_p as raffia_current_resource_set()
 * @return as raffia_current_resource_get()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_current_resource_reset(const char *device, raffia_resource **previous_p);

/**
 * @brief Sets what a ref points at, without owning it.
 * @deprecated The target must outlive its last use by anybody in the process, which nobody can
 *             see to: use raffia_current_resource_set() with an owner, which
 *             raffia_resource_from_ref() makes from a ref.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_current_resource_set_ref(
    const char *device, raffia_resource_ref ref, raffia_resource **previous_p)
    RAFFIA_DEPRECATED("the target must outlive its last use anywhere in the process, which nobody "
                      "can see to: use raffia_current_resource_set() with an owner");

/**
 * @brief The same as raffia_current_resource_reset().
 * @deprecated It is here for symmetry with raffia_current_resource_set_ref(), and no target needs
 *             to be kept alive for it: use raffia_current_resource_reset().
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status
raffia_current_resource_reset_ref(const char *device, raffia_resource **previous_p)
    RAFFIA_DEPRECATED("it is raffia_current_resource_reset() by another name: use that");

/** A stretch of code with another current resource. Fields are the library's. */
typedef struct raffia_resource_scope {
    char device[RAFFIA_DEVICE_NAME_MAX];
    raffia_resource *previous; /**< NULL: there is nothing to restore */
} raffia_resource_scope;

/**
 * @brief Sets a resource until raffia_resource_scope_end(). Scopes are nested, the inner one ends
 *        first; the setting holds for the process, not for the thread.
 * @param device   see above
 * @param resource as raffia_current_resource_set()
 * @param scope_p  receives what is needed to restore; on failure a scope whose end does nothing
 * @return as raffia_current_resource_set()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_resource_scope_begin(
    const char *device, raffia_resource *resource, raffia_resource_scope *scope_p);

/** @brief Restores what was current before; a second call does nothing. */
RAFFIA_API void raffia_resource_scope_end(raffia_resource_scope *scope);

RAFFIA_END_DECLS

/**
 * Declares a scope that ends by itself where the enclosing block does, by whatever way it is left:
 *
 *     RAFFIA_SCOPED_RESOURCE(scope);
 *     raffia_status status = raffia_resource_scope_begin(NULL, resource, &scope);
 */
#define RAFFIA_SCOPED_RESOURCE(name)                                                               \
    raffia_resource_scope name __attribute__((cleanup(raffia_resource_scope_end))) = {{0}, NULL}

/** @} */

#endif
