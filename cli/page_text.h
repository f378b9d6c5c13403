/*
 * Page reports as sentences.
 */
#ifndef CLI_PAGE_TEXT_H
#define CLI_PAGE_TEXT_H

#include <raffia/pages.h>

/* Room for any text made here. */
#define PAGE_TEXT_MAX 320

/* "verified by pagemap", "verified by construction". */
const char *page_text_evidence(const char *evidence, char buffer[static PAGE_TEXT_MAX]);

/* "2 MiB hugetlb". */
const char *page_text_kind(raffia_page_kind kind, size_t size, char buffer[static PAGE_TEXT_MAX]);

/* "asked for 2 MiB hugetlb, got 2 MiB transparent, verified by pagemap in 1 GiB of 1 GiB". */
const char *page_text_report(const raffia_page_report *pages, char buffer[static PAGE_TEXT_MAX]);

/* "not 2 MiB hugetlb because ... (pool_empty)". Pre: there is a reason. */
const char *page_text_reason(const raffia_page_report *pages, char buffer[static PAGE_TEXT_MAX]);

#endif
