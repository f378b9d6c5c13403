/* Filling slots from files, and saying where their bytes go. */
#include "load/feed.h"

#include "core/checked.h"
#include "core/sys.h"
#include "load/direct.h"
#include "load/options.h"

#include <assert.h>
#include <errno.h>

_Static_assert(LOAD_WINDOW_PIECES_MAX <= STAGING_COPIES_MAX,
               "a window may have to be copied piece by piece");

/* A read that is shorter is not worth its call. */
#define PIECE_BYTES_MIN ((size_t)128 << 10)

/* Where in the file a window's slot begins. */
static uint64_t origin_of(const struct load_window *window)
{
    return window->file_offset - window->file_offset % LOAD_STAGING_UNIT;
}

/* Bytes of its slot that a window takes. */
static size_t span_of(const struct load_window *window)
{
    return (size_t)(window->file_offset + window->bytes - origin_of(window));
}

/* Short windows, as the first are for the link to begin early, are cut finer: one reader alone
 * would take as long for one of them as all together for a slot. */
static size_t piece_bytes_of(const struct load_feed *feed, const struct load_window *window)
{
    const size_t share = core_max(span_of(window) / feed->readers, PIECE_BYTES_MIN);
    return core_min(core_align_up_unchecked(share, LOAD_STAGING_UNIT), feed->piece_bytes);
}

static unsigned count_pieces(void *context, size_t stretch)
{
    const struct load_feed *feed = context;
    const struct load_window *window = &feed->source->plan->windows[stretch];
    const size_t piece_bytes = piece_bytes_of(feed, window);
    return (unsigned)((span_of(window) + piece_bytes - 1) / piece_bytes);
}

/* Adds a copy, or makes the last one longer: what keeps its distance goes along in one copy, with
 * the padding between. */
static size_t add_copy(const struct load_feed *feed, struct driver_copy *copies, size_t count,
                       unsigned char *to, const unsigned char *from, size_t bytes)
{
    struct driver_copy *last = count ? &copies[count - 1] : NULL;
    if (last) {
        size_t step = (size_t)(from - (const unsigned char *)last->source);
        bool keeps_distance = (uintptr_t)to - (uintptr_t)last->destination == step;
        if (keeps_distance && (step == last->bytes || feed->one_block)) {
            last->bytes = step + bytes;
            return count;
        }
    }
    copies[count] = (struct driver_copy){to, from, bytes};
    return count + 1;
}

static size_t list_copies(void *context, size_t stretch, const unsigned char *slot,
                          struct driver_copy copies[static STAGING_COPIES_MAX])
{
    const struct load_feed *feed = context;
    const struct load_plan *plan = feed->source->plan;
    const struct load_window *window = &plan->windows[stretch];
    struct load_cursor cursor = window->cursor;
    uint64_t end = window->file_offset + window->bytes;
    size_t count = 0;
    for (uint64_t at = window->file_offset; at < end;) {
        struct load_piece piece = load_piece_next(plan, &cursor, end);
        assert(count < STAGING_COPIES_MAX);
        count = add_copy(feed, copies, count, feed->source->addresses[piece.item] + piece.position,
                         slot + (piece.file_offset - origin_of(window)), (size_t)piece.bytes);
        at = piece.file_offset + piece.bytes;
    }
    return count;
}

static void count_done(void *context, size_t stretch)
{
    const struct load_feed *feed = context;
    const struct load_window *window = &feed->source->plan->windows[stretch];
    atomic_fetch_add_explicit(&feed->source->bytes_done, window->payload, memory_order_relaxed);
}

struct staging_work load_feed_work(struct load_feed *feed)
{
    return (struct staging_work){.stretch_count = feed->source->plan->window_count,
                                 .pieces = count_pieces,
                                 .copies = list_copies,
                                 .context = feed,
                                 .done = count_done};
}

/* Bytes of tensors between two offsets of the window's file. */
static size_t payload_between(const struct load_plan *plan, const struct load_window *window,
                              uint64_t begin, uint64_t end)
{
    size_t payload = 0;
    struct load_cursor cursor = window->cursor;
    for (uint64_t at = window->file_offset; at < end;) {
        struct load_piece piece = load_piece_next(plan, &cursor, end);
        at = piece.file_offset + piece.bytes;
        if (piece.file_offset < end && at > begin)
            payload += (size_t)(at - (piece.file_offset > begin ? piece.file_offset : begin));
    }
    return payload;
}

static raffia_status read_buffered(struct load_reader *reader, const struct load_window *window,
                                   unsigned char *to, uint64_t offset, size_t bytes)
{
    struct load_source *source = reader->source;
    int fd = source->catalog->files[window->file].fd;
    for (size_t done = 0; done < bytes && !load_stopped(source);) {
        ssize_t got = sys_pread(fd, to + done, bytes - done, (off_t)(offset + done));
        atomic_fetch_add_explicit(&source->reads, 1, memory_order_relaxed);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return load_read_failed(reader, window, offset + done, errno);
        if (got == 0)
            return load_read_short(reader, window, offset + done);
        atomic_fetch_add_explicit(&source->activity, 1, memory_order_relaxed);
        done += (size_t)got;
    }
    return RAFFIA_OK;
}

raffia_status load_feed_piece(const struct load_feed *feed, struct load_reader *reader,
                              const struct staging_piece *piece)
{
    struct load_source *source = feed->source;
    const struct load_window *window = &source->plan->windows[piece->stretch];
    uint64_t origin = origin_of(window), window_end = window->file_offset + window->bytes;
    const size_t piece_bytes = piece_bytes_of(feed, window);
    uint64_t begin = origin + (uint64_t)piece->number * piece_bytes;
    uint64_t end = begin + piece_bytes;
    if (begin < window->file_offset)
        begin = window->file_offset;
    if (end > window_end)
        end = window_end;
    size_t bytes = (size_t)(end - begin);
    unsigned char *to = piece->memory + (begin - origin);
    bool buffered = true;
    raffia_status status = RAFFIA_OK;
    if (load_wants_direct(source, window->file, begin, bytes)) {
        status = load_read_direct_at(reader, window, to, begin, bytes, &buffered);
        if (!status && buffered)
            atomic_fetch_add_explicit(&source->direct_refusals, 1, memory_order_relaxed);
    }
    _Atomic uint64_t *counter = buffered ? &source->bytes_buffered : &source->bytes_direct;
    if (!status && buffered)
        status = read_buffered(reader, window, to, begin, bytes);
    if (!status)
        atomic_fetch_add_explicit(counter, payload_between(source->plan, window, begin, end),
                                  memory_order_relaxed);
    return status;
}
