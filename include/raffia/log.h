/**
 * @file log.h
 * @brief Log level and destination.
 *
 * The library prints nothing to standard output and never ends the process. By default errors and
 * warnings (one for each bad setting and each reason of falling back) go to standard error;
 * `RAFFIA_LOG=error|warn|info|debug|off` chooses another level.
 */
#ifndef RAFFIA_LOG_H
#define RAFFIA_LOG_H

#include <raffia/base.h>

/** @addtogroup log
 *  @{ */

/** Levels, the quietest first; a message is written when its level is at most the one set. */
typedef enum raffia_log_level {
    RAFFIA_LOG_OFF = 0,
    RAFFIA_LOG_ERROR,
    RAFFIA_LOG_WARN,
    RAFFIA_LOG_INFO,  /**< decisions: which pages a pool got, which reader a load used */
    RAFFIA_LOG_DEBUG, /**< one line for each allocation and driver call */
} raffia_log_level;

/**
 * Receives one message without a trailing newline. Called in the thread that logs, with no lock of
 * the library held; it may be called from several threads at once.
 */
typedef void (*raffia_log_sink)(void *context, raffia_log_level level, const char *message);

RAFFIA_BEGIN_DECLS

/** @brief Sets the level for the whole process; overrides `RAFFIA_LOG`. */
RAFFIA_API void raffia_log_set_level(raffia_log_level level);

/** @brief Level in force. */
RAFFIA_API raffia_log_level raffia_log_get_level(void);

/**
 * @brief Sends messages to @p sink instead of standard error; NULL restores standard error.
 *
 * @p context is handed to each call and must stay valid until another sink is set and every thread
 * that was logging has returned.
 */
RAFFIA_API void raffia_log_set_sink(raffia_log_sink sink, void *context);

RAFFIA_END_DECLS

/** @} */

#endif
