/**
 * @file config.h
 * @brief Process-wide settings.
 *
 * Precedence, weakest first: built-in default, environment (`RAFFIA_*`), raffia_config_set(), and
 * the explicit option of a call. Values are parsed strictly: sizes as "64MiB", "2GB" or plain
 * bytes, shares as "8%". A bad value in the environment is warned of once and the default is used;
 * a bad value given to raffia_config_set() is an error and changes nothing.
 */
#ifndef RAFFIA_CONFIG_H
#define RAFFIA_CONFIG_H

#include <raffia/base.h>
#include <raffia/status.h>

/** @addtogroup configuration
 *  @{ */

RAFFIA_BEGIN_DECLS

/**
 * @brief Sets one setting for the process.
 * @param name  the setting, such as "pages" for `RAFFIA_PAGES` (case matters)
 * @param value its new value as text; NULL returns to the environment's value or the default
 * @return #RAFFIA_ERROR_NOT_FOUND for an unknown name, #RAFFIA_ERROR_INVALID_ARGUMENT for a value
 *         that does not parse or is out of range
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_config_set(const char *name, const char *value);

/**
 * @brief Writes the value in force as text.
 * @param name     the setting
 * @param buffer   receives the text, ended by a NUL
 * @param capacity bytes in @p buffer
 * @return #RAFFIA_ERROR_NOT_FOUND for an unknown name, #RAFFIA_ERROR_LIMIT if the text does not fit
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_config_get(const char *name, char *buffer,
                                                            size_t capacity);

/** One row of the table of settings, for a help text or a report. */
typedef struct raffia_setting {
    const char *name;        /**< as raffia_config_set() takes it */
    const char *environment; /**< the variable, for example "RAFFIA_PAGES" */
    const char *fallback;    /**< default, as text */
    const char *help;        /**< one line */
} raffia_setting;

/** @brief The table of settings and its length. Static storage. */
RAFFIA_API const raffia_setting *raffia_config_settings(size_t *count);

RAFFIA_END_DECLS

/** @} */

#endif
