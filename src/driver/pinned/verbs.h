/*
 * The pinned driver from the inside.
 */
#ifndef DRIVER_PINNED_VERBS_H
#define DRIVER_PINNED_VERBS_H

#include "driver/pinned/pinned.h"

/* table.c */
raffia_status pinned_devices(int *count_p);
raffia_status pinned_context_state(int index);
void pinned_count(int index, enum pinned_way way, size_t bytes);
void pinned_uncount(int index, enum pinned_way way, size_t bytes);

/*
 * registration.c. Registers all of the memory, in pieces that begin and end at multiples of the
 * page size. Where that is refused it tries smaller pieces. What is left of a failure is nothing,
 * or, if the driver will not even undo it, pieces that pinned_unregister() must be tried on again.
 * *way_p is REGISTERED, IN_SMALLER_PIECES, or PAGEABLE with the refusal as the last error; a
 * failure means that the GPU cannot be used.
 */
raffia_status pinned_register(int index, void *at, size_t bytes, raffia_page_offer page,
                              struct pinned_registration *registration, enum pinned_way *way_p);

/* Takes the pieces away from the last to the first. A failure leaves those that are left, and can
 * be tried again. Of a GPU whose context is lost there is nothing to take away. */
raffia_status pinned_unregister(int index, struct pinned_registration *registration);

/* pieces.c. Puts a registered piece on record; false, with the error recorded, if there is no
 * memory for it. */
bool pinned_piece_add(const void *at, size_t bytes);
void pinned_piece_drop(const void *at);

/* Addresses among which no registered piece begins or ends. */
struct pinned_stretch {
    uintptr_t start, end;
};

/* The stretch that an address lies in. */
void pinned_stretch_find(const void *at, struct pinned_stretch *stretch);

/* How many of `bytes` at the address lie in one registered piece, or before the next one. */
size_t pinned_reach(const void *at, size_t bytes);

/* chunks.c */
raffia_status pinned_range_reserve(int index, size_t bytes, size_t alignment, void **base_p);
raffia_status pinned_range_release(int index, void *base, size_t bytes);
raffia_status pinned_chunk_create(int index, const struct driver_chunk_spec *spec,
                                  driver_chunk *chunk_p, raffia_fallback_reason *reason);
raffia_status pinned_chunk_destroy(int index, driver_chunk chunk);
raffia_status pinned_chunk_map(int index, driver_chunk chunk, void *at,
                               raffia_fallback_reason *reason);
raffia_status pinned_chunk_unmap(int index, driver_chunk chunk, void *at);
raffia_status pinned_chunk_export(int index, driver_chunk chunk, enum driver_handle_type type,
                                  uint64_t handle[DRIVER_HANDLE_WORDS]);
raffia_status pinned_chunk_import(int index, enum driver_handle_type type,
                                  const uint64_t handle[DRIVER_HANDLE_WORDS],
                                  const struct driver_chunk_spec *spec, driver_chunk *chunk_p);
raffia_status pinned_page_size_of(int index, const void *at, size_t bytes, raffia_page_kind kind,
                                  size_t expected, struct driver_page_evidence *evidence);

/* blocks.c */
raffia_status pinned_mem_alloc(int index, size_t bytes, void **address_p);
raffia_status pinned_mem_free(int index, void *address, size_t bytes);

/* order.c: the GPU's */
raffia_status pinned_stream_create(int index, driver_stream *stream_p);
raffia_status pinned_stream_destroy(int index, driver_stream stream);
raffia_status pinned_stream_id(int index, driver_stream stream, uint64_t *id_p);
enum driver_default_stream pinned_default_stream(int index);
raffia_status pinned_stream_is_capturing(int index, driver_stream stream, bool *capturing_p);
raffia_status pinned_stream_retire(int index, driver_stream stream);
raffia_status pinned_stream_wait(int index, driver_stream stream);
raffia_status pinned_device_wait(int index);
raffia_status pinned_event_create(int index, driver_event *event_p);
raffia_status pinned_event_destroy(int index, driver_event event);
raffia_status pinned_event_record(int index, driver_event event, driver_stream stream);
raffia_status pinned_event_done(int index, driver_event event, bool *done_p);
raffia_status pinned_event_wait(int index, driver_event event);
raffia_status pinned_stream_wait_event(int index, driver_stream stream, driver_event event);

/* copies.c */
raffia_status pinned_copy(int index, driver_stream stream, void *destination, const void *source,
                          size_t bytes);
raffia_status pinned_copy_batch(int index, driver_stream stream, const struct driver_copy *copies,
                                size_t count);
raffia_status pinned_fill(int index, driver_stream stream, void *destination, unsigned char value,
                          size_t bytes);

#endif
