/**
 * @file pool.h
 * @brief Pools of verified huge pages.
 *
 * A pool reserves one range of addresses, fills it with pages of one size (never mixed), reads the
 * page size back, and then serves blocks from it without a system call. Its bookkeeping lives apart
 * from the memory, so the memory may belong to a device.
 *
 * Creating a pool is the opt-in: with #RAFFIA_PAGES_DEFAULT and no process setting, a pool *tries*
 * huge pages (everything else defaults to regular memory).
 *
 * Beside what is listed with it each call answers #RAFFIA_ERROR_INVALID_ARGUMENT where it is given
 * NULL for a pool, or for something it must write to, and #RAFFIA_ERROR_FORKED in a forked child,
 * to which its parent's pools do not belong. Calls that hand out memory, resize blocks or trim
 * the pool answer #RAFFIA_ERROR_CORRUPT once it was found damaged. A pool may be used from several
 * threads at once, and a block be freed by another thread than the one that allocated it. Threads
 * that keep meeting in a pool without guards and stream order are given parts of it to themselves,
 * for their smaller blocks; what they do not use of it is taken back before the pool grows or
 * refuses a request.
 */
#ifndef RAFFIA_POOL_H
#define RAFFIA_POOL_H

#include <raffia/base.h>
#include <raffia/hint.h>
#include <raffia/pages.h>
#include <raffia/status.h>
#include <raffia/stream.h>

/** @addtogroup pool
 *  @{ */

/** A pool. Shared: raffia_pool_retain() and raffia_pool_release() count its owners. */
typedef struct raffia_pool raffia_pool;

/** Options of a pool that are on or off. */
typedef enum raffia_pool_flags {
    RAFFIA_POOL_REMAPPABLE = 1u << 0, /**< free chunks can be moved to other addresses: before the
                                           pool would refuse a request, it puts whole free ones
                                           together at one run of addresses. Blocks stay where they
                                           are, and nothing moves on regular pages. Its unit is
                                           chunk_bytes: 2 MiB where sizes vary much */
    RAFFIA_POOL_SHAREABLE = 1u << 1,  /**< chunks can be exported to other processes */
    RAFFIA_POOL_GUARD = 1u << 2,      /**< a guard behind each block: see raffia_guard_report */
    RAFFIA_POOL_FIXED = 1u << 3,      /**< the initial size is all there is: no growth, and nothing
                                           is given back before the end */
    RAFFIA_POOL_ADAPTIVE = 1u << 4,   /**< for pools that give memory back: learns which sizes have
                                           blocks left whenever idle chunks are given back (by
                                           raffia_pool_trim() above all), and keeps small blocks of
                                           such sizes together at the low end, so that they hold
                                           fewer chunks. Hints overrule it. Allocations and frees
                                           then take some ns more, and those it places take as long
                                           as one with a hint. A fixed pool has no use for it and
                                           does without */
} raffia_pool_flags;

/** Most bytes of a pool's name. */
#define RAFFIA_POOL_NAME_MAX 63u

/** How a pool is made. All zero (but struct_size) is a good pool. #RAFFIA_NONE is for initial_bytes
 *  and granule alone. */
typedef struct raffia_pool_options {
    size_t struct_size;      /**< sizeof(raffia_pool_options) */
    const char *device;      /**< see device.h; NULL = default device */
    const char *name;        /**< for logs and metrics; copied; at most #RAFFIA_POOL_NAME_MAX bytes;
                                  NULL = "pool" */
    raffia_pages_mode pages; /**< see above */
    size_t page_size;        /**< page size to start the ladder at, bytes: 2 MiB or 1 GiB; 0 = the
                                  setting `page_size`, 2 MiB */
    size_t initial_bytes;    /**< mapped and verified at creation; 0 = the maximum for a pool of
                                  default size and for a fixed one, else one chunk; #RAFFIA_NONE =
                                  nothing yet, which a fixed pool cannot begin with: which pages
                                  there are shows when the pool first grows, and until then its
                                  report names the first to try */
    size_t maximum_bytes;   /**< limit; 0 = the larger of initial_bytes and the default share of the
                                 device (8 %, at most 16 GiB, at most what is free; settings
                                 `pool_share`, `pool_maximum` and
                                 `device_parameters`). Of a fixed pool it is the initial size: 0,
                                 or the same in whole pages. Of a remappable one it is cut to whole
                                 chunks, or rounded up to them if the initial size is more */
    size_t chunk_bytes;     /**< unit of growth, trimming and remapping; 0 = chosen (256 MiB, or if
                                 that is less the initial size, or without one the limit); rounded
                                 up to whole pages */
    size_t granule;         /**< block sizes and offsets are multiples of it; a power of two from
                                 256 B to the page size; 0 = 256 B; #RAFFIA_NONE = the page size
                                 got, or if that is less 2 MiB */
    unsigned flags;         /**< #raffia_pool_flags */
    unsigned threads;       /**< threads that fill pages; 0 = the setting `threads`: one for each
                                 CPU, at most 16 */
    int numa_node_plus_one; /**< NUMA node to bind to, plus one; 0 = where the kernel likes. That
                                 there is such a node is found out when memory is mapped */
    size_t address_bytes;   /**< of a remappable pool: addresses to reserve, which moved chunks need
                                 beyond the limit; 0 = one and a half times the limit; rounded up to
                                 whole chunks, and at least the limit */
    size_t remap_mappings;  /**< of a remappable pool: chunks are not moved where more mappings than
                                 this would come of it; 0 = 32768 for memory of the host, where the
                                 kernel counts them, else no limit */
} raffia_pool_options;

/** What a pool holds now. A snapshot: the fields agree with each other. */
typedef struct raffia_pool_stats {
    size_t reserved_bytes;     /**< mapped from the driver, in whole chunks */
    size_t in_use_bytes;       /**< handed out, rounding included */
    size_t requested_bytes;    /**< what callers asked for */
    size_t free_bytes;         /**< mapped and not handed out */
    size_t largest_free_bytes; /**< largest block that could be served without growing, out of the
                                    stretches of free space. Free slots of slabs are none: they are
                                    in free_bytes, and small blocks of up to 64 granules may be
                                    served from them although this is less, even 0 */
    size_t idle_bytes;         /**< whole chunks that a trim would give back; 0 if fixed */
    size_t maximum_bytes;      /**< limit of reserved_bytes */
    size_t address_bytes;      /**< virtual addresses reserved */
    size_t peak_in_use_bytes;  /**< where threads have parts to themselves, of what was seen when
                                    such a part was given out and when somebody asked */
    size_t peak_reserved_bytes;
    size_t live_blocks;
    size_t free_blocks; /**< stretches of free space; free slots of slabs are none */
    size_t chunks;      /**< chunks mapped */
    size_t chunk_bytes; /**< size of a whole chunk */
    size_t granule;
    uint64_t hits;     /**< allocations served without growing */
    uint64_t misses;   /**< allocations that had to grow the pool first */
    uint64_t failures; /**< allocations refused for lack of memory */
    uint64_t frees;
    uint64_t bad_frees;    /**< foreign, interior and second frees refused, and wrong sizes */
    uint64_t driver_calls; /**< chunks created, mapped, unmapped and destroyed */
    double fragmentation;  /**< 1 - largest_free_bytes / free_bytes; 0 when nothing is free */
    raffia_page_report pages;
    size_t pending_bytes; /**< freed on a stream that has not got there yet: neither in use nor
                               free */
    size_t pending_blocks;
    size_t stranded_bytes;    /**< free, but in chunks that are partly in use: they can neither be
                                   moved nor given back */
    uint64_t remaps;          /**< allocations that chunks were moved for: see
                                   #RAFFIA_POOL_REMAPPABLE */
    uint64_t remapped_chunks; /**< chunks moved for them */
    uint64_t remap_ns;        /**< time that moving them took those allocations,
                                    in nanoseconds */
    uint64_t remap_unmap_ns;  /**< time that later calls took to unmap the addresses that chunks
                                   were moved from */
    uint64_t remap_address_refusals; /**< moves not made for want of a run of addresses */
    uint64_t remap_mapping_refusals; /**< moves not made because of remap_mappings */
    uint64_t pressure_calls;         /**< see raffia_pool_on_pressure() */
    uint64_t placed_low;  /**< allocations that were placed for what is known of their size, or
                               for want of knowledge: see #RAFFIA_POOL_ADAPTIVE */
    size_t brief_classes; /**< size classes (quarters of an octave) of which few blocks are left
                               when memory is given back */
} raffia_pool_stats;

/** One block, for a walk or a look-up. */
typedef struct raffia_block {
    void *address;
    size_t bytes;           /**< size handed out, rounding included */
    size_t requested_bytes; /**< size asked for */
    bool live;              /**< false: pending, or a stretch of free space */
    bool pending;           /**< freed on a stream that has not got there yet */
} raffia_block;

/**
 * What a look at the guards of a pool found.
 *
 * With #RAFFIA_POOL_GUARD the room between the size asked for and the end of a block is filled with
 * a pattern, in device memory too. A block that fills its granules exactly gets one granule more
 * for it; on the host, where a granule is made of whole pages, that granule is read-only as well,
 * and a write that leaves the block is a fault at once. The pattern is looked at when a block is
 * freed or resized, when raffia_pool_check_guards() or raffia_pool_check() asks, and when the
 * process exits, where each damaged block is logged as an error.
 *
 * It is a mode for finding mistakes: calls of such a pool run one after the other and touch the
 * memory; with a granule of 2 MiB a block of 2 MiB takes 4 MiB. On a device with streams the
 * device writes and reads the pattern: in the stream given where there is one, ahead of the work
 * submitted to it later.
 */
typedef struct raffia_guard_report {
    size_t checked_blocks;
    size_t skipped_blocks;  /**< their stream has not written the guard yet, or it cannot be read */
    size_t damaged_blocks;  /**< written to beyond their end */
    void *address;          /**< of the first damaged block; NULL if there is none */
    size_t requested_bytes; /**< its size as asked for */
    size_t damage_offset;   /**< of the first damaged byte, from the start of the block */
} raffia_guard_report;

/** Called for each block in order of address; return false to stop the walk. */
typedef bool (*raffia_block_visitor)(void *context, const raffia_block *block);

/**
 * Called when a pool is about to refuse memory: see raffia_pool_on_pressure().
 * @param context as given there
 * @param pool    the pool
 * @param bytes   what is wanted
 * @return whether anything was freed, so that it is worth another try
 */
typedef bool (*raffia_pool_pressure)(void *context, raffia_pool *pool, size_t bytes);

RAFFIA_BEGIN_DECLS

/**
 * @brief Creates a pool and maps, fills and verifies its initial pages.
 *
 * With pages `try` the ladder is walked from @c page_size down (1 GiB, 2 MiB hugetlb, 2 MiB
 * transparent, regular) to the first rung that gives the whole initial size; each step down is
 * counted and warned of once per reason. Takes about 0.1 s for each GiB of host memory.
 *
 * @param options see raffia_pool_options; NULL = all defaults
 * @param pool_p  receives the pool, with one owner
 * @return #RAFFIA_ERROR_NO_HUGE_PAGES with pages `on` and none to be had,
 *         #RAFFIA_ERROR_OUT_OF_MEMORY, #RAFFIA_ERROR_UNSUPPORTED for flags that the device cannot
 *         honour, #RAFFIA_ERROR_NOT_FOUND for the device or the NUMA node,
 *         #RAFFIA_ERROR_OVERFLOW for sizes beyond the address space,
 * #RAFFIA_ERROR_INVALID_ARGUMENT. Nothing is left behind on failure.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_create(const raffia_pool_options *options,
                                                             raffia_pool **pool_p);

/** @brief Adds an owner. Returns @p pool; NULL gives NULL. */
RAFFIA_API raffia_pool *raffia_pool_retain(raffia_pool *pool);

/**
 * @brief Drops an owner; NULL is ignored. The last one to go tears the pool down.
 *
 * While blocks are live the teardown waits for the last of them to be freed: raffia_pool_free() and
 * raffia_pool_free_on() stay legal on those blocks, everything else does not. The call that begins
 * the teardown waits for streams that blocks were freed on. In a forked child it does nothing.
 */
RAFFIA_API void raffia_pool_release(raffia_pool *pool);

/**
 * @brief Allocates a block.
 *
 * It is as large as was asked for, in whole granules. In a pool with many thousands of blocks,
 * those of up to 64 granules may be larger by up to a quarter (slabs, docs/allocator.md); and by
 * more, up to 64 granules, where nothing else is free.
 *
 * @param pool      the pool
 * @param bytes     size; 0 gives a block of one granule
 * @param alignment a power of two up to the chunk size; 0 = the granule
 * @param address_p receives the address
 * @return #RAFFIA_ERROR_OUT_OF_MEMORY (the sentence says what is free, idle and largest, and which
 *         setting limits it), #RAFFIA_ERROR_INVALID_ARGUMENT for the alignment,
 *         #RAFFIA_ERROR_FORKED in a forked child, #RAFFIA_ERROR_CORRUPT once the pool is frozen
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_alloc(raffia_pool *pool, size_t bytes,
                                                            size_t alignment, void **address_p);

/**
 * @brief Allocates a block, given hints about its life (hint.h).
 *
 * They choose its place in the pool. #RAFFIA_HINT_HUGE and #RAFFIA_HINT_REGULAR change nothing
 * here: the pool has the pages it has.
 *
 * A block that is placed low takes longer: some dozens of free stretches are looked at.
 *
 * @param pool      the pool
 * @param bytes     as for raffia_pool_alloc()
 * @param alignment as for raffia_pool_alloc()
 * @param hints     flags of #raffia_hint; contradicting or unknown ones are refused as
 *                  #RAFFIA_ERROR_INVALID_ARGUMENT
 * @param address_p receives the address
 * @return as raffia_pool_alloc()
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_alloc_hint(raffia_pool *pool, size_t bytes,
                                                                 size_t alignment, unsigned hints,
                                                                 void **address_p);

/**
 * @brief Frees a block by its address.
 *
 * An address that is not the start of a live block of this pool (foreign, interior, freed before)
 * is refused with #RAFFIA_ERROR_BAD_ADDRESS and harms nothing. NULL is a success. In a forked child
 * it does nothing and succeeds.
 *
 * With #RAFFIA_POOL_GUARD, #RAFFIA_ERROR_CORRUPT says that the block was written to beyond its end;
 * it is freed all the same, and the pool is frozen: nothing more is handed out of it.
 *
 * No work of a device may still use the block; raffia_pool_free_on() is for blocks that are in use.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_free(raffia_pool *pool, void *address);

/**
 * @brief Allocates in the order of @p stream: the block may be used by work submitted to it after
 *        this call. NULL is the default stream; on a device without streams only NULL is accepted.
 *
 * A block that was freed on the same stream is handed out again at once, without a driver call. The
 * rest is tried in order of cost: free space, blocks whose stream has got there by now, growth,
 * then blocks freed on other streams, for which @p stream is made to wait where the pool has marked
 * the place, and last a wait of the caller, for such a mark or for the whole device. Memory that
 * the CPU fills (pinned memory) is handed out only when it is not in use any more, also on the same
 * stream. While the stream is being captured it gets no block that waits for a stream, be it its
 * own: only what is free, after growth or a wait of the caller if need be. A block that is handed
 * out again may be larger than was asked for: by up to an eighth, and where nothing else is to be
 * had, up to twice as large.
 *
 * @param pool      the pool
 * @param stream    in whose order; see above
 * @param bytes     as for raffia_pool_alloc()
 * @param alignment as for raffia_pool_alloc()
 * @param address_p receives the address
 * @return as raffia_pool_alloc(); #RAFFIA_ERROR_INVALID_ARGUMENT for a stream on a device without
 *         streams, #RAFFIA_ERROR_DRIVER for one that the driver says it does not know,
 *         #RAFFIA_ERROR_BUSY with #RAFFIA_POOL_GUARD while the stream is being captured
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_alloc_on(raffia_pool *pool,
                                                               raffia_stream stream, size_t bytes,
                                                               size_t alignment, void **address_p);

/**
 * @brief Frees in the order of @p stream: work submitted to it before may still use the block.
 *
 * Does not wait. The block is pending until the stream has got there: the stream itself may have it
 * back at once, anybody else when the pool has marked the place, which it does from time to time,
 * in a later call on this stream after somebody has asked, and in raffia_stream_retire(). While the
 * stream is being captured the block stays pending until the capture has ended; a graph that uses
 * it must not run later than that by itself. Before a stream is destroyed, call
 * raffia_stream_retire(). A block that was handed out again before an earlier use on a third stream
 * was over waits for that as well. Without memory for its record it waits for the stream after all.
 *
 * With #RAFFIA_POOL_GUARD it waits until the stream is there, to look at the guard, and answers
 * #RAFFIA_ERROR_BUSY while the stream is being captured.
 *
 * @param pool    the pool
 * @param stream  as for raffia_pool_alloc_on(); not destroyed yet
 * @param address start of the block; NULL is a success
 * @return as raffia_pool_free(), and whatever the driver says of a stream that it does not know:
 * the block then stays live
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_free_on(raffia_pool *pool,
                                                              raffia_stream stream, void *address);

/**
 * @brief Changes the size of a live block without moving it.
 *
 * A remappable pool brings free chunks from elsewhere to the addresses behind the block, if they
 * are not taken and the limit leaves nothing else. A small block in a slab keeps its slot when it
 * shrinks, and cannot outgrow it.
 *
 * @param pool    the pool
 * @param address start of the block
 * @param bytes   its new size; 0 leaves one granule
 * @return #RAFFIA_ERROR_OUT_OF_MEMORY if the space behind it is taken, or is not mapped and cannot
 *         be had, and #RAFFIA_ERROR_BAD_ADDRESS; nothing is then changed
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_resize(raffia_pool *pool, void *address,
                                                             size_t bytes);

/**
 * @brief Describes the live block that contains @p address, which may be interior.
 * @return #RAFFIA_ERROR_BAD_ADDRESS if there is none
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_find(raffia_pool *pool, const void *address,
                                                           raffia_block *block);

/** @brief Fills in a snapshot of the pool. */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_query(raffia_pool *pool,
                                                            raffia_pool_stats *stats);

/**
 * @brief Visits every block, live and free. The visitor runs under the pool's lock: it must not
 * call into the pool.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_walk(raffia_pool *pool,
                                                           raffia_block_visitor visitor,
                                                           void *context);

/**
 * @brief Gives whole idle chunks back to the system. A fixed pool keeps its own: nothing happens.
 *
 * Waits for no stream. A block that was freed on one stays pending, and its chunk mapped, until the
 * pool knows that the stream has got there. Of a stream other than the default one it can know that
 * only from the stream's next call, or from raffia_stream_retire(), however long the stream has
 * been idle: this call leaves word, and a later one gives the chunk back.
 *
 * @param pool       the pool
 * @param keep_bytes stop when no more than this is mapped
 * @param released_p receives the bytes given back; may be NULL
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_trim(raffia_pool *pool, size_t keep_bytes,
                                                           size_t *released_p);

/**
 * @brief Changes the limit. Lowering it below what is mapped gives idle chunks back first; what is
 *        live stays, and the pool does not grow until it is below the limit again.
 *
 * A pool grows by whole chunks: a part of the limit that is less than a chunk goes unused.
 * @return #RAFFIA_ERROR_LIMIT if @p maximum_bytes exceeds the addresses reserved at creation,
 *         #RAFFIA_ERROR_UNSUPPORTED for a fixed pool
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_set_maximum(raffia_pool *pool,
                                                                  size_t maximum_bytes);

/**
 * @brief Sets whom to ask for memory before it is refused; NULL for nobody.
 *
 * When everything else has failed - growth, moving chunks, idle chunks of other pools, blocks that
 * wait for streams - the callback is called with the bytes that are wanted, and if it answers true
 * the request is tried once more from the start. raffia_pool_set_maximum() calls it with the bytes
 * that are mapped beyond the new limit and not idle. It is not called for raffia_pool_resize(), nor
 * for a request that is larger than all addresses that the pool has reserved: those of its
 * maximum_bytes at creation, or of its address_bytes.
 *
 * It runs in the thread whose request would fail, with no lock of the library held, and may free
 * blocks of this and of other pools, on streams too, trim, and allocate. What is then refused to it
 * is refused: it is not called from within itself. Several threads may be in it at once. One that
 * is in it already may stay there after this call has replaced it.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_on_pressure(raffia_pool *pool,
                                                                  raffia_pool_pressure callback,
                                                                  void *context);

/**
 * @brief Reads the page sizes back again and updates the report.
 *
 * Transparent huge pages may have been split since the pool was made; that is no error, but the
 * report's verified_bytes are then less than its total_bytes, and the pool says so once in a
 * warning. Costs a pass over the page tables: for diagnosis, not for a loop.
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_verify(raffia_pool *pool,
                                                             raffia_page_report *report);

/**
 * @brief Verifies every invariant of the pool's bookkeeping. For tests and diagnosis.
 * @return #RAFFIA_ERROR_CORRUPT with the first one that does not hold
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_check(raffia_pool *pool);

/**
 * @brief Looks at the guards of all live blocks.
 * @param pool   a pool with #RAFFIA_POOL_GUARD
 * @param report receives what was found; may be NULL
 * @return #RAFFIA_ERROR_CORRUPT if a guard is damaged: the report is then filled in as well, the
 *         sentence names the block, and the pool is frozen. #RAFFIA_ERROR_INVALID_ARGUMENT for a
 *         pool without guards
 */
RAFFIA_API RAFFIA_NODISCARD raffia_status raffia_pool_check_guards(raffia_pool *pool,
                                                                   raffia_guard_report *report);

RAFFIA_END_DECLS

/** @} */

#endif
