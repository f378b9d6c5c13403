#include "driver/host/verify.h"

#include "core/sys.h"
#include "driver/host/facts.h"
#include "driver/host/pagemap.h"
#include "driver/host/verbs.h"

static const struct driver_page_evidence unknown = {.source = "none"};

/* Transparent and regular pages share mappings and differ page by page. */
static void read_base_or_huge(const void *at, size_t bytes, raffia_page_kind kind, size_t expected,
                              struct driver_page_evidence *evidence)
{
    size_t base = host_base_page_size(), huge;
    const char *source = "pagemap";
    bool found = host_huge_bytes_by_scan(at, bytes, &huge);
    if (!found && kind == RAFFIA_PAGE_REGULAR) {
        /* No hardware page is smaller than the base page, so there is nothing more to find out. */
        *evidence = (struct driver_page_evidence){.smallest = base,
                                                  .conforming = expected <= base ? bytes : 0,
                                                  .verified = expected <= base,
                                                  .source = "by construction"};
        return;
    }
    if (!found) {
        source = "smaps";
        found = host_huge_bytes_by_smaps(at, bytes, &huge);
    }
    struct host_thp thp;
    host_thp_read(&thp);
    if (!found || (huge && !thp.page_size)) {
        *evidence = unknown;
        return;
    }
    size_t conforming = expected <= base ? bytes : expected <= thp.page_size ? huge : 0;
    *evidence = (struct driver_page_evidence){.smallest = huge == bytes ? thp.page_size : base,
                                              .conforming = conforming,
                                              .verified = true,
                                              .source = source};
}

static void read_hugetlb(const void *at, size_t bytes, size_t expected,
                         struct driver_page_evidence *evidence)
{
    struct host_mapped_sizes sizes;
    const char *source = "maps";
    bool found = host_mapped_sizes_by_query(at, bytes, expected, &sizes);
    if (!found) {
        source = "smaps";
        found = host_mapped_sizes_by_smaps(at, bytes, expected, &sizes);
    }
    if (!found) {
        *evidence = unknown;
        return;
    }
    *evidence = (struct driver_page_evidence){.smallest = sizes.smallest,
                                              .conforming = sizes.conforming,
                                              .verified = sizes.covered == bytes,
                                              .source = source};
}

/* Evidence for a mapped range by its addresses alone, from the kernel's tables. */
static void read_pages(const void *at, size_t bytes, raffia_page_kind kind, size_t expected,
                       struct driver_page_evidence *evidence)
{
    switch (kind) {
    case RAFFIA_PAGE_REGULAR:
    case RAFFIA_PAGE_TRANSPARENT:
        read_base_or_huge(at, bytes, kind, expected, evidence);
        break;
    case RAFFIA_PAGE_HUGETLB:
        read_hugetlb(at, bytes, expected, evidence);
        break;
    default:
        *evidence = unknown;
        break;
    }
}

void host_read_chunk_pages(const struct host_chunk *chunk, const void *at,
                           struct driver_page_evidence *evidence)
{
    const struct driver_chunk_spec *spec = &chunk->spec;
    struct statfs system;
    if (spec->kind == RAFFIA_PAGE_HUGETLB && sys_fstatfs(chunk->fd, &system) == 0) {
        size_t page_size = (size_t)system.f_bsize;
        *evidence = (struct driver_page_evidence){
            .smallest = page_size,
            .conforming = page_size >= spec->page_size ? spec->bytes : 0,
            .verified = true,
            .source = "fstatfs"};
        return;
    }
    read_pages(at, spec->bytes, spec->kind, spec->page_size, evidence);
}

raffia_status host_page_size_of(int device, const void *at, size_t bytes, raffia_page_kind kind,
                                size_t expected, struct driver_page_evidence *evidence)
{
    (void)device;
    read_pages(at, bytes, kind, expected, evidence);
    return RAFFIA_OK;
}
