/* XXH3 over each tensor, several at a time. */
#include "load/checksum.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/parallel.h"
#include "load/watch.h"

#include <stdatomic.h>
#include <xxhash.h>

struct work {
    raffia_model *model;
    const raffia_load_options *options;
    _Atomic size_t next;
};

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
        tensor->checksum = XXH3_64bits(tensor->bytes ? tensor->data : "", tensor->bytes);
    }
}

raffia_status load_checksum(raffia_model *model, const raffia_load_options *options)
{
    struct work work = {.model = model, .options = options};
    unsigned threads = (unsigned)core_min(options->threads, model->selection.count);
    return core_parallel(threads, checksum_some, &work);
}
