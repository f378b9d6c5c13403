#include "driver/host/process_limits.h"

#include "core/memory.h"
#include "core/text.h"

#include <stdio.h>

static const struct {
    enum host_counted counted;
    const char *limit_key; /* in /proc/self/limits */
    const char *usage_key; /* in /proc/self/status */
    const char *option;    /* of ulimit */
    const char *what;
} limits[] = {
    {HOST_COUNTED_ADDRESSES, "Max address space", "VmSize:", "-v", "addresses"},
    {HOST_COUNTED_DATA, "Max data size", "VmData:", "-d", "private memory"},
};

/* HOST_UNLIMITED if the file does not say. */
static uint64_t read_number(const char *path, const char *key,
                            bool (*find)(const char *text, const char *key, uint64_t *value_p))
{
    char *text = host_read_whole(path);
    uint64_t value = HOST_UNLIMITED;
    if (text)
        (void)find(text, key, &value);
    core_free(text);
    return value;
}

uint64_t host_process_limit(const char *key)
{
    return read_number("/proc/self/limits", key, host_find_number);
}

const char *host_process_limit_text(size_t bytes, unsigned counted,
                                    char text[static HOST_LIMIT_TEXT_MAX])
{
    char most[CORE_SIZE_TEXT_MAX], taken[CORE_SIZE_TEXT_MAX];
    text[0] = '\0';
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!(counted & (unsigned)limits[i].counted))
            continue;
        const uint64_t limit = host_process_limit(limits[i].limit_key);
        if (limit == HOST_UNLIMITED)
            continue;
        const uint64_t usage =
            read_number("/proc/self/status", limits[i].usage_key, host_find_kilobytes);
        if (usage == HOST_UNLIMITED || bytes <= host_subtract(limit, usage))
            continue;
        snprintf(text, HOST_LIMIT_TEXT_MAX,
                 "the process may have %s of %s, of which %s are used (ulimit %s)",
                 core_format_size((size_t)limit, most), limits[i].what,
                 core_format_size((size_t)usage, taken), limits[i].option);
        break;
    }
    return text;
}
