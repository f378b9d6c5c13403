/*
 * The verbs of the driver table, by the file that has them.
 */
#ifndef DRIVER_CUDA_VERBS_H
#define DRIVER_CUDA_VERBS_H

#include "driver/driver.h"

/* info.c */
raffia_status cuda_devices(int *count_p);
raffia_status cuda_device_info(int device, raffia_device_info *info);
raffia_status cuda_context_state(int device);

/* ranges.c */
raffia_status cuda_range_reserve(int device, size_t bytes, size_t alignment, void **base_p);
raffia_status cuda_range_release(int device, void *base, size_t bytes);
raffia_status cuda_set_access(int device, void *at, size_t bytes, int peer, bool writable);

/* chunks.c */
raffia_status cuda_chunk_create(int device, const struct driver_chunk_spec *spec,
                                driver_chunk *chunk_p, raffia_fallback_reason *reason);
raffia_status cuda_chunk_destroy(int device, driver_chunk chunk);
raffia_status cuda_chunk_map(int device, driver_chunk chunk, void *at,
                             raffia_fallback_reason *reason);
raffia_status cuda_chunk_unmap(int device, driver_chunk chunk, void *at);

raffia_status cuda_page_size_of(int device, const void *at, size_t bytes, raffia_page_kind kind,
                                size_t expected, struct driver_page_evidence *evidence);

/* sharing.c */
raffia_status cuda_chunk_export(int device, driver_chunk chunk, enum driver_handle_type type,
                                uint64_t handle[DRIVER_HANDLE_WORDS]);
raffia_status cuda_chunk_import(int device, enum driver_handle_type type,
                                const uint64_t handle[DRIVER_HANDLE_WORDS],
                                const struct driver_chunk_spec *spec, driver_chunk *chunk_p);

/* memory.c */
raffia_status cuda_mem_alloc(int device, size_t bytes, void **address_p);
raffia_status cuda_mem_free(int device, void *address, size_t bytes);
raffia_status cuda_host_register(int device, void *at, size_t bytes);
raffia_status cuda_host_unregister(int device, void *at, size_t bytes);
raffia_status cuda_find_memory(int device, const void *at, struct driver_memory *memory);
raffia_status cuda_host_alloc(int device, size_t bytes, void **at_p);
raffia_status cuda_host_free(int device, void *at, size_t bytes);

/* copies.c */
raffia_status cuda_copy(int device, driver_stream stream, void *destination, const void *source,
                        size_t bytes);
raffia_status cuda_copy_batch(int device, driver_stream stream, const struct driver_copy *copies,
                              size_t count);
raffia_status cuda_fill(int device, driver_stream stream, void *destination, unsigned char value,
                        size_t bytes);

/* streams.c */
raffia_status cuda_stream_create(int device, driver_stream *stream_p);
raffia_status cuda_stream_destroy(int device, driver_stream stream);
raffia_status cuda_stream_id(int device, driver_stream stream, uint64_t *id_p);
enum driver_default_stream cuda_default_stream(int device);
raffia_status cuda_stream_is_capturing(int device, driver_stream stream, bool *capturing_p);
raffia_status cuda_stream_retire(int device, driver_stream stream);
raffia_status cuda_stream_wait(int device, driver_stream stream);
raffia_status cuda_device_wait(int device);

/* events.c */
raffia_status cuda_event_create(int device, driver_event *event_p);
raffia_status cuda_event_destroy(int device, driver_event event);
raffia_status cuda_event_record(int device, driver_event event, driver_stream stream);
raffia_status cuda_event_done(int device, driver_event event, bool *done_p);
raffia_status cuda_event_wait(int device, driver_event event);
raffia_status cuda_stream_wait_event(int device, driver_stream stream, driver_event event);

/* pools.c */
raffia_status cuda_pool_create(int device, const struct driver_pool_spec *spec,
                               driver_pool *pool_p);
raffia_status cuda_pool_destroy(int device, driver_pool pool);
raffia_status cuda_pool_alloc(int device, driver_pool pool, driver_stream stream, size_t bytes,
                              void **address_p);
raffia_status cuda_pool_free(int device, driver_pool pool, driver_stream stream, void *address);
raffia_status cuda_pool_trim(int device, driver_pool pool, size_t keep_bytes);

/* modules.c */
raffia_status cuda_module_load(int device, const void *image, size_t bytes,
                               driver_module *module_p);
raffia_status cuda_module_unload(int device, driver_module module);
raffia_status cuda_module_function(int device, driver_module module, const char *name,
                                   driver_function *function_p);
raffia_status cuda_launch(int device, driver_stream stream, driver_function function,
                          const struct driver_launch *launch);

#endif
