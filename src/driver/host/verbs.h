/*
 * The verbs of the driver table, by the file that has them.
 */
#ifndef DRIVER_HOST_VERBS_H
#define DRIVER_HOST_VERBS_H

#include "driver/driver.h"

/* info.c */
raffia_status host_devices(int *count_p);
raffia_status host_device_info(int device, raffia_device_info *info);
raffia_status host_context_state(int device);

/* range.c */
raffia_status host_range_reserve(int device, size_t bytes, size_t alignment, void **base_p);
raffia_status host_range_release(int device, void *base, size_t bytes);
raffia_status host_set_access(int device, void *at, size_t bytes, int peer, bool writable);

/* chunk.c */
raffia_status host_chunk_create(int device, const struct driver_chunk_spec *spec,
                                driver_chunk *chunk_p, raffia_fallback_reason *reason);
raffia_status host_chunk_destroy(int device, driver_chunk chunk);
raffia_status host_chunk_export(int device, driver_chunk chunk, enum driver_handle_type type,
                                uint64_t handle[DRIVER_HANDLE_WORDS]);
raffia_status host_chunk_import(int device, enum driver_handle_type type,
                                const uint64_t handle[DRIVER_HANDLE_WORDS],
                                const struct driver_chunk_spec *spec, driver_chunk *chunk_p);

/* mapping.c */
raffia_status host_chunk_map(int device, driver_chunk chunk, void *at,
                             raffia_fallback_reason *reason);
raffia_status host_chunk_unmap(int device, driver_chunk chunk, void *at);

/* verify.c */
raffia_status host_page_size_of(int device, const void *at, size_t bytes, raffia_page_kind kind,
                                size_t expected, struct driver_page_evidence *evidence);

/* regular.c */
raffia_status host_mem_alloc(int device, size_t bytes, void **address_p);
raffia_status host_mem_free(int device, void *address, size_t bytes);
raffia_status host_find_memory(int device, const void *at, struct driver_memory *memory);
raffia_status host_copy(int device, driver_stream stream, void *destination, const void *source,
                        size_t bytes);
raffia_status host_copy_batch(int device, driver_stream stream, const struct driver_copy *copies,
                              size_t count);
raffia_status host_fill_memory(int device, driver_stream stream, void *destination,
                               unsigned char value, size_t bytes);

/* order.c */
raffia_status host_check_stream(driver_stream stream);
raffia_status host_register_memory(int device, void *at, size_t bytes);
raffia_status host_unregister_memory(int device, void *at, size_t bytes);
raffia_status host_alloc_pinned(int device, size_t bytes, void **at_p);
raffia_status host_free_pinned(int device, void *at, size_t bytes);
raffia_status host_stream_create(int device, driver_stream *stream_p);
raffia_status host_stream_destroy(int device, driver_stream stream);
raffia_status host_stream_id(int device, driver_stream stream, uint64_t *id_p);
enum driver_default_stream host_default_stream(int device);
raffia_status host_stream_is_capturing(int device, driver_stream stream, bool *capturing_p);
raffia_status host_stream_retire(int device, driver_stream stream);
raffia_status host_stream_wait(int device, driver_stream stream);
raffia_status host_device_wait(int device);
raffia_status host_event_create(int device, driver_event *event_p);
raffia_status host_event_destroy(int device, driver_event event);
raffia_status host_event_record(int device, driver_event event, driver_stream stream);
raffia_status host_event_done(int device, driver_event event, bool *done_p);
raffia_status host_event_wait(int device, driver_event event);
raffia_status host_stream_wait_event(int device, driver_stream stream, driver_event event);
raffia_status host_pool_create(int device, const struct driver_pool_spec *spec,
                               driver_pool *pool_p);
raffia_status host_pool_destroy(int device, driver_pool pool);
raffia_status host_pool_alloc(int device, driver_pool pool, driver_stream stream, size_t bytes,
                              void **address_p);
raffia_status host_pool_free(int device, driver_pool pool, driver_stream stream, void *address);
raffia_status host_pool_trim(int device, driver_pool pool, size_t keep_bytes);
raffia_status host_module_load(int device, const void *image, size_t bytes,
                               driver_module *module_p);
raffia_status host_module_unload(int device, driver_module module);
raffia_status host_module_function(int device, driver_module module, const char *name,
                                   driver_function *function_p);
raffia_status host_launch(int device, driver_stream stream, driver_function function,
                          const struct driver_launch *launch);

#endif
