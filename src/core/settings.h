/*
 * Process-wide settings: one typed table. Precedence is default < environment <
 * raffia_config_set(); the explicit option of a call, which beats all three, is the caller's
 * business.
 */
#ifndef CORE_SETTINGS_H
#define CORE_SETTINGS_H

#include "core/device_rules.h"

#include <raffia/config.h>

enum core_setting {
    CORE_SETTING_PAGES,             /* choice: raffia_pages_mode */
    CORE_SETTING_PAGE_SIZE,         /* size */
    CORE_SETTING_LOG,               /* choice: raffia_log_level */
    CORE_SETTING_DRIVER,            /* choice: enum core_driver_choice */
    CORE_SETTING_POOL_SHARE,        /* share of the device's memory */
    CORE_SETTING_POOL_MAXIMUM,      /* size: cap of the default pool */
    CORE_SETTING_THREADS,           /* count: 0 = one for each CPU */
    CORE_SETTING_LOAD_BUDGET,       /* size */
    CORE_SETTING_LOAD_SLOT,         /* size */
    CORE_SETTING_PIN_PIECE,         /* size */
    CORE_SETTING_HUGE_THRESHOLD,    /* size */
    CORE_SETTING_DEVICE_PARAMETERS, /* rules of core/device_rules.h */
    CORE_SETTING_SIM_MEMORY,        /* choice: enum core_sim_memory */
    CORE_SETTING_PINNED_POOL_SIZE,  /* size */
    CORE_SETTING_PINNED_POOL_MAX,   /* size */
    CORE_SETTING_KERNEL_COPY,       /* size: smaller copies from and to pinned memory by a kernel */
    CORE_SETTING_HOST_AS_PINNED,    /* size: host allocations of at most this are pinned */
    CORE_SETTING_COUNT,
};

/* "auto", as a size, for settings that take it. */
#define CORE_SIZE_AUTO (SIZE_MAX - 1)

enum core_driver_choice {
    CORE_DRIVER_AUTO,
    CORE_DRIVER_CUDA,
    CORE_DRIVER_HOST,
    CORE_DRIVER_SIM,
};

enum core_sim_memory {
    CORE_SIM_MEMORY_VISIBLE,
    CORE_SIM_MEMORY_HIDDEN,
};

/* Least staging memory of a load: one buffer. */
#define CORE_LOAD_BUDGET_MIN ((size_t)64 << 10)

/* The value in force. A bad environment value is warned of once, here, and the default returned.
 * The setting must be of the type read. */
size_t core_setting_size(enum core_setting setting);
uint64_t core_setting_count(enum core_setting setting);
double core_setting_share(enum core_setting setting);
unsigned core_setting_choice(enum core_setting setting);

/* True if the environment or raffia_config_set() gave a usable value. */
bool core_setting_given(enum core_setting setting);

/* The rule for one model of device; see core/device_rules.h. */
void core_setting_device_rule(const char *model, struct core_device_rule *rule);

/* Rises with each raffia_config_set(), from 1 on: what was read at one version still holds while
 * the version does. */
unsigned long core_settings_version(void);

#endif
