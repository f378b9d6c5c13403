#include "core/settings.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/process.h"
#include "core/text.h"

#include <raffia/pages.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type {
    TYPE_SIZE,
    TYPE_COUNT,
    TYPE_SHARE,
    TYPE_CHOICE,
    TYPE_RULES,
};

struct choice {
    const char *word;
    unsigned value;
};

static const struct choice pages_choices[] = {
    {"off", RAFFIA_PAGES_OFF},
    {"try", RAFFIA_PAGES_TRY},
    {"on", RAFFIA_PAGES_ON},
    {0},
};

static const struct choice log_choices[] = {
    {"off", RAFFIA_LOG_OFF},   {"error", RAFFIA_LOG_ERROR}, {"warn", RAFFIA_LOG_WARN},
    {"info", RAFFIA_LOG_INFO}, {"debug", RAFFIA_LOG_DEBUG}, {0},
};

static const struct choice driver_choices[] = {
    {"auto", CORE_DRIVER_AUTO},
    {"cuda", CORE_DRIVER_CUDA},
    {"host", CORE_DRIVER_HOST},
    {"sim", CORE_DRIVER_SIM},
    {0},
};

static const struct choice sim_memory_choices[] = {
    {"visible", CORE_SIM_MEMORY_VISIBLE},
    {"hidden", CORE_SIM_MEMORY_HIDDEN},
    {0},
};

static const raffia_setting table[CORE_SETTING_COUNT] = {
    [CORE_SETTING_PAGES] = {"pages", "RAFFIA_PAGES", "off", "huge pages: off, try or on"},
    [CORE_SETTING_PAGE_SIZE] = {"page_size", "RAFFIA_PAGE_SIZE", "2MiB",
                                "largest page size to try: 2MiB or 1GiB"},
    [CORE_SETTING_LOG] = {"log", "RAFFIA_LOG", "warn",
                          "log level: off, error, warn, info or debug"},
    [CORE_SETTING_DRIVER] = {"driver", "RAFFIA_DRIVER", "auto",
                             "driver of the default device: auto, cuda, host or sim"},
    [CORE_SETTING_POOL_SHARE] = {"pool_share", "RAFFIA_POOL_SHARE", "8%",
                                 "default pool size as a share of the device's memory, up to 16%; "
                                 "at least a page"},
    [CORE_SETTING_POOL_MAXIMUM] = {"pool_maximum", "RAFFIA_POOL_MAXIMUM", "16GiB",
                                   "cap of the default pool size"},
    [CORE_SETTING_THREADS] =
        {"threads", "RAFFIA_THREADS", "0",
         "threads that fill pages and read files; 0 = one for each CPU, at most 16"},
    [CORE_SETTING_LOAD_BUDGET] = {"load_budget", "RAFFIA_LOAD_BUDGET", "64MiB",
                                  "staging memory of one load"},
    [CORE_SETTING_LOAD_SLOT] = {"load_slot", "RAFFIA_LOAD_SLOT", "16MiB",
                                "one slot of the staging memory of a load into a device; each is "
                                "copied in one go"},
    [CORE_SETTING_PIN_PIECE] = {"pin_piece", "RAFFIA_PIN_PIECE", "64GiB",
                                "most host memory that is registered with a device in one call"},
    [CORE_SETTING_HUGE_THRESHOLD] = {"huge_threshold", "RAFFIA_HUGE_THRESHOLD", "16MiB",
                                     "larger requests use huge pages; none = no request does for "
                                     "its size"},
    [CORE_SETTING_DEVICE_PARAMETERS] =
        {"device_parameters", "RAFFIA_DEVICE_PARAMETERS", "",
         "threshold, pool share and maximum for certain models, before the general settings: "
         "'NVIDIA H200*:threshold=32MiB,share=10%,maximum=32GiB;AMD*:threshold=8MiB'"},
    [CORE_SETTING_SIM_MEMORY] = {"sim_memory", "RAFFIA_SIM_MEMORY", "visible",
                                 "whether the CPU can touch the memory of simulated devices, which "
                                 "are for tests: visible or hidden"},
    [CORE_SETTING_PINNED_POOL_SIZE] = {"pinned_pool_size", "RAFFIA_PINNED_POOL_SIZE", "64MiB",
                                       "first size of the default pinned pool; not set: what the "
                                       "program says, or 0.5% of the device up to 64MiB"},
    [CORE_SETTING_PINNED_POOL_MAX] = {"pinned_pool_max_size", "RAFFIA_PINNED_POOL_MAX_SIZE", "1GiB",
                                      "limit of the default pinned pool, 0 = no pool; not set: 16 "
                                      "times its first size"},
    [CORE_SETTING_KERNEL_COPY] = {"kernel_pinned_copy_threshold",
                                  "RAFFIA_KERNEL_PINNED_COPY_THRESHOLD", "0",
                                  "copies from and to pinned memory that are smaller run as a "
                                  "kernel; auto = what a measurement says"},
    [CORE_SETTING_HOST_AS_PINNED] = {"allocate_host_as_pinned_threshold",
                                     "RAFFIA_ALLOCATE_HOST_AS_PINNED_THRESHOLD", "0",
                                     "host allocations of at most this size are pinned"},
};

/* Variables of libcudf that mean the same. Ours wins where both are set, even if it is bad. */
static const char *const aliases[CORE_SETTING_COUNT] = {
    [CORE_SETTING_PINNED_POOL_SIZE] = "LIBCUDF_PINNED_POOL_SIZE",
    [CORE_SETTING_PINNED_POOL_MAX] = "LIBCUDF_PINNED_POOL_MAX_SIZE",
    [CORE_SETTING_KERNEL_COPY] = "LIBCUDF_KERNEL_PINNED_COPY_THRESHOLD",
    [CORE_SETTING_HOST_AS_PINNED] = "LIBCUDF_ALLOCATE_HOST_AS_PINNED_THRESHOLD",
};

/* No processor this runs on has smaller pages. */
#define SMALLEST_PAGE CORE_POOL_MAXIMUM_MIN

static const struct spec {
    enum type type;
    const struct choice *choices; /* TYPE_CHOICE */
    size_t size_minimum;          /* TYPE_SIZE */
    bool power_of_two;            /* TYPE_SIZE */
    bool takes_auto;              /* TYPE_SIZE: the word means CORE_SIZE_AUTO */
    double share_maximum;         /* TYPE_SHARE */
    uint64_t count_maximum;       /* TYPE_COUNT */
} specs[CORE_SETTING_COUNT] = {
    [CORE_SETTING_PAGES] = {.type = TYPE_CHOICE, .choices = pages_choices},
    [CORE_SETTING_PAGE_SIZE] = {.type = TYPE_SIZE,
                                .size_minimum = SMALLEST_PAGE,
                                .power_of_two = true},
    [CORE_SETTING_LOG] = {.type = TYPE_CHOICE, .choices = log_choices},
    [CORE_SETTING_DRIVER] = {.type = TYPE_CHOICE, .choices = driver_choices},
    [CORE_SETTING_POOL_SHARE] = {.type = TYPE_SHARE, .share_maximum = CORE_POOL_SHARE_MAX},
    [CORE_SETTING_POOL_MAXIMUM] = {.type = TYPE_SIZE, .size_minimum = CORE_POOL_MAXIMUM_MIN},
    [CORE_SETTING_THREADS] = {.type = TYPE_COUNT, .count_maximum = CORE_THREADS_MAX},
    [CORE_SETTING_LOAD_BUDGET] = {.type = TYPE_SIZE, .size_minimum = CORE_LOAD_BUDGET_MIN},
    [CORE_SETTING_LOAD_SLOT] = {.type = TYPE_SIZE, .size_minimum = CORE_LOAD_BUDGET_MIN},
    [CORE_SETTING_PIN_PIECE] = {.type = TYPE_SIZE, .size_minimum = SMALLEST_PAGE},
    [CORE_SETTING_HUGE_THRESHOLD] = {.type = TYPE_SIZE},
    [CORE_SETTING_DEVICE_PARAMETERS] = {.type = TYPE_RULES},
    [CORE_SETTING_SIM_MEMORY] = {.type = TYPE_CHOICE, .choices = sim_memory_choices},
    [CORE_SETTING_PINNED_POOL_SIZE] = {.type = TYPE_SIZE},
    [CORE_SETTING_PINNED_POOL_MAX] = {.type = TYPE_SIZE},
    [CORE_SETTING_KERNEL_COPY] = {.type = TYPE_SIZE, .takes_auto = true},
    [CORE_SETTING_HOST_AS_PINNED] = {.type = TYPE_SIZE},
};

union value {
    size_t size;
    uint64_t count;
    double share;
    unsigned choice;
};

/* Longest value, its NUL included; rules for devices are the longest by far. */
#define VALUE_TEXT_MAX   1024
#define CHOICES_TEXT_MAX 64

/* Guarded by the lock of the process. Values are read on slow paths only. */
static struct state {
    bool configured; /* by raffia_config_set(); `text` and `value` hold it */
    bool warned;     /* of a bad environment value */
    char text[VALUE_TEXT_MAX];
    union value value;
} states[CORE_SETTING_COUNT];

static atomic_ulong version = 1;

static raffia_status parse_choice(const struct choice *choices, const char *text, unsigned *value_p)
{
    char allowed[CHOICES_TEXT_MAX] = "";
    for (const struct choice *choice = choices; choice->word; choice++) {
        if (strcmp(text, choice->word) == 0) {
            *value_p = choice->value;
            return RAFFIA_OK;
        }
        size_t length = strlen(allowed);
        snprintf(allowed + length, sizeof allowed - length, "%s%s", length ? ", " : "",
                 choice->word);
    }
    return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "'%.80s' is none of %s", text, allowed);
}

static raffia_status parse_size(const struct spec *spec, const char *text, size_t *size_p)
{
    size_t size;
    if (spec->takes_auto && strcmp(text, "auto") == 0) {
        *size_p = CORE_SIZE_AUTO;
        return RAFFIA_OK;
    }
    raffia_status status = core_parse_size_or_none(text, &size);
    if (status)
        return status;
    char least[CORE_SIZE_TEXT_MAX];
    if (size < spec->size_minimum)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "'%.80s' is less than the %s needed", text,
                          core_format_size(spec->size_minimum, least));
    if (spec->power_of_two && !core_is_power_of_two(size))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "'%.80s' is not a power of two; 2MiB and 1GiB are usual", text);
    *size_p = size;
    return RAFFIA_OK;
}

/* Rules are read again for the device they are asked about: there is no value to keep. */
static raffia_status parse_rules(const char *text)
{
    struct core_device_rule rule;
    if (strlen(text) >= VALUE_TEXT_MAX)
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT, "it is longer than %d characters",
                          VALUE_TEXT_MAX - 1);
    return core_device_rules_find(text, "", &rule);
}

static raffia_status parse(enum core_setting setting, const char *text, union value *value)
{
    const struct spec *spec = &specs[setting];
    switch (spec->type) {
    case TYPE_SIZE:
        return parse_size(spec, text, &value->size);
    case TYPE_COUNT:
        return core_parse_count(text, spec->count_maximum, &value->count);
    case TYPE_CHOICE:
        return parse_choice(spec->choices, text, &value->choice);
    case TYPE_SHARE:
        return core_parse_share(text, spec->share_maximum, &value->share);
    case TYPE_RULES:
        return parse_rules(text);
    }
    return core_error(RAFFIA_ERROR_CORRUPT, "setting %s has no type", table[setting].name);
}

/* A setting as it stands: its text, its value, and where they come from. */
struct reading {
    const char *text;
    const char *variable; /* that it was, or would be, read from */
    union value value;
    bool given; /* by the environment or raffia_config_set() rather than defaulted */
    bool bad;   /* the environment's value does not parse: raffia_last_error() says why */
    bool warn;  /* and that is met for the first time */
};

/* The text may be that of `states`: with the lock held it stays valid. */
static struct reading read_locked(enum core_setting setting)
{
    struct state *state = &states[setting];
    if (state->configured)
        return (struct reading){.text = state->text, .value = state->value, .given = true};
    struct reading reading = {.variable = table[setting].environment};
    reading.text = getenv(reading.variable);
    bool present = reading.text && *reading.text;
    if (!present && aliases[setting]) {
        reading.variable = aliases[setting];
        reading.text = getenv(reading.variable);
        present = reading.text && *reading.text;
    }
    if (present && parse(setting, reading.text, &reading.value) == RAFFIA_OK) {
        reading.given = true;
        return reading;
    }
    reading.bad = present;
    reading.warn = present && !state->warned;
    state->warned |= reading.warn;
    reading.text = table[setting].fallback;
    return reading;
}

/* Warns of a bad value once, and takes the failure to parse it back: who reads a setting did not
 * fail. Without the lock: the log's sink may be the user's, and may ask for a setting. */
static void settle(enum core_setting setting, const struct reading *reading,
                   const struct core_error_record *before)
{
    const char *fallback = table[setting].fallback;
    if (setting == CORE_SETTING_PAGES) /* who asks matters, and has a default of its own */
        fallback = "the defaults: try where a pool is made on purpose, off elsewhere";
    if (reading->warn)
        core_log_warn("%s is ignored: %s; using %s", reading->variable, raffia_last_error(),
                      *fallback ? fallback : "the general settings");
    if (reading->bad)
        core_error_restore(before);
}

static struct reading read_setting(enum core_setting setting)
{
    struct core_error_record before;
    core_error_save(&before);
    core_process_lock();
    struct reading reading = read_locked(setting);
    core_process_unlock();
    settle(setting, &reading, &before);
    if (!reading.given)
        parse(setting, table[setting].fallback, &reading.value);
    return reading;
}

size_t core_setting_size(enum core_setting setting)
{
    return read_setting(setting).value.size;
}

uint64_t core_setting_count(enum core_setting setting)
{
    return read_setting(setting).value.count;
}

double core_setting_share(enum core_setting setting)
{
    return read_setting(setting).value.share;
}

unsigned core_setting_choice(enum core_setting setting)
{
    return read_setting(setting).value.choice;
}

bool core_setting_given(enum core_setting setting)
{
    return read_setting(setting).given;
}

void core_setting_device_rule(const char *model, struct core_device_rule *rule)
{
    char text[VALUE_TEXT_MAX];
    struct core_error_record before;
    core_error_save(&before);
    core_process_lock();
    struct reading reading = read_locked(CORE_SETTING_DEVICE_PARAMETERS);
    snprintf(text, sizeof text, "%s", reading.text);
    core_process_unlock();
    settle(CORE_SETTING_DEVICE_PARAMETERS, &reading, &before);
    *rule = (struct core_device_rule){0};
    (void)core_device_rules_find(text, model, rule); /* it was found good when it was read */
}

unsigned long core_settings_version(void)
{
    return atomic_load_explicit(&version, memory_order_relaxed);
}

static raffia_status find_setting(const char *name, enum core_setting *setting_p)
{
    for (int i = 0; name && i < CORE_SETTING_COUNT; i++)
        if (strcmp(name, table[i].name) == 0) {
            *setting_p = (enum core_setting)i;
            return RAFFIA_OK;
        }
    return core_error(RAFFIA_ERROR_NOT_FOUND, "there is no setting '%.80s'",
                      name ? name : "(null)");
}

raffia_status raffia_config_set(const char *name, const char *text)
{
    enum core_setting setting;
    raffia_status status = find_setting(name, &setting);
    if (status)
        return status;
    union value value = {0};
    if (text) {
        status = parse(setting, text, &value);
        if (status)
            return core_error_prefix("setting %s", name);
        if (strlen(text) >= VALUE_TEXT_MAX)
            return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                              "setting %s: the value is longer than %d characters", name,
                              VALUE_TEXT_MAX - 1);
    }
    core_process_lock();
    struct state *state = &states[setting];
    state->configured = text != NULL;
    state->value = value;
    snprintf(state->text, sizeof state->text, "%s", text ? text : "");
    atomic_fetch_add_explicit(&version, 1, memory_order_relaxed);
    core_process_unlock();
    if (setting == CORE_SETTING_LOG)
        raffia_log_set_level((raffia_log_level)core_setting_choice(CORE_SETTING_LOG));
    return RAFFIA_OK;
}

raffia_status raffia_config_get(const char *name, char *buffer, size_t capacity)
{
    enum core_setting setting;
    raffia_status status = find_setting(name, &setting);
    if (status)
        return status;
    struct core_error_record before;
    core_error_save(&before);
    core_process_lock();
    struct reading reading = read_locked(setting);
    size_t length = strlen(reading.text);
    if (length < capacity)
        memcpy(buffer, reading.text, length + 1);
    core_process_unlock();
    settle(setting, &reading, &before);
    if (length >= capacity)
        return core_error(RAFFIA_ERROR_LIMIT,
                          "setting %s: its text needs %zu bytes, the buffer has %zu", name,
                          length + 1, capacity);
    return RAFFIA_OK;
}

const raffia_setting *raffia_config_settings(size_t *count)
{
    *count = CORE_SETTING_COUNT;
    return table;
}
