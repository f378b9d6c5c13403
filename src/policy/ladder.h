/*
 * Which pages to try, in which order. A pure decision: nothing here allocates or asks the system.
 */
#ifndef POLICY_LADDER_H
#define POLICY_LADDER_H

#include <raffia/device.h>
#include <raffia/pages.h>
#include <raffia/status.h>

#define POLICY_RUNGS_MAX (RAFFIA_PAGE_SIZES_MAX + 1)

struct policy_ladder {
    size_t count;
    raffia_page_offer rungs[POLICY_RUNGS_MAX]; /* first is what was asked for */
};

/*
 * Fills in the rungs for a device. OFF: regular pages only. TRY: huge pages of at most `page_size`,
 * largest first (hugetlb before transparent at one size), then regular. ON: the same without the
 * regular rung. 1 GiB pages only if page_size says so.
 *
 * NO_HUGE_PAGES with mode ON on a device that offers none; INVALID_ARGUMENT for a page size that is
 * not a power of two.
 */
raffia_status policy_ladder_make(raffia_pages_mode mode, size_t page_size,
                                 const raffia_device_info *device, struct policy_ladder *ladder);

/* True for every kind but regular pages (and none). */
bool policy_is_huge(raffia_page_kind kind);

/* True if taking the next rung may help: the failure is about pages, not about the request. */
bool policy_reason_allows_fallback(raffia_fallback_reason reason);

#endif
