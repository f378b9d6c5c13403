/*
 * What this machine, its control groups and this process allow in the way of pages, now.
 *
 * Everything is read through sys_read_text(), so that tests can show a machine that is not there. A
 * file that is missing leaves its field at "no limit", "not known" or zero: reading facts never
 * fails.
 */
#ifndef DRIVER_HOST_FACTS_H
#define DRIVER_HOST_FACTS_H

#include "driver/host/cgroup.h"
#include "driver/host/procfile.h"

#include <raffia/base.h>
#include <raffia/device.h>

/* Regular and transparent pages take two of the places a device has for page sizes. */
#define HOST_POOLS_MAX (RAFFIA_PAGE_SIZES_MAX - 2)

/* NUMA nodes described one by one. */
#define HOST_NODES_MAX 64

/* The directories of one pool, for reading and for sentences that name them. */
#define HOST_HUGEPAGES_DIRECTORY "/sys/kernel/mm/hugepages"
#define HOST_THP_DIRECTORY       "/sys/kernel/mm/transparent_hugepage"
#define HOST_NODES_DIRECTORY     "/sys/devices/system/node"

struct host_node_pages {
    int node;
    uint64_t total, free, surplus; /* pages */
};

/* The system's pool of hugetlb pages of one size. Counts are pages. */
struct host_hugetlb_pool {
    size_t page_size;
    uint64_t total, free;
    uint64_t reserved;   /* promised to mappings that have not touched them: not available */
    uint64_t surplus;    /* allocated beyond the pool's size */
    uint64_t overcommit; /* how many surplus pages there may be */
    size_t node_count;
    struct host_node_pages nodes[HOST_NODES_MAX];
    struct host_limit fault, reservation; /* control-group limits */
};

/* Room for the longest mode, "defer+madvise" so far. */
#define HOST_THP_MODE_MAX 24

/* Transparent huge pages. The modes are the words in brackets, "" where the file is missing. */
struct host_thp {
    bool present;
    size_t page_size;                   /* of a whole page-table directory entry: 2 MiB on x86 */
    char anonymous[HOST_THP_MODE_MAX];  /* the mode that applies to pages of page_size */
    char anonymous_path[HOST_PATH_MAX]; /* the file it stands in */
    char shared[HOST_THP_MODE_MAX];     /* shmem_enabled: memfd */
    char defrag[HOST_THP_MODE_MAX];
    bool process_disabled; /* prctl(PR_SET_THP_DISABLE) */
};

/* Ordinary memory. */
/* What this process is about to fill (claims.h) counts as used. */
struct host_memory {
    uint64_t total, available; /* of the machine; HOST_UNLIMITED if not known */
    struct host_limit cgroup;
};

struct host_facts {
    char kernel_release[64];
    size_t base_page_size;
    struct host_memory memory;
    struct host_thp thp;
    size_t pool_count; /* largest page size first */
    struct host_hugetlb_pool pools[HOST_POOLS_MAX];
    size_t node_count; /* NUMA nodes online; at least 1 */
    bool pagemap_scan; /* the kernel and this process's rights allow PAGEMAP_SCAN */
    /* Free memory in blocks that could become a transparent huge page at once, bytes. */
    uint64_t huge_blocks_bytes;
    uint64_t locked_memory_limit; /* RLIMIT_MEMLOCK, bytes */
    uint64_t open_files_limit;    /* RLIMIT_NOFILE */
};

/* Reads everything, some dozens of small files. The structure takes about 20 KiB. */
void host_facts_read(struct host_facts *facts);

/* Parts of it, for those who need no more. */
size_t host_base_page_size(void);
void host_memory_read(struct host_memory *memory);
void host_thp_read(struct host_thp *thp);
size_t host_thp_page_size(void); /* 0 if the kernel has no transparent pages */
uint64_t host_open_files_limit(void);

/* Bytes of ordinary memory that can be touched before somebody is killed for it. */
uint64_t host_memory_room(const struct host_memory *memory);

/* How much of that room can be filled: page tables, and what a program needs to use what it got,
 * are left out. */
uint64_t host_fillable(uint64_t room);

/* The same on one NUMA node; HOST_UNLIMITED if its file is missing. */
uint64_t host_node_room(int node);

/* The kernel's list of NUMA nodes, "0-1,4"; "" if it has none. Returns `text`. */
#define HOST_ONLINE_MAX 256
const char *host_nodes_text(char text[static HOST_ONLINE_MAX]);

/* NUMA nodes online, ascending, up to `capacity`; returns how many there are. */
size_t host_nodes(int *nodes, size_t capacity);

/* Hugetlb page sizes the kernel offers, largest first, up to `capacity`; returns how many there
 * are. */
size_t host_hugetlb_sizes(size_t *sizes, size_t capacity);

/* One pool; its counts are zero if the kernel has no such pages. */
void host_hugetlb_pool_read(size_t page_size, struct host_hugetlb_pool *pool);

/* Pages that a new mapping can reserve: free ones that nobody was promised, and surplus ones. */
uint64_t host_hugetlb_available(const struct host_hugetlb_pool *pool);

#endif
