/* The words for pages: kinds, reasons of falling back, modes. */
#include "core/settings.h"

#include <raffia/pages.h>

const char *raffia_page_kind_name(raffia_page_kind kind)
{
    switch (kind) {
    case RAFFIA_PAGE_NONE:
        return "none";
    case RAFFIA_PAGE_REGULAR:
        return "regular";
    case RAFFIA_PAGE_TRANSPARENT:
        return "transparent";
    case RAFFIA_PAGE_HUGETLB:
        return "hugetlb";
    case RAFFIA_PAGE_DEVICE:
        return "device";
    case RAFFIA_PAGE_KIND_COUNT:
        break;
    }
    return "unknown";
}

/* Reason, label, clause. The order is that of the enumeration. */
#define REASON_LIST(X)                                                                             \
    X(NONE, "none", "nothing was refused")                                                         \
    X(DISABLED, "disabled", "switched off by the administrator or for this process")               \
    X(UNSUPPORTED, "unsupported", "the kernel or device has no such pages")                        \
    X(POOL_EMPTY, "pool_empty", "the system's huge-page pool has too few free pages")              \
    X(CGROUP, "cgroup", "a limit of the control group (container) forbids it")                     \
    X(PERMISSION, "permission", "the caller lacks the right")                                      \
    X(NODE, "node", "the NUMA node asked for is short of memory")                                  \
    X(FAULT, "fault", "the kernel could not fill every page; memory is fragmented or short")       \
    X(MISALIGNED, "misaligned", "the driver returned an address that is not aligned to the page")  \
    X(SMALLER, "smaller", "read back, the pages were smaller than the driver said")                \
    X(MEMORY, "memory", "the machine or device is out of memory")                                  \
    X(LIMIT, "limit", "a limit on addresses, mappings or file descriptors was reached")            \
    X(EXHAUSTED, "exhausted", "the pool has no room left for the request")                         \
    X(PIN, "pin", "the device's driver would not pin the memory")

static const struct reason {
    const char *name, *text;
} reasons[RAFFIA_REASON_COUNT] = {
#define REASON_ROW(id, name, text) [RAFFIA_REASON_##id] = {name, text},
    REASON_LIST(REASON_ROW)
#undef REASON_ROW
};

static bool known_reason(raffia_fallback_reason reason)
{
    return (unsigned)reason < RAFFIA_REASON_COUNT;
}

const char *raffia_fallback_reason_name(raffia_fallback_reason reason)
{
    return known_reason(reason) ? reasons[reason].name : "unknown";
}

const char *raffia_fallback_reason_text(raffia_fallback_reason reason)
{
    return known_reason(reason) ? reasons[reason].text : "unknown reason";
}

const char *raffia_pages_mode_name(raffia_pages_mode mode)
{
    switch (mode) {
    case RAFFIA_PAGES_DEFAULT:
        return "default";
    case RAFFIA_PAGES_OFF:
        return "off";
    case RAFFIA_PAGES_TRY:
        return "try";
    case RAFFIA_PAGES_ON:
        return "on";
    }
    return "unknown";
}

raffia_pages_mode raffia_pages_mode_in_force(void)
{
    return (raffia_pages_mode)core_setting_choice(CORE_SETTING_PAGES);
}
