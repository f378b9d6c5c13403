/* What the facts mean, and what to do about it. */
#include "cli/doctor.h"
#include "core/text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* Share of the memory that a fix suggests to set aside; what a default pool takes. */
#define SUGGESTED_PERCENT 8

/* Fewer free bytes in whole huge blocks than this share of the free memory, and transparent pages
 * become a matter of luck. */
#define FRAGMENTED_PERCENT 25

/* Below this limit drivers that pin host memory are likely to be refused. */
#define LOCKED_ENOUGH (64 * MIB)

static struct doctor_finding *add(struct doctor_findings *findings, enum doctor_level level,
                                  const char *topic)
{
    assert(findings->count < DOCTOR_FINDINGS_MAX);
    struct doctor_finding *finding = &findings->items[findings->count++];
    *finding = (struct doctor_finding){.level = level, .topic = topic};
    return finding;
}

#define SAY(field, ...) (void)snprintf((field), sizeof(field), __VA_ARGS__)

static const char *size_text(uint64_t bytes, char buffer[static CORE_SIZE_TEXT_MAX])
{
    return core_format_size(bytes == HOST_UNLIMITED ? RAFFIA_NONE : (size_t)bytes, buffer);
}

/* Without these numbers nothing keeps a load from being killed for want of memory. */
static void add_unknown_memory(struct doctor_findings *findings)
{
    struct doctor_finding *finding = add(findings, DOCTOR_OK, "memory");
    SAY(finding->what, "how much there is cannot be told: /proc/meminfo cannot be read");
    SAY(finding->why, "Pools cannot be sized by it, nor refused before the machine is full.");
}

static void judge_memory(const struct host_facts *facts, struct doctor_findings *findings)
{
    if (facts->memory.total == HOST_UNLIMITED) {
        add_unknown_memory(findings);
        return;
    }
    const struct host_memory *memory = &facts->memory;
    char total[CORE_SIZE_TEXT_MAX], available[CORE_SIZE_TEXT_MAX], room[CORE_SIZE_TEXT_MAX];
    struct doctor_finding *finding = add(findings, DOCTOR_OK, "memory");
    SAY(finding->what, "%s in all, %s available, on %zu NUMA node%s",
        size_text(memory->total, total), size_text(memory->available, available), facts->node_count,
        facts->node_count == 1 ? "" : "s");
    if (memory->cgroup.limit == HOST_UNLIMITED)
        return;
    finding = add(findings, DOCTOR_OK, "memory limit");
    SAY(finding->what, "the control group allows %s, of which %s are left (%s)",
        size_text(memory->cgroup.limit, total), size_text(host_limit_room(&memory->cgroup), room),
        memory->cgroup.path);
    if (host_limit_room(&memory->cgroup) >= memory->available)
        return;
    finding->level = DOCTOR_WARNING;
    SAY(finding->why, "The limit is tighter than the machine: a load that needs more is ended by "
                      "the kernel. Pools respect it.");
    SAY(finding->fix, "echo max | sudo tee %s", memory->cgroup.path);
}

/* Pages worth setting aside for models on this machine. */
static uint64_t suggested_pages(const struct host_facts *facts, size_t page_size)
{
    uint64_t total = facts->memory.total == HOST_UNLIMITED ? 2 * GIB : facts->memory.total;
    uint64_t pages = total / 100 * SUGGESTED_PERCENT / page_size;
    return pages ? pages : 1;
}

#define COUNT_TEXT_MAX 192

/* Says where the number in the command comes from. */
static void explain_count(const struct host_facts *facts, const struct host_hugetlb_pool *pool,
                          char text[static COUNT_TEXT_MAX])
{
    (void)snprintf(
        text, COUNT_TEXT_MAX,
        "The command asks for the %llu pages there are and %llu more: %d %% of %s, which "
        "a default pool takes, and one at least.",
        (unsigned long long)pool->total,
        (unsigned long long)suggested_pages(facts, pool->page_size), SUGGESTED_PERCENT,
        facts->memory.total == HOST_UNLIMITED ? "2 GiB, as the memory is unknown" : "the memory");
}

/* Says why, and the command that makes the pool larger. */
static void suggest_pool(const struct host_facts *facts, const struct host_hugetlb_pool *pool,
                         const char *why, struct doctor_finding *finding)
{
    char count[COUNT_TEXT_MAX];
    uint64_t pages = pool->total + suggested_pages(facts, pool->page_size);
    explain_count(facts, pool, count);
    if (pool->page_size >= GIB)
        SAY(finding->why,
            "%s %s Asking at run time is a matter of luck; booting with hugepagesz=1G "
            "hugepages=%llu is not.",
            why, count, (unsigned long long)pages);
    else
        SAY(finding->why,
            "%s %s Read the number back: the kernel may give fewer. A resident model wants 1.2 "
            "times its weights.",
            why, count);
    SAY(finding->fix,
        "echo %llu | sudo tee " HOST_HUGEPAGES_DIRECTORY "/hugepages-%zukB/nr_hugepages",
        (unsigned long long)pages, pool->page_size / KIB);
}

/* Why none of the pool's pages can be had. */
static const char *shortage(const struct host_hugetlb_pool *pool)
{
    if (pool->free > 0)
        return "Every free page is promised to a mapping that has not touched it yet.";
    if (pool->total > 0)
        return "Other programs hold all pages of the pool.";
    if (pool->page_size == 2 * MIB)
        return "The pool is empty. Its pages are the only ones that the kernel never splits, and "
               "they need few page tables.";
    return "The pool is empty. Pages of this size are opt-in: they pay off for weights beyond 8 GB "
           "that are loaded tens of times a day.";
}

static void judge_pool_count(const struct host_facts *facts, const struct host_hugetlb_pool *pool,
                             struct doctor_findings *findings)
{
    char size[CORE_SIZE_TEXT_MAX];
    struct doctor_finding *finding = add(findings, DOCTOR_OK, "hugetlb pool");
    SAY(finding->what,
        "%s pages: %llu in the pool, %llu free of which %llu are promised, %llu surplus of %llu "
        "allowed: %llu can be had",
        core_format_size(pool->page_size, size), (unsigned long long)pool->total,
        (unsigned long long)pool->free, (unsigned long long)pool->reserved,
        (unsigned long long)pool->surplus, (unsigned long long)pool->overcommit,
        (unsigned long long)host_hugetlb_available(pool));
    if (host_hugetlb_available(pool) > 0)
        return;
    /* Pages other than the usual 2 MiB are an option that most machines do without. */
    finding->level = pool->page_size == 2 * MIB ? DOCTOR_PROBLEM : DOCTOR_OK;
    suggest_pool(facts, pool, shortage(pool), finding);
}

static void judge_pool_limits(const struct host_hugetlb_pool *pool,
                              struct doctor_findings *findings)
{
    char size[CORE_SIZE_TEXT_MAX], room[CORE_SIZE_TEXT_MAX];
    uint64_t touch = host_limit_room(&pool->fault), map = host_limit_room(&pool->reservation);
    if (touch == HOST_UNLIMITED && map == HOST_UNLIMITED)
        return;
    bool touch_is_tighter = touch <= map;
    const char *path = touch_is_tighter ? pool->fault.path : pool->reservation.path;
    uint64_t left = touch_is_tighter ? touch : map;
    struct doctor_finding *finding = add(findings, DOCTOR_OK, "hugetlb limit");
    SAY(finding->what, "the control group leaves %s in %s pages (%s)", size_text(left, room),
        core_format_size(pool->page_size, size), path);
    if (left < pool->page_size) {
        finding->level = DOCTOR_PROBLEM;
        SAY(finding->why, "Not one page may be used, however many the pool has. Kubernetes sets "
                          "this for pods that do not ask for huge pages in resources.limits.");
    } else if (touch < map) {
        finding->level = DOCTOR_WARNING;
        SAY(finding->why, "Reservations are allowed more: a program that does not try its pages "
                          "first dies of SIGBUS when it touches one too many. Raffia tries them.");
    } else {
        return;
    }
    SAY(finding->fix, "echo max | sudo tee %s", path);
}

static void judge_pool_nodes(const struct host_hugetlb_pool *pool, struct doctor_findings *findings)
{
    char size[CORE_SIZE_TEXT_MAX];
    if (pool->node_count < 2 || pool->free == 0)
        return;
    for (size_t i = 0; i < pool->node_count; i++) {
        const struct host_node_pages *node = &pool->nodes[i];
        if (node->free > 0)
            continue;
        struct doctor_finding *finding = add(findings, DOCTOR_WARNING, "hugetlb nodes");
        SAY(finding->what, "NUMA node %d has none of the %llu free %s pages", node->node,
            (unsigned long long)pool->free, core_format_size(pool->page_size, size));
        SAY(finding->why, "A pool bound to that node falls back, although the machine has pages.");
        SAY(finding->fix,
            "echo %llu | sudo tee " HOST_NODES_DIRECTORY
            "/node%d/hugepages/hugepages-%zukB/nr_hugepages",
            (unsigned long long)(node->total + pool->free / pool->node_count + 1), node->node,
            pool->page_size / KIB);
        return; /* one node shows the command; the others follow from it */
    }
}

static void judge_pools(const struct host_facts *facts, struct doctor_findings *findings)
{
    if (facts->pool_count == 0) {
        struct doctor_finding *finding = add(findings, DOCTOR_WARNING, "hugetlb pool");
        SAY(finding->what, "this kernel shows no hugetlb pages (no " HOST_HUGEPAGES_DIRECTORY ")");
        SAY(finding->why, "Transparent huge pages remain, a weaker promise.");
        SAY(finding->fix,
            "mount /sys if it is missing, else use a kernel built with CONFIG_HUGETLBFS");
    }
    for (size_t i = 0; i < facts->pool_count; i++) {
        judge_pool_count(facts, &facts->pools[i], findings);
        judge_pool_limits(&facts->pools[i], findings);
        judge_pool_nodes(&facts->pools[i], findings);
    }
}

static void judge_thp_switch(const struct host_thp *thp, struct doctor_findings *findings)
{
    char size[CORE_SIZE_TEXT_MAX];
    struct doctor_finding *finding = add(findings, DOCTOR_OK, "transparent pages");
    SAY(finding->what, "%s pages, mode \"%s\" (%s)", core_format_size(thp->page_size, size),
        thp->anonymous, thp->anonymous_path);
    if (strcmp(thp->anonymous, "never") == 0) {
        finding->level = DOCTOR_PROBLEM;
        SAY(finding->why, "The administrator switched them off, so regular pages are what is left "
                          "when the hugetlb pool is empty.");
        SAY(finding->fix, "echo madvise | sudo tee %s", thp->anonymous_path);
    }
    if (!thp->process_disabled)
        return;
    finding = add(findings, DOCTOR_PROBLEM, "transparent pages");
    SAY(finding->what, "they are switched off for this process (PR_SET_THP_DISABLE)");
    SAY(finding->why, "Whoever started this program set the switch, and children inherit it.");
    SAY(finding->fix, "start the program without prctl(PR_SET_THP_DISABLE, 1): look at the service "
                      "manager, the container runtime or the job scheduler");
}

static void judge_thp_making(const struct host_facts *facts, struct doctor_findings *findings)
{
    const struct host_thp *thp = &facts->thp;
    struct doctor_finding *finding;
    if (strcmp(thp->defrag, "never") == 0) {
        finding = add(findings, DOCTOR_WARNING, "transparent pages");
        SAY(finding->what, "the kernel never compacts memory to make them (defrag \"never\")");
        SAY(finding->why, "They come only from memory that happens to be whole.");
        SAY(finding->fix, "echo madvise | sudo tee " HOST_THP_DIRECTORY "/defrag");
    }
    if (strcmp(thp->shared, "never") == 0 || strcmp(thp->shared, "deny") == 0) {
        finding = add(findings, DOCTOR_OK, "transparent pages");
        SAY(finding->what, "shared memory gets none by itself (shmem \"%s\")", thp->shared);
        SAY(finding->why,
            "Only remappable and shareable pools are made of it; theirs are collapsed "
            "afterwards, which \"deny\" forbids.");
        SAY(finding->fix, "echo advise | sudo tee " HOST_THP_DIRECTORY "/shmem_enabled");
    }
    char whole[CORE_SIZE_TEXT_MAX], size[CORE_SIZE_TEXT_MAX];
    finding = add(findings, DOCTOR_OK, "fragmentation");
    SAY(finding->what, "%s are free in blocks of %s and more",
        size_text(facts->huge_blocks_bytes, whole), core_format_size(thp->page_size, size));
    if (facts->memory.available == HOST_UNLIMITED ||
        facts->huge_blocks_bytes >= facts->memory.available / 100 * FRAGMENTED_PERCENT)
        return;
    finding->level = DOCTOR_WARNING;
    SAY(finding->why, "Much of the available memory is in smaller pieces or holds file cache: huge "
                      "pages take longer to make, or fail.");
    SAY(finding->fix, "echo 1 | sudo tee /proc/sys/vm/compact_memory");
}

static void judge_thp(const struct host_facts *facts, struct doctor_findings *findings)
{
    if (facts->thp.present) {
        judge_thp_switch(&facts->thp, findings);
        judge_thp_making(facts, findings);
        return;
    }
    struct doctor_finding *finding = add(findings, DOCTOR_WARNING, "transparent pages");
    SAY(finding->what, "this kernel shows no transparent huge pages (no " HOST_THP_DIRECTORY ")");
    SAY(finding->why, "When the hugetlb pool is empty regular pages are all that is left.");
    SAY(finding->fix,
        "mount /sys if it is missing, else use a kernel built with CONFIG_TRANSPARENT_HUGEPAGE");
}

static void judge_limits(const struct host_facts *facts, struct doctor_findings *findings)
{
    char locked[CORE_SIZE_TEXT_MAX];
    struct doctor_finding *finding = add(findings, DOCTOR_OK, "locked memory");
    SAY(finding->what, "limit %s (RLIMIT_MEMLOCK)", size_text(facts->locked_memory_limit, locked));
    if (facts->locked_memory_limit >= LOCKED_ENOUGH)
        return;
    SAY(finding->why, "Huge pages need no right to lock memory; some device drivers do when they "
                      "pin it. For good it is set in /etc/security/limits.conf (memlock).");
    SAY(finding->fix, "ulimit -l unlimited");
}

static void judge_feature(struct doctor_findings *findings, bool there, const char *what,
                          const char *why, const char *release)
{
    struct doctor_finding *finding = add(findings, there ? DOCTOR_OK : DOCTOR_WARNING, "kernel");
    SAY(finding->what, "%s: %s", what, there ? "yes" : "no");
    if (there)
        return;
    SAY(finding->why, "%s", why);
    SAY(finding->fix, "use Linux %s or newer", release);
}

static void judge_cachestat(int error_number, struct doctor_findings *findings)
{
    judge_feature(findings, error_number == 0, "counts cached pages of a file (cachestat)",
                  "The reader cannot tell what is in the page cache and asks in a slower way.",
                  "6.5");
    if (error_number && error_number != ENOSYS) /* it is there, and refused */
        SAY(findings->items[findings->count - 1].fix,
            "allow the system call: it is there but refused (%s), most likely by the seccomp "
            "filter of a container or service",
            strerror(error_number));
}

static void judge_kernel(const struct host_facts *facts, const struct doctor_features *features,
                         struct doctor_findings *findings)
{
    struct doctor_finding *finding = add(findings, DOCTOR_OK, "kernel");
    SAY(finding->what, "Linux %s", facts->kernel_release);
    judge_feature(findings, features->populate, "fills pages in one call (MADV_POPULATE_WRITE)",
                  "Pages are touched one by one, and a page that cannot be had is a signal.",
                  "5.14");
    judge_cachestat(features->cachestat_error, findings);
    judge_feature(findings, facts->pagemap_scan, "tells page sizes quickly (PAGEMAP_SCAN)",
                  "Page sizes are read from smaps, which is slower and counts whole mappings.",
                  "6.7");
}

void doctor_judge(const struct host_facts *facts, const struct doctor_features *features,
                  struct doctor_findings *findings)
{
    findings->count = 0;
    judge_memory(facts, findings);
    judge_pools(facts, findings);
    judge_thp(facts, findings);
    judge_limits(facts, findings);
    judge_kernel(facts, features, findings);
}
