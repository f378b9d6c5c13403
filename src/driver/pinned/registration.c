/* Registering host memory with a GPU's driver in pieces, and undoing it. */
#include "core/checked.h"
#include "core/error.h"
#include "core/fallbacks.h"
#include "core/log.h"
#include "core/settings.h"
#include "driver/pinned/verbs.h"

/* Each try has pieces of this fraction of the last one's, and there are no more tries than these:
 * what refuses small pieces too is no limit on one call. */
#define SHRINK    8u
#define TRIES_MAX 3

/* The piece that begins at `start`; a device that lost its context lost it already. */
static raffia_status unregister_piece(struct driver_device gpu, char *at, size_t bytes)
{
    raffia_status status = gpu.driver->host_unregister(gpu.index, at, bytes);
    if (!status)
        return RAFFIA_OK;
    struct core_error_record cause;
    core_error_save(&cause);
    bool lost = gpu.driver->context_state(gpu.index) == RAFFIA_ERROR_DRIVER;
    return lost ? RAFFIA_OK : core_error_restore(&cause);
}

raffia_status pinned_unregister(int index, struct pinned_registration *registration)
{
    const struct driver_device gpu = pinned_gpu(index);
    while (registration->registered > 0) {
        size_t start =
            (registration->registered - 1) / registration->piece_bytes * registration->piece_bytes;
        raffia_status status =
            unregister_piece(gpu, registration->at + start, registration->registered - start);
        if (status)
            return status;
        pinned_piece_drop(registration->at + start);
        registration->registered = start;
    }
    return RAFFIA_OK;
}

static raffia_status register_piece(struct driver_device gpu, char *at, size_t bytes)
{
    if (!pinned_piece_add(at, bytes))
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    raffia_status status = gpu.driver->host_register(gpu.index, at, bytes);
    if (status)
        pinned_piece_drop(at);
    return status;
}

static raffia_status register_pieces(int index, struct pinned_registration *registration)
{
    const struct driver_device gpu = pinned_gpu(index);
    while (registration->registered < registration->bytes) {
        size_t bytes =
            core_min(registration->piece_bytes, registration->bytes - registration->registered);
        raffia_status status =
            register_piece(gpu, registration->at + registration->registered, bytes);
        if (status) {
            struct core_error_record cause;
            core_error_save(&cause);
            if (pinned_unregister(index, registration))
                core_log_error("%zu bytes at %p stay registered: %s", registration->registered,
                               (void *)registration->at, raffia_last_error());
            return core_error_restore(&cause);
        }
        registration->registered += bytes;
    }
    return RAFFIA_OK;
}

/* Smaller pieces, or 0 if there are none. */
static size_t shrink(size_t piece_bytes, size_t page_size)
{
    size_t smaller = core_max(core_align_down(piece_bytes / SHRINK, page_size), page_size);
    return smaller < piece_bytes ? smaller : 0;
}

raffia_status pinned_register(int index, void *at, size_t bytes, raffia_page_offer page,
                              struct pinned_registration *registration, enum pinned_way *way_p)
{
    size_t most = core_align_down(core_setting_size(CORE_SETTING_PIN_PIECE), page.size);
    size_t piece = core_min(bytes, core_max(most, page.size));
    *registration = (struct pinned_registration){.at = at, .bytes = bytes};
    raffia_status status = RAFFIA_OK;
    for (int attempt = 0; attempt < TRIES_MAX; attempt++) {
        registration->piece_bytes = piece;
        status = register_pieces(index, registration);
        if (!status) {
            *way_p = attempt ? PINNED_IN_SMALLER_PIECES : PINNED_REGISTERED;
            return RAFFIA_OK;
        }
        struct core_error_record refusal;
        core_error_save(&refusal);
        status = pinned_context_state(index);
        if (status)
            return status;
        core_error_restore(&refusal);
        size_t smaller = shrink(piece, page.size);
        if (refusal.status == RAFFIA_ERROR_UNSUPPORTED || registration->registered || !smaller ||
            attempt + 1 == TRIES_MAX)
            break;
        core_fallback_pin(page.kind, piece, page.kind, smaller, "trying smaller pieces",
                          refusal.text);
        piece = smaller;
    }
    *way_p = PINNED_PAGEABLE;
    return RAFFIA_OK;
}
