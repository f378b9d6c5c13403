/* XXH3 over each tensor, several at a time. */
#include "load/checksum.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/parallel.h"
#include "load/read_back.h"
#include "load/watch.h"

#include <stdatomic.h>
#include <xxhash.h>

struct work {
    raffia_model *model;
    const raffia_load_options *options;
    struct staging *ring; /* NULL: the CPU reads the memory itself */
    _Atomic size_t next;
};

static raffia_status update(void *context, const unsigned char *bytes, size_t count)
{
    XXH3_64bits_update(context, bytes, count);
    return RAFFIA_OK;
}

static raffia_status sum_staged(struct staging *ring, raffia_tensor *tensor)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "no memory for the state of a checksum");
    XXH3_64bits_reset(state);
    raffia_status status = staging_read_back(ring, tensor->data, tensor->bytes, update, state);
    if (!status)
        tensor->checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return status;
}

static raffia_status checksum_some(void *context, unsigned index, unsigned count)
{
    (void)index, (void)count;
    struct work *work = context;
    for (;;) {
        size_t i = atomic_fetch_add(&work->next, 1);
        if (i >= work->model->selection.count)
            return RAFFIA_OK;
        if (load_watch_flag_set(work->options))
            return core_error(RAFFIA_ERROR_CANCELLED,
                              "the load was cancelled while checksums were computed");
        raffia_tensor *tensor = &work->model->tensors[i];
        if (!work->ring || tensor->bytes == 0) {
            tensor->checksum = XXH3_64bits(tensor->bytes ? tensor->data : "", tensor->bytes);
            continue;
        }
        raffia_status status = sum_staged(work->ring, tensor);
        if (status)
            return status;
    }
}

/* Read back, tensor by tensor: what is summed is what the device holds. */
static raffia_status sum_through_ring(struct work *work, unsigned threads)
{
    raffia_model *model = work->model;
    raffia_status status = load_ring_open(model->destination.device, &model->shape, &work->ring);
    if (status)
        return status;
    status =
        core_parallel((unsigned)core_min(threads, model->shape.slot_count), checksum_some, work);
    staging_close(work->ring);
    return status;
}

raffia_status load_checksum(raffia_model *model, const raffia_load_options *options)
{
    struct work work = {.model = model, .options = options};
    unsigned threads = (unsigned)core_min(options->threads, model->selection.count);
    if (model->destination.staged && threads > 0)
        return sum_through_ring(&work, threads);
    return core_parallel(threads, checksum_some, &work);
}
