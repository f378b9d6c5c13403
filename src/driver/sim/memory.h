/*
 * Chunks, their mappings, and blocks of the regular path. Everything here is called with the lock
 * held.
 */
#ifndef DRIVER_SIM_MEMORY_H
#define DRIVER_SIM_MEMORY_H

#include "driver/sim/state.h"

struct driver_chunk {
    size_t bytes;
    size_t page_size;
    raffia_page_kind kind;
    bool remappable;
    enum driver_handle_type handle;
    size_t offer; /* entry of config.pages */
    int fd;       /* the device's store, or its own if it can be exported */
    size_t offset;
    bool owns_fd;
    bool imported;  /* the memory is the exporter's */
    bool committed; /* counted in the device's memory */
    bool stale;     /* was unmapped without being remappable: what it held is lost */
    unsigned mappings;
};

struct sim_mapping {
    struct driver_chunk *chunk;
    size_t page_size;     /* delivered; smaller than the chunk's if so configured */
    unsigned char *split; /* one for each page, 1 = split into base pages; NULL = none was */
    unsigned readers;     /* peers, a bit for each device */
    unsigned writers;
};

/* The chunk behind a handle, or NULL. */
struct driver_chunk *sim_chunk_find(struct sim_device *device, driver_chunk handle);

/* Takes the memory of a chunk that has none yet. */
raffia_status sim_chunk_commit(struct sim_device *device, struct driver_chunk *chunk,
                               raffia_fallback_reason *reason);
void sim_chunk_decommit(struct sim_device *device, struct driver_chunk *chunk);

/* Gives what the chunk holds back to the system; it reads as zero afterwards. */
void sim_chunk_discard(const struct driver_chunk *chunk);

void sim_mapping_free(struct sim_mapping *mapping);

/* Memory of a pool, live or kept. */
struct sim_pool_block {
    struct driver_pool *pool;
    char *twin; /* where the CPU finds it, if the device hides its memory; else NULL */
    bool live;
    size_t bytes;              /* as asked for, while live */
    uint64_t freed_on;         /* id of a stream */
    struct sim_op *allocating; /* queued, until the stream gets there; then NULL */
    struct sim_op *freeing;    /* likewise */
    struct sim_op *free_op;    /* of a live block, made with it so that its free cannot fail */
};

/* Frees every chunk and mapping record, and every block. The ranges stay. */
void sim_chunks_clear(struct sim_device *device);
void sim_regular_clear(struct sim_device *device);
void sim_host_blocks_clear(struct sim_device *device);
void sim_pools_clear(struct sim_device *device);

/* Fails with a misuse unless `device` may read, or write, all of [at, at + bytes): what lies in any
 * device's range must be mapped there and opened to it, what lies in a block must not leave it.
 * Other host memory is the caller's word. */
raffia_status sim_check_touch(struct sim_device *device, const void *at, size_t bytes, bool write,
                              const char *verb);

/* Fails with a misuse if an operation submitted and not done, on any stream of any device, touches
 * the addresses. */
raffia_status sim_check_quiet(struct sim_device *device, const void *at, size_t bytes,
                              const char *verb);

/* Whether the address is in device memory, of any device. */
bool sim_is_device_memory(const void *at);

/* Where the CPU finds what is at an address: elsewhere, if the address is in the memory of a device
 * that hides it. */
void *sim_real_address(const void *at);

/* The verbs. */
raffia_status sim_range_reserve(int index, size_t bytes, size_t alignment, void **base_p);
raffia_status sim_range_release(int index, void *base, size_t bytes);
raffia_status sim_chunk_create(int index, const struct driver_chunk_spec *spec,
                               driver_chunk *chunk_p, raffia_fallback_reason *reason);
raffia_status sim_chunk_destroy(int index, driver_chunk handle);
raffia_status sim_chunk_export(int index, driver_chunk handle, enum driver_handle_type type,
                               uint64_t exported[DRIVER_HANDLE_WORDS]);
raffia_status sim_chunk_import(int index, enum driver_handle_type type,
                               const uint64_t exported[DRIVER_HANDLE_WORDS],
                               const struct driver_chunk_spec *spec, driver_chunk *chunk_p);
raffia_status sim_chunk_map(int index, driver_chunk handle, void *at,
                            raffia_fallback_reason *reason);
raffia_status sim_chunk_unmap(int index, driver_chunk handle, void *at);
raffia_status sim_set_access(int index, void *at, size_t bytes, int peer, bool writable);
raffia_status sim_page_size_of(int index, const void *at, size_t bytes, raffia_page_kind kind,
                               size_t expected, struct driver_page_evidence *evidence);
raffia_status sim_mem_alloc(int index, size_t bytes, void **address_p);
raffia_status sim_mem_free(int index, void *address, size_t bytes);
raffia_status sim_host_register(int index, void *at, size_t bytes);
raffia_status sim_host_unregister(int index, void *at, size_t bytes);
raffia_status sim_host_alloc(int index, size_t bytes, void **at_p);
raffia_status sim_host_free(int index, void *at, size_t bytes);

#endif
