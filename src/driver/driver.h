/*
 * The driver contract: everything Raffia asks of a device, in one table.
 *
 * A driver is the EXECUTION floor. It decides nothing: it does what it is told or says precisely
 * why not. Everything above is written against this table, so a new kind of device is one new
 * folder.
 *
 * Memory comes by these routes:
 *
 *  - huge: addresses and physical memory apart. range_reserve -> chunk_create -> chunk_map ->
 *    (set_access), and back: chunk_unmap -> chunk_destroy -> range_release;
 *  - regular: what the device's ordinary allocator gives. mem_alloc -> mem_free;
 *  - pooled, where the driver keeps pools of its own (DRIVER_HAS_POOLS): memory in the order of
 *    streams. pool_create -> pool_alloc -> pool_free -> pool_destroy.
 *
 * Rules for every verb:
 *  - all verbs of a table are present. One that the device cannot do returns UNSUPPORTED with a
 *    sentence; the capability bits say so beforehand;
 *  - results are written only on success, except `reason`, which chunk_create and chunk_map set
 *    when they fail;
 *  - verbs may be called from several threads at once, on different objects without further ado, on
 *    the same object only where it says so;
 *  - a failed call leaves the device as it was;
 *  - `device` is an index below devices(); sizes are bytes.
 */
#ifndef DRIVER_DRIVER_H
#define DRIVER_DRIVER_H

#include <raffia/base.h>
#include <raffia/device.h>
#include <raffia/pages.h>
#include <raffia/status.h>

/* What a driver can do beyond the huge and the regular route. */
enum driver_capability {
    DRIVER_CAN_REMAP = 1u << 0,  /* an unmapped chunk keeps its content and can be mapped again */
    DRIVER_CAN_ALIAS = 1u << 1,  /* one chunk mapped at two addresses at once */
    DRIVER_CAN_EXPORT = 1u << 2, /* chunk_export and chunk_import */
    DRIVER_CAN_VERIFY = 1u << 3, /* page_size_of() reads back from the device or kernel */
    DRIVER_CPU_ACCESSIBLE = 1u << 4,  /* the CPU may touch mapped chunks and regular memory */
    DRIVER_IS_ASYNCHRONOUS = 1u << 5, /* streams and events exist */
    DRIVER_CAN_REGISTER = 1u << 6,    /* host_register() */
    DRIVER_CAN_LAUNCH = 1u << 7,      /* modules and kernels */
    DRIVER_HAS_PEERS = 1u << 8,       /* set_access() for other devices */
    DRIVER_SURVIVES_FORK = 1u << 9,   /* a forked child may go on using its own new objects */
    DRIVER_CAN_PROTECT = 1u << 10,    /* set_access() for the device itself, on any whole pages */
    DRIVER_REUSE_BY_EVENT = 1u << 11, /* the CPU writes its memory in no stream's order (pinned): a
                                         block is handed out again only after an event behind its
                                         last use, even on the same stream */
    DRIVER_CAN_ALLOC_HOST = 1u << 12, /* host_alloc() */
    DRIVER_HAS_POOLS = 1u << 13, /* the pool verbs; whether a device has pools says pool_create() */
};

/* Native handles. Each driver knows what it points at; nobody else looks. */
typedef struct driver_chunk *driver_chunk;
typedef void *driver_stream; /* NULL: the default stream of the device */
typedef struct driver_event *driver_event;
typedef struct driver_module *driver_module;
typedef struct driver_function *driver_function;
typedef struct driver_pool *driver_pool;

enum driver_handle_type {
    DRIVER_HANDLE_NONE = 0, /* cannot be exported */
    DRIVER_HANDLE_FD,       /* a file descriptor */
    DRIVER_HANDLE_FABRIC,   /* an opaque handle that other machines understand */
};

/* Room for a handle of any type. A file descriptor is the first word, the others are 0. */
#define DRIVER_HANDLE_WORDS 8

/* What kind of physical memory a chunk shall be. */
struct driver_chunk_spec {
    size_t bytes;     /* a multiple of page_size */
    size_t page_size; /* one that the device offers with this kind */
    raffia_page_kind kind;
    bool remappable;                /* keep content across unmap, allow aliases */
    enum driver_handle_type handle; /* how it can be exported; fixed at creation */
    int numa_node; /* -1: where the kernel likes. NOT_FOUND, which is no matter of pages, where it
                      is known that there is no such node */
    unsigned threads;   /* that fill pages; at least 1 */
    size_t total_bytes; /* what the caller lacks in all, this chunk included, for advice in a
                           refusal; 0 = this chunk is all */
};

/* What page_size_of() found out about an address range. */
struct driver_page_evidence {
    size_t smallest;    /* smallest page size in the range, bytes */
    size_t conforming;  /* bytes that lie in pages of at least the size asked about */
    bool verified;      /* read back rather than assumed */
    const char *source; /* as raffia_page_report.evidence */
};

/* Kinds of default stream (CUDA's "legacy" and "per thread"). */
enum driver_default_stream {
    DRIVER_DEFAULT_STREAM_NONE = 0, /* no streams on this device */
    DRIVER_DEFAULT_STREAM_LEGACY,   /* one for the process, waits for all others; for those of
                                       stream_create() only if the driver likes: use events */
    DRIVER_DEFAULT_STREAM_PER_THREAD,
};

/* One element of a batched copy. */
struct driver_copy {
    void *destination;
    const void *source;
    size_t bytes;
};

/* Memory as a device's code sees it. */
enum driver_memory_kind {
    DRIVER_MEMORY_UNKNOWN = 0, /* pageable, another device's, or none: code must not touch it */
    DRIVER_MEMORY_PINNED,      /* host memory that the device's code may use at the same address */
    DRIVER_MEMORY_DEVICE,      /* the device's own */
};

/* What lies at an address, and how far that holds. */
struct driver_memory {
    enum driver_memory_kind kind;
    uintptr_t start; /* of a stretch that is all of the kind and contains the address */
    size_t bytes;    /* of the stretch; 0 if the kind is not known */
};

/* How a pool of the driver's behaves. */
struct driver_pool_spec {
    size_t release_threshold; /* what it may keep that nobody uses, bytes; what is beyond goes back
                                 to the device when somebody next waits for a stream, an event or
                                 the device. SIZE_MAX: it keeps all */
};

/* How a kernel is launched; extents are counted in blocks and threads. */
struct driver_launch {
    unsigned grid[3];
    unsigned block[3];
    size_t shared_bytes;
    void **arguments; /* one pointer per parameter */
};

struct driver {
    const char *name;      /* "host", "cuda", "sim": the part of a device name before ':' */
    unsigned capabilities; /* enum driver_capability */

    /* ---- devices ---------------------------------------------------------------------------- */

    /* How many there are now; 0 is an answer, not a failure. */
    raffia_status (*devices)(int *count_p);

    /* Describes one. total_bytes and free_bytes respect control groups. Touches no other device. */
    raffia_status (*device_info)(int device, raffia_device_info *info);

    /* ---- virtual ranges --------------------------------------------------------------------- */

    /* Reserves addresses, with no memory behind them. bytes and alignment are multiples of the base
     * page; alignment is a power of two. Post: *base_p is aligned, or the driver is at fault:
     * callers check (SPEC B6). Touching the range before a chunk is mapped is a fault of the
     * program. */
    raffia_status (*range_reserve)(int device, size_t bytes, size_t alignment, void **base_p);

    /* Pre: nothing is mapped in it. `bytes` as reserved. */
    raffia_status (*range_release)(int device, void *base, size_t bytes);

    /* ---- physical chunks -------------------------------------------------------------------- */

    /* Creates a chunk. It may have no memory yet: the promise is made by chunk_map(). */
    raffia_status (*chunk_create)(int device, const struct driver_chunk_spec *spec,
                                  driver_chunk *chunk_p, raffia_fallback_reason *reason);

    /* Pre: not mapped anywhere. */
    raffia_status (*chunk_destroy)(int device, driver_chunk chunk);

    /* Maps the whole chunk at `at`, inside one reserved range, aligned to the chunk's page size.
     * Post: every page is there, readable and writable by the device (and the CPU, if the driver is
     * CPU-accessible), and where the driver can verify, each page was read back to be of the
     * chunk's page size. Memory fresh from the system is zero. No later access can fail for want of
     * memory. On failure the range is reserved and empty as before. */
    raffia_status (*chunk_map)(int device, driver_chunk chunk, void *at,
                               raffia_fallback_reason *reason);

    /* Unmaps what chunk_map() mapped at `at`; the addresses stay reserved. Does not wait for work
     * that is under way on the device: callers do. The content is lost unless remappable. */
    raffia_status (*chunk_unmap)(int device, driver_chunk chunk, void *at);

    /* Lets a peer device use a mapped range, which may span many chunks. With DRIVER_CAN_PROTECT
     * `peer` may be the device itself, and the range any whole pages of a chunk: they become
     * read-only, or writable again; what they hold stays. */
    raffia_status (*set_access)(int device, void *at, size_t bytes, int peer, bool writable);

    /* Makes a handle that another process can import. An fd is the caller's to close. */
    raffia_status (*chunk_export)(int device, driver_chunk chunk, enum driver_handle_type type,
                                  uint64_t handle[DRIVER_HANDLE_WORDS]);
    raffia_status (*chunk_import)(int device, enum driver_handle_type type,
                                  const uint64_t handle[DRIVER_HANDLE_WORDS],
                                  const struct driver_chunk_spec *spec, driver_chunk *chunk_p);

    /* Reads back which pages lie behind a mapped range. `expected` is the size that conforming
     * bytes are counted against. A driver that cannot tell sets verified to false and smallest to
     * 0. */
    raffia_status (*page_size_of)(int device, const void *at, size_t bytes, raffia_page_kind kind,
                                  size_t expected, struct driver_page_evidence *evidence);

    /* ---- the regular path ------------------------------------------------------------------- */

    /* Ordinary memory of the device, aligned to at least 256 bytes; any size from 1 byte.
     * OUT_OF_MEMORY, for want of addresses too; OVERFLOW. */
    raffia_status (*mem_alloc)(int device, size_t bytes, void **address_p);
    raffia_status (*mem_free)(int device, void *address, size_t bytes);

    /* ---- host memory ------------------------------------------------------------------------ */

    /* Pins a piece of host memory so that the device can copy from and to it directly. */
    raffia_status (*host_register)(int device, void *at, size_t bytes);
    raffia_status (*host_unregister)(int device, void *at, size_t bytes);

    /* Host memory that the device's driver allocates and pins by itself, where it likes and in
     * pages of its own choice: slower to get than memory that is registered, but to be had where
     * registering is refused. Aligned to the base page, any size from 1 byte, what it holds is not
     * defined. The CPU may use it, and copies as if it were registered. */
    raffia_status (*host_alloc)(int device, size_t bytes, void **at_p);
    raffia_status (*host_free)(int device, void *at, size_t bytes);

    /* ---- order ------------------------------------------------------------------------------ */

    /* A device without streams has no events either and answers UNSUPPORTED, but takes NULL as a
     * stream that is always idle: stream_id (0), stream_is_capturing, stream_retire, stream_wait;
     * device_wait does nothing there. */

    raffia_status (*stream_create)(int device, driver_stream *stream_p);
    raffia_status (*stream_destroy)(int device, driver_stream stream);

    /* A number that is never given to another stream of the process, unlike the handle. */
    raffia_status (*stream_id)(int device, driver_stream stream, uint64_t *id_p);

    /* Which kind the default stream is in the calling thread. */
    enum driver_default_stream (*default_stream)(int device);

    /* Whether work submitted now is being recorded instead of run. */
    raffia_status (*stream_is_capturing)(int device, driver_stream stream, bool *capturing_p);

    /* Says that no more work will be submitted: resources the driver keeps for it may go. The
     * handle may be destroyed by its owner afterwards. */
    raffia_status (*stream_retire)(int device, driver_stream stream);

    /* Waits until all work submitted to the stream so far is done. */
    raffia_status (*stream_wait)(int device, driver_stream stream);

    /* Waits until all work submitted to any stream of the device so far is done: of destroyed ones
     * as well, which have no handle to wait for. BUSY while a stream is being captured. */
    raffia_status (*device_wait)(int device);

    raffia_status (*event_create)(int device, driver_event *event_p);
    raffia_status (*event_destroy)(int device, driver_event event);

    /* Marks the work submitted to the stream so far. An event can be recorded again. */
    raffia_status (*event_record)(int device, driver_event event, driver_stream stream);

    /* Whether the work marked is done; an event never recorded is done. */
    raffia_status (*event_done)(int device, driver_event event, bool *done_p);
    raffia_status (*event_wait)(int device, driver_event event);

    /* Makes work submitted to the stream from now on wait for the event. */
    raffia_status (*stream_wait_event)(int device, driver_stream stream, driver_event event);

    /* ---- the driver's own pools ------------------------------------------------------------- */

    /*
     * Stream-ordered memory, which the driver keeps in pools of its own.
     *
     *  - Order: the address is known when pool_alloc() returns. The block may be used by work that
     *    is submitted to the stream from then on, by work elsewhere that is ordered behind it (an
     *    event recorded on the stream after the call), and by the CPU, where it may touch the
     *    device's memory at all, once the stream was waited for. pool_free() ends it when the
     * stream gets there: work submitted before may go on using it, and the caller has ordered the
     * stream behind what other streams do with it. No later work may be given the address.
     *  - What was freed is used again at once on the same stream; on another one when the free is
     *    done or ordered before, for which the driver may make that stream wait.
     *  - NULL is the default stream, ordered as all other work on it.
     *  - BUSY while the stream is being captured, and what it has recorded stays good: a captured
     *    allocation would belong to the graph and not to the pool.
     *  - A stream may be destroyed with frees under way on it; they are done when it gets there.
     *  - Once the context is lost all of them fail with DRIVER, and the memory is gone; in a forked
     *    child they are FORKED.
     *  - Safe from several threads at once, on one pool too.
     */

    /* UNSUPPORTED, with a sentence, where this device or the installed driver has no pools,
     * whatever DRIVER_HAS_POOLS says. A new pool holds no memory. */
    raffia_status (*pool_create)(int device, const struct driver_pool_spec *spec,
                                 driver_pool *pool_p);

    /* Pre: every block was freed. Frees may be under way: what they free goes back to the device
     * when they are done, everything else at once. */
    raffia_status (*pool_destroy)(int device, driver_pool pool);

    /* A block aligned to at least 256 bytes, any size from 1 byte; what it holds is not defined.
     * OUT_OF_MEMORY. */
    raffia_status (*pool_alloc)(int device, driver_pool pool, driver_stream stream, size_t bytes,
                                void **address_p);

    /* Pre: `address` is a live block of the pool. */
    raffia_status (*pool_free)(int device, driver_pool pool, driver_stream stream, void *address);

    /* Gives back to the device what nobody uses and no free is under way for, until no more than
     * keep_bytes are left in the pool, blocks included. Waits for nothing. */
    raffia_status (*pool_trim)(int device, driver_pool pool, size_t keep_bytes);

    /* ---- copies and fills ------------------------------------------------------------------- */

    /* Source and destination are host or device memory; done when the stream gets there. With no
     * streams, done on return. Both must stay valid until then. A batch of no copies does nothing,
     * and succeeds whatever the stream, which is not looked at. */
    raffia_status (*copy)(int device, driver_stream stream, void *destination, const void *source,
                          size_t bytes);
    raffia_status (*copy_batch)(int device, driver_stream stream, const struct driver_copy *copies,
                                size_t count);
    raffia_status (*fill)(int device, driver_stream stream, void *destination, unsigned char value,
                          size_t bytes);

    /* What memory an address is in, for code that is to touch it: who launches a kernel on a
     * caller's addresses asks first, since a wrong one loses the context. UNSUPPORTED where no code
     * runs. */
    raffia_status (*find_memory)(int device, const void *at, struct driver_memory *memory);

    /* ---- code ------------------------------------------------------------------------------- */

    raffia_status (*module_load)(int device, const void *image, size_t bytes,
                                 driver_module *module_p);
    raffia_status (*module_unload)(int device, driver_module module);
    raffia_status (*module_function)(int device, driver_module module, const char *name,
                                     driver_function *function_p);
    raffia_status (*launch)(int device, driver_stream stream, driver_function function,
                            const struct driver_launch *launch);

    /* ---- process ---------------------------------------------------------------------------- */

    /* RAFFIA_OK if the device can be used by this process; FORKED in a child whose parent opened
     * it; DRIVER if its context is lost ("sticky" errors), with the native error. */
    raffia_status (*context_state)(int device);
};

/* Whether a handle names a default stream, which cannot be destroyed: NULL, or one of CUDA's
 * special handles, which no driver gives to a stream that it creates. Any other handle means
 * nothing once its owner has destroyed the stream, and CUDA does not survive being asked about it.
 */
static inline bool driver_stream_is_default(driver_stream stream)
{
    return (uintptr_t)stream <= 2;
}

/* One device of one driver. Small; passed by value. */
struct driver_device {
    const struct driver *driver;
    int index;
};

/* Whether the CPU may touch the memory of this very device: a driver may have some that it may not.
 */
raffia_status driver_cpu_accessible(struct driver_device device, bool *accessible_p);

/* The device that makes the streams of this one: for pinned memory its GPU, else itself. */
struct driver_device driver_stream_owner(struct driver_device device);

/* Finds a device by its public name (raffia/device.h); NULL or "" is the process's default. */
raffia_status driver_open(const char *name, struct driver_device *device_p);

/* The same by number: counts the devices of the driver that the default device belongs to. */
raffia_status driver_open_index(int index, struct driver_device *device_p);

/* "host", "sim:0", ... into `buffer`; returns it. */
const char *driver_device_name(struct driver_device device,
                               char buffer[static RAFFIA_DEVICE_NAME_MAX]);

/* For drivers: record UNSUPPORTED for a verb they do not have, and return it. */
raffia_status driver_unsupported(const char *driver, const char *verb);
#ifdef __clang_analyzer__ /* see core/error.h */
#define driver_unsupported(...) core_failure(driver_unsupported(__VA_ARGS__))
#endif

/* For drivers: the status that goes with the reason why pages could not be had. */
raffia_status driver_status_of_reason(raffia_fallback_reason reason);

#endif
