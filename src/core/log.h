/*
 * Leveled log. What each level is for stands in raffia/log.h.
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <raffia/log.h>

#include <stdatomic.h>

void core_log_write(raffia_log_level level, const char *format, ...) RAFFIA_PRINTF(2, 3)
    __attribute__((cold));

/* From the first to the last of these a thread's messages are kept back, and then said in order:
 * for those that arise while a lock is held, under which no sink may be called. They nest. */
void core_log_hold(void);
void core_log_let_go(void);

/* The level in force, or CORE_LOG_UNREAD until somebody asks for it. */
#define CORE_LOG_UNREAD (-1)
extern atomic_int core_log_level_in_force;

static inline raffia_log_level core_log_level(void)
{
    const int level = atomic_load_explicit(&core_log_level_in_force, memory_order_relaxed);
    return level == CORE_LOG_UNREAD ? raffia_log_get_level() : (raffia_log_level)level;
}

/* Costs one relaxed load when the level is not written: the arguments are not evaluated. */
#define core_log(level, ...)                                                                       \
    do {                                                                                           \
        if ((level) <= core_log_level())                                                           \
            core_log_write((level), __VA_ARGS__);                                                  \
    } while (0)

#define core_log_error(...) core_log(RAFFIA_LOG_ERROR, __VA_ARGS__)
#define core_log_warn(...)  core_log(RAFFIA_LOG_WARN, __VA_ARGS__)
#define core_log_info(...)  core_log(RAFFIA_LOG_INFO, __VA_ARGS__)
#define core_log_debug(...) core_log(RAFFIA_LOG_DEBUG, __VA_ARGS__)

#endif
