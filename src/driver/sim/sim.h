/*
 * The simulated device, as tests see it: how it is set up, made to misbehave, and looked into.
 *
 * It is a device made of host memory, with the addresses, chunks, streams and events of a real one,
 * so that everything above the driver can be tested on any machine. It is never a stand-in for a
 * measurement.
 *
 * It watches how it is used. A call that a real device would answer with damage or silence (a chunk
 * mapped twice, memory unmapped while queued work will touch it, a destroyed stream) changes
 * nothing, fails with RAFFIA_ERROR_DRIVER and the native error "SIM_MISUSE", and is counted in
 * sim_usage.misuses, so that a test sees it even if the code under test swallowed the error.
 *
 * Thread-safe, except that sim_set_devices() and sim_reset() want no other thread inside the
 * driver.
 */
#ifndef DRIVER_SIM_SIM_H
#define DRIVER_SIM_SIM_H

#include "driver/driver.h"

extern const struct driver sim_driver;

#define SIM_DEVICES_MAX   8   /* configurable devices */
#define SIM_STREAMS_MAX   128 /* at once, for each device; each is a thread */
#define SIM_BASE_PAGE     ((size_t)4096)
#define SIM_ARGUMENTS_MAX 16 /* parameters of a kernel */
#define SIM_NAME_MAX      64 /* name of a kernel, its NUL included */

/* ---- how a device is --------------------------------------------------------------------------*/

/* Refuses chunks of one kind and size of page beyond `bytes` in all, for `reason`: a hugetlb pool
 * of three pages, or with bytes = 0 a kind that is switched off. */
struct sim_page_limit {
    raffia_page_kind kind;
    size_t size;
    size_t bytes;
    raffia_fallback_reason reason; /* NONE: this entry says nothing */
};

/* Zero in any field is the default. */
struct sim_config {
    size_t capacity_bytes; /* 0 = 1 GiB */

    /* 0 pages = DEVICE 2 MiB and REGULAR 4 KiB. Sizes are powers of two from 4 KiB up, largest
     * first; any size is cheap, since a page holds real memory only where it is touched. */
    size_t page_count;
    raffia_page_offer pages[RAFFIA_PAGE_SIZES_MAX];
    struct sim_page_limit limits[RAFFIA_PAGE_SIZES_MAX];

    bool hides_page_sizes; /* page_size_of() cannot tell, as on CUDA */
    bool synchronous;      /* no streams, as on the host */
    bool cpu_inaccessible; /* its memory is hidden from the CPU, as a GPU's is: touching it faults,
                              only copies, fills and sim_view() get at it. The default is the
                              setting `sim_memory` for devices nobody configured */
    bool commits_at_map;   /* memory is taken, and refused, by chunk_map() as on the host instead of
                              by chunk_create() as on a GPU */

    /* Misbehaviour. */
    unsigned misaligned_bases; /* so many of the next range_reserve() return a base off by 4 KiB */
    unsigned smaller_pages;    /* so many of the next chunk_map() deliver 4 KiB pages, and succeed;
                                  page_size_of() tells the truth */

    /* Refusals of host memory. */
    size_t register_bytes_max; /* host_register() of more at once is refused; 0 = any is taken */
    bool refuses_host_alloc;

    /* What calls take, so that races can be provoked; microseconds. */
    unsigned alloc_us; /* range_reserve, chunk_create, chunk_import, mem_alloc, host_register,
                          pool_alloc */
    unsigned map_us;   /* chunk_map, set_access */
    unsigned unmap_us; /* chunk_unmap, chunk_destroy, range_release, mem_free, host_unregister */
};

/* Sets up one device, and makes it exist: devices() then counts at least device + 1. NULL is all
 * defaults. A device in use takes a new capacity, limits, misbehaviours and delays; BUSY if the
 * kinds of pages, the streams, the time of commitment or who can touch it would change. */
raffia_status sim_configure(int device, const struct sim_config *config);

/* How many devices there are, 0 to SIM_DEVICES_MAX; 2 unless said otherwise. */
raffia_status sim_set_devices(int count);

/* Everything as at the start of the process: work still queued is dropped, memory given back, two
 * default devices. Every handle and address of the driver is dead afterwards. In a forked child it
 * forgets the parent's objects, and makes the driver usable there. */
void sim_reset(void);

/* ---- failures ---------------------------------------------------------------------------------*/

/*
 * Every verb that takes something, moves data or asks a question is a fault point of
 * core/fault.h by the name "sim.<verb>". Verbs that give something back (release, destroy, unmap,
 * free, unregister, unload, retire) are not: they fail on a real device only when misused, and
 * failing them at random would only prove that their caller then leaks. sim_fail_next() fails those
 * too.
 */

/* Makes the next call of the verb, "chunk_map" for example, fail like this; on any device. */
void sim_fail_next(const char *verb, raffia_status status, raffia_fallback_reason reason);

/* Loses the context: from now on every verb on the device fails with RAFFIA_ERROR_DRIVER, and
 * queued work is dropped; returns when none is running. Only sim_reset() heals it. Not to be called
 * by a kernel. */
void sim_poison(int device);

/* Splits the transparent pages that [at, at + bytes) touches into 4 KiB pages, as the kernel may.
 * NOT_FOUND if there is none. */
raffia_status sim_split(int device, void *at, size_t bytes);

/* ---- looking in -------------------------------------------------------------------------------*/

/* Calls of a verb since the last sim_reset(), failed ones included; -1 for an unknown name. */
long sim_calls(const char *verb);

/* What exists now. */
struct sim_usage {
    size_t ranges, range_bytes;
    size_t chunks, chunk_bytes; /* bytes only of chunks that have memory and are not imported */
    size_t mappings, mapped_bytes;
    size_t blocks, block_bytes; /* mem_alloc(), as asked for */
    size_t registrations, registered_bytes;
    size_t host_blocks, host_block_bytes; /* host_alloc(), as asked for */
    size_t pools;
    size_t pool_blocks, pool_block_bytes; /* live, as asked for */
    size_t pool_bytes;                    /* of the device's memory, that pools hold */
    size_t streams; /* created and not destroyed; the default stream not among them */
    size_t events;
    size_t modules;
    size_t queued; /* operations submitted and not done, of all streams */
    size_t misuses;
    char first_misuse[256]; /* its sentence */
};

void sim_query(int device, struct sim_usage *usage);

/* True if nothing exists now, on any device, and none was misused. What a test asserts at its end.
 */
bool sim_is_idle(void);

/* Where the CPU finds the bytes of device memory at an address: for tests that look into memory
 * that is hidden, and for their kernels. Other addresses come back as they are. */
void *sim_view(const void *at);

/* ---- streams ----------------------------------------------------------------------------------*/

/* Lets no further operation of the stream begin, until it is resumed. */
raffia_status sim_stream_hold(int device, driver_stream stream);
raffia_status sim_stream_resume(int device, driver_stream stream);

/* Submits an operation that does nothing for so long. */
raffia_status sim_stream_delay(int device, driver_stream stream, unsigned microseconds);

/* Operations submitted and not done. */
raffia_status sim_stream_pending(int device, driver_stream stream, size_t *count_p);

/* Records what is submitted instead of running it. At the end the record is submitted, or dropped:
 * a graph that is launched once or never. An event recorded meanwhile cannot be queried. */
raffia_status sim_stream_capture_begin(int device, driver_stream stream);
raffia_status sim_stream_capture_end(int device, driver_stream stream, bool submit);

/* ---- code -------------------------------------------------------------------------------------*/

/*
 * module_load() takes an array of these as image, its size in bytes beside it; the table is copied.
 * A launch calls the function once for each thread of the grid, index 0 upward, one after the other
 * on the stream's worker. Every parameter is 8 bytes wide and copied at the launch. A parameter
 * that points into device memory marks the byte it points at as used until the launch is done.
 */
struct sim_kernel {
    const char *name;
    void (*function)(void **arguments, unsigned index);
    unsigned parameters;
};

#endif
