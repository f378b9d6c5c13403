#include "cli/page_text.h"

#include "core/text.h"

#include <stdio.h>
#include <string.h>

const char *page_text_kind(raffia_page_kind kind, size_t size, char buffer[static PAGE_TEXT_MAX])
{
    char text[CORE_SIZE_TEXT_MAX];
    snprintf(buffer, PAGE_TEXT_MAX, "%s %s", core_format_size(size, text),
             raffia_page_kind_name(kind));
    return buffer;
}

const char *page_text_evidence(const char *evidence, char buffer[static PAGE_TEXT_MAX])
{
    /* One kind of evidence is no source but an argument, and brings its preposition along. */
    snprintf(buffer, PAGE_TEXT_MAX, "verified %s%s", strncmp(evidence, "by ", 3) ? "by " : "",
             evidence);
    return buffer;
}

const char *page_text_report(const raffia_page_report *pages, char buffer[static PAGE_TEXT_MAX])
{
    char asked[PAGE_TEXT_MAX], got[PAGE_TEXT_MAX], part[CORE_SIZE_TEXT_MAX];
    char whole[CORE_SIZE_TEXT_MAX], proof[PAGE_TEXT_MAX / 2], evidence[PAGE_TEXT_MAX];
    if (pages->verified_size)
        snprintf(proof, sizeof proof, "%.60s in %s of %s",
                 page_text_evidence(pages->evidence, evidence),
                 core_format_size(pages->verified_bytes, part),
                 core_format_size(pages->total_bytes, whole));
    else
        snprintf(proof, sizeof proof, "not verified");
    /* Each part is far shorter than its room: the precisions only tell the compiler. */
    snprintf(buffer, PAGE_TEXT_MAX, "asked for %.60s, got %.60s, %s",
             page_text_kind(pages->asked_kind, pages->asked_size, asked),
             page_text_kind(pages->got_kind, pages->got_size, got), proof);
    return buffer;
}

const char *page_text_reason(const raffia_page_report *pages, char buffer[static PAGE_TEXT_MAX])
{
    char asked[PAGE_TEXT_MAX];
    snprintf(buffer, PAGE_TEXT_MAX, "not %.60s because %s (%s)",
             page_text_kind(pages->asked_kind, pages->asked_size, asked),
             raffia_fallback_reason_text(pages->reason),
             raffia_fallback_reason_name(pages->reason));
    return buffer;
}
