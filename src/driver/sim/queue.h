/*
 * Streams: queues of operations, each run in order by a worker thread of its own. Everything here
 * is called with the lock held.
 *
 * The default stream is of the legacy kind: an operation on it begins when everything submitted to
 * the device before is done, and nothing submitted to the device after begins before it is done.
 * Operations carry a sequence number of their device, so that "before" is a comparison.
 */
#ifndef DRIVER_SIM_QUEUE_H
#define DRIVER_SIM_QUEUE_H

#include "driver/sim/sim.h"
#include "driver/sim/state.h"

/* What an event stands for since it was last recorded. Shared by the event and the operations that
 * set it or wait for it. */
struct sim_mark {
    unsigned references;
    bool done;
    bool captured; /* recorded by a capture that was not submitted: never done */
};

struct sim_mark *sim_mark_create(void);
void sim_mark_retain(struct sim_mark *mark);
void sim_mark_release(struct sim_mark *mark); /* NULL is ignored */

enum sim_op_kind {
    SIM_OP_COPY,
    SIM_OP_FILL,
    SIM_OP_LAUNCH,
    SIM_OP_DELAY,
    SIM_OP_MARK,
    SIM_OP_WAIT,
    SIM_OP_POOL_ALLOC,
    SIM_OP_POOL_FREE,
};

struct sim_op {
    struct sim_op *next;
    enum sim_op_kind kind;
    bool is_uncounted; /* from sim_op_create_uncounted() */
    uint64_t sequence;
    unsigned char value;          /* FILL */
    unsigned microseconds;        /* DELAY */
    struct sim_mark *mark;        /* MARK, WAIT: owned */
    struct sim_pool_block *block; /* POOL_ALLOC, POOL_FREE: whose; NULL: nobody's any more */
    const void *module;           /* LAUNCH: the module the function is of */
    void (*function)(void **arguments, unsigned index); /* LAUNCH */
    unsigned threads;
    uint64_t arguments[SIM_ARGUMENTS_MAX];

    /* The memory it touches: what COPY copies and FILL fills; for LAUNCH one byte for each
     * parameter that points into device memory. Behind these pieces lie as many with the addresses
     * where the CPU finds the memory; see sim_op_real(). */
    size_t piece_count;
    struct driver_copy pieces[];
};

struct sim_stream {
    struct sim_stream *next; /* in sim_device.all */
    struct sim_device *device;
    uint64_t id;
    pthread_t worker;
    struct sim_op *first, *last;         /* not done; the first may be running */
    struct sim_op *record, *record_last; /* what a capture recorded */
    unsigned waiters;                    /* threads in stream_wait() */
    bool running;
    bool held;
    bool capturing;
    bool retired;
    bool closing;  /* destroyed: the worker ends when the queue is empty */
    bool detached; /* nobody joins the worker: it frees the stream */
};

raffia_status sim_stream_start(struct sim_device *device, struct sim_stream **stream_p);

/* Destroys a stream that has no handle any more. Waits for what can run; work that cannot begin
 * yet (its stream is held, or waits for another) runs later, as on a real device. */
void sim_stream_close(struct sim_stream *stream);

/* Drops the device's queued work, ends its workers, and frees its streams. */
void sim_streams_clear(struct sim_device *device);

/* The stream behind a handle. A misuse if it is destroyed; NULL starts the default stream. */
raffia_status sim_stream_find(struct sim_device *device, driver_stream handle, const char *verb,
                              struct sim_stream **stream_p);

/* The same for a verb that submits work: also a misuse if the stream was retired. */
raffia_status sim_stream_find_open(struct sim_device *device, driver_stream handle,
                                   const char *verb, struct sim_stream **stream_p);

/* A new operation with room for its pieces; NULL if there is no memory. */
struct sim_op *sim_op_create(enum sim_op_kind kind, size_t piece_count);
void sim_op_free(struct sim_op *op);

/* The same without pieces, of memory that is the device's own and no leak of the code under test
 * while it is queued. */
struct sim_op *sim_op_create_uncounted(enum sim_op_kind kind);

/* Whether the operation is in a queue that can go on now. */
bool sim_op_can_come(const struct sim_device *device, const struct sim_op *op);

/* Fills in the second half of the pieces, when the first is complete. */
void sim_op_real(struct sim_op *op);

/* Does the work of a copy, fill, launch or delay. */
void sim_op_execute(struct sim_op *op);

/* Takes the operation over: queues it, or records it if the stream is capturing. */
void sim_stream_submit(struct sim_stream *stream, struct sim_op *op);

/* Puts a recorded operation at the end of the queue. */
void sim_stream_enqueue(struct sim_stream *stream, struct sim_op *op);

/* pools.c: what happens to a pool's block when its stream gets there, and before work is run that
 * touches one. */
void sim_pool_arrive(struct sim_device *device, struct sim_op *op);
void sim_pools_check_begun(struct sim_device *device, const struct sim_op *op);

/* Somebody waited: pools give back what is beyond their thresholds. */
void sim_pools_settle(struct sim_device *device);

/* Objects of order and code, freed by a reset. */
void sim_events_clear(struct sim_device *device);
void sim_modules_clear(struct sim_device *device);

/* The verbs. */
enum driver_default_stream sim_default_stream(int index);
raffia_status sim_stream_create(int index, driver_stream *stream_p);
raffia_status sim_stream_destroy(int index, driver_stream handle);
raffia_status sim_stream_id(int index, driver_stream handle, uint64_t *id_p);
raffia_status sim_stream_is_capturing(int index, driver_stream handle, bool *capturing_p);
raffia_status sim_stream_retire(int index, driver_stream handle);
raffia_status sim_stream_wait(int index, driver_stream handle);
raffia_status sim_device_wait(int index);
raffia_status sim_event_create(int index, driver_event *event_p);
raffia_status sim_event_destroy(int index, driver_event handle);
raffia_status sim_event_record(int index, driver_event handle, driver_stream stream_handle);
raffia_status sim_event_done(int index, driver_event handle, bool *done_p);
raffia_status sim_event_wait(int index, driver_event handle);
raffia_status sim_stream_wait_event(int index, driver_stream stream_handle, driver_event handle);
raffia_status sim_pool_create(int index, const struct driver_pool_spec *spec, driver_pool *pool_p);
raffia_status sim_pool_destroy(int index, driver_pool pool);
raffia_status sim_pool_alloc(int index, driver_pool pool, driver_stream stream, size_t bytes,
                             void **address_p);
raffia_status sim_pool_free(int index, driver_pool pool, driver_stream stream, void *address);
raffia_status sim_pool_trim(int index, driver_pool pool, size_t keep_bytes);
raffia_status sim_copy(int index, driver_stream handle, void *destination, const void *source,
                       size_t bytes);
raffia_status sim_copy_batch(int index, driver_stream handle, const struct driver_copy *copies,
                             size_t count);
raffia_status sim_fill(int index, driver_stream handle, void *destination, unsigned char value,
                       size_t bytes);
raffia_status sim_find_memory(int index, const void *at, struct driver_memory *memory);
raffia_status sim_module_load(int index, const void *image, size_t bytes, driver_module *module_p);
raffia_status sim_module_unload(int index, driver_module handle);
raffia_status sim_module_function(int index, driver_module handle, const char *name,
                                  driver_function *function_p);
raffia_status sim_launch(int index, driver_stream handle, driver_function function,
                         const struct driver_launch *launch);

#endif
