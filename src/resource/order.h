/*
 * Memory that was freed on a stream and is used again: by whom, and after what.
 *
 * A mark is left where a block is freed. Before the block is used again the mark is joined: on the
 * same stream that is nothing, on another one the work to come waits for the event, and where the
 * CPU writes the memory in no stream's order the call itself waits.
 *
 * None of it is thread-safe for one mark; the owner's lock covers it.
 */
#ifndef RESOURCE_ORDER_H
#define RESOURCE_ORDER_H

#include "resource/resource.h"

struct resource_order {
    struct driver_device device; /* driver NULL: not known, and only the stream NULL is taken */
    bool asynchronous;
};

/* All zero: nothing is to be waited for. */
struct resource_mark {
    driver_event event; /* kept for the next time when it is no longer pending */
    uint64_t stream_id;
    bool pending;
};

/* By the device of the resource whose memory it is. */
void resource_order_init(struct resource_order *order, raffia_resource_ref upstream);

/* INVALID_ARGUMENT for a stream that cannot be. */
raffia_status resource_order_check(const struct resource_order *order, raffia_stream stream);

/* A number that no other stream has; 0 without streams. */
raffia_status resource_order_id(const struct resource_order *order, raffia_stream stream,
                                uint64_t *id_p);

/* Marks the work submitted to the stream so far. BUSY while it is captured. A failure leaves the
 * mark as it was. */
raffia_status resource_order_mark(const struct resource_order *order, raffia_stream stream,
                                  struct resource_mark *mark);

/* Lets what comes on the stream begin after the mark. May block where DRIVER_REUSE_BY_EVENT is set.
 */
raffia_status resource_order_join(const struct resource_order *order, raffia_stream stream,
                                  struct resource_mark *mark);

/* What the memory just taken from upstream in a stream's order comes after, for other streams to
 * follow. Nothing where the stream is being captured: an upstream gives a graph only memory that
 * nobody else still uses. */
raffia_status resource_order_mark_birth(const struct resource_order *order, raffia_stream stream,
                                        struct resource_mark *mark);

/* As join, for a mark that many blocks share: it stays as it is, so that threads may do so at once.
 */
raffia_status resource_order_follow(const struct resource_order *order, raffia_stream stream,
                                    const struct resource_mark *mark);

/* Waits until the work marked is done. */
raffia_status resource_order_wait(const struct resource_order *order, struct resource_mark *mark);

/* Waits for the stream itself. BUSY while it is captured. */
raffia_status resource_order_drain(const struct resource_order *order, raffia_stream stream);

/* The same at a teardown, where nobody could try again: so it is tried twice here. */
raffia_status resource_order_wait_at_end(const struct resource_order *order,
                                         struct resource_mark *mark);

void resource_order_end(const struct resource_order *order, struct resource_mark *mark);

#endif
