/* Any bytes as a trace: what is accepted must be a history that can be, and its summary must be
 * that of its operations. */
#include "cli/trace.h"

#include <raffia/log.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes);

static void must(bool holds)
{
    if (!holds)
        abort();
}

/* What a block is at some moment. */
enum life { LIFE_UNBORN, LIFE_LIVE, LIFE_FREED };

static void check(const struct trace *trace)
{
    unsigned char *lives = calloc((size_t)trace->blocks + 1, 1);
    uint64_t *sizes = calloc((size_t)trace->blocks + 1, sizeof *sizes);
    uint64_t live_bytes = 0, peak = 0, asked = 0;
    size_t live = 0, most = 0;
    uint32_t blocks = 0;
    must(lives && sizes);
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_op *op = &trace->ops[i];
        must(op->block < trace->blocks);
        must(lives[op->block] == (op->frees ? LIFE_LIVE : LIFE_UNBORN));
        lives[op->block] = op->frees ? LIFE_FREED : LIFE_LIVE;
        if (op->frees) {
            must(op->bytes == sizes[op->block]);
            live_bytes -= op->bytes;
            live--;
        } else {
            must(op->block == blocks++);
            sizes[op->block] = op->bytes;
            live_bytes += op->bytes;
            asked += op->bytes;
            live++;
        }
        if (live_bytes > peak) {
            peak = live_bytes;
            must(i >= trace->peak_at || peak < trace->peak_bytes);
        }
        most = live > most ? live : most;
    }
    must(blocks == trace->blocks && trace->count >= 1);
    must(peak == trace->peak_bytes && asked == trace->asked_bytes);
    must(most == trace->live_max && live == trace->live_end);
    free(lives);
    free(sizes);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t bytes)
{
    raffia_log_set_level(RAFFIA_LOG_OFF);
    struct trace trace;
    if (trace_parse("fuzz", (const char *)data, bytes, &trace))
        return 0;
    check(&trace);
    trace_clear(&trace);
    return 0;
}
