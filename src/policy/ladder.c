/* The ladder of page kinds: which to try, in which order. */
#include "policy/ladder.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"

bool policy_is_huge(raffia_page_kind kind)
{
    return kind == RAFFIA_PAGE_HUGETLB || kind == RAFFIA_PAGE_TRANSPARENT ||
           kind == RAFFIA_PAGE_DEVICE;
}

static void add_rung(struct policy_ladder *ladder, raffia_page_offer offer)
{
    if (ladder->count < POLICY_RUNGS_MAX)
        ladder->rungs[ladder->count++] = offer;
}

/* Offers are sorted, largest first and the stronger kind first, so they are rungs in order. */
static void add_huge_rungs(struct policy_ladder *ladder, size_t page_size,
                           const raffia_device_info *device)
{
    for (size_t i = 0; i < device->page_count; i++)
        if (policy_is_huge(device->pages[i].kind) && device->pages[i].size <= page_size)
            add_rung(ladder, device->pages[i]);
}

static void add_regular_rung(struct policy_ladder *ladder, const raffia_device_info *device)
{
    for (size_t i = 0; i < device->page_count; i++)
        if (!policy_is_huge(device->pages[i].kind)) {
            add_rung(ladder, device->pages[i]);
            return;
        }
}

raffia_status policy_ladder_make(raffia_pages_mode mode, size_t page_size,
                                 const raffia_device_info *device, struct policy_ladder *ladder)
{
    char size_text[CORE_SIZE_TEXT_MAX];
    if (!core_is_power_of_two(page_size))
        return core_error(RAFFIA_ERROR_INVALID_ARGUMENT,
                          "page size %zu is not a power of two; 2 MiB and 1 GiB are usual",
                          page_size);
    struct policy_ladder made = {0};
    if (mode != RAFFIA_PAGES_OFF)
        add_huge_rungs(&made, page_size, device);
    if (mode == RAFFIA_PAGES_ON && made.count == 0)
        return core_error(
            RAFFIA_ERROR_NO_HUGE_PAGES,
            "device '%s' offers no huge pages of %s or less, and pages=on requires them",
            device->name, core_format_size(page_size, size_text));
    if (mode != RAFFIA_PAGES_ON)
        add_regular_rung(&made, device);
    /* A device with huge pages only (a GPU's memory) serves "off" with its smallest. */
    if (made.count == 0 && device->page_count > 0)
        add_rung(&made, device->pages[device->page_count - 1]);
    if (made.count == 0)
        return core_error(RAFFIA_ERROR_UNSUPPORTED, "device '%s' offers no pages at all",
                          device->name);
    *ladder = made;
    return RAFFIA_OK;
}

bool policy_reason_allows_fallback(raffia_fallback_reason reason)
{
    /* NONE: the failure is not about pages. MEMORY: smaller pages would need the same bytes. */
    return reason != RAFFIA_REASON_NONE && reason != RAFFIA_REASON_MEMORY;
}
