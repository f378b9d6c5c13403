/* Choosing the way a window is read, and reading through the page cache. */
#include "load/reader.h"

#include "core/error.h"
#include "core/sys.h"
#include "load/catalog_show.h"
#include "load/direct.h"
#include "load/residency.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

/* More of a window than this in the page cache, and reading past the cache is not worth it. */
#define CACHED_SHARE_MAX 0.5

static const char *tensor_of(const struct load_reader *reader, const struct load_window *window)
{
    return reader->source->plan->items[window->cursor.item].name;
}

raffia_status load_read_short(const struct load_reader *reader, const struct load_window *window,
                              uint64_t offset)
{
    const struct catalog_file *file = &reader->source->catalog->files[window->file];
    return core_error(RAFFIA_ERROR_CHANGED,
                      "%s: the file is shorter than when it was opened: it had %" PRIu64
                      " bytes and now ends at or before offset %" PRIu64
                      ", in the stretch from tensor '%s' on; load it again when nobody writes to "
                      "it",
                      catalog_show_path(file->path).text, file->bytes, offset,
                      catalog_show(tensor_of(reader, window)).text);
}

raffia_status load_read_failed(const struct load_reader *reader, const struct load_window *window,
                               uint64_t offset, int error_number)
{
    const struct catalog_file *file = &reader->source->catalog->files[window->file];
    return core_error_errno(
        RAFFIA_ERROR_IO, error_number,
        "%s: cannot read at offset %" PRIu64 ", in the stretch from tensor '%s' on",
        catalog_show_path(file->path).text, offset, catalog_show(tensor_of(reader, window)).text);
}

static void add_vector(struct load_reader *reader, int *count, void *base, size_t bytes)
{
    struct iovec *last = *count ? &reader->vectors[*count - 1] : NULL;
    if (last && (unsigned char *)last->iov_base + last->iov_len == base) {
        last->iov_len += bytes;
        return;
    }
    assert(*count < (int)LOAD_WINDOW_PIECES_MAX);
    reader->vectors[(*count)++] = (struct iovec){base, bytes};
}

/* Lists where the bytes of the window go, gaps included, in order of the file. */
static int scatter(struct load_reader *reader, const struct load_window *window)
{
    const struct load_source *source = reader->source;
    struct load_cursor cursor = window->cursor;
    uint64_t at = window->file_offset, end = at + window->bytes;
    int count = 0;
    while (at < end) {
        struct load_piece piece = load_piece_next(source->plan, &cursor, end);
        if (piece.file_offset > at)
            add_vector(reader, &count, reader->gap, (size_t)(piece.file_offset - at));
        add_vector(reader, &count, source->addresses[piece.item] + piece.position,
                   (size_t)piece.bytes);
        at = piece.file_offset + piece.bytes;
    }
    return count;
}

/* Drops the first `bytes` of the vectors; returns the first that has bytes left. */
static int skip_vectors(struct iovec *vectors, int first, size_t bytes)
{
    while (bytes >= vectors[first].iov_len) {
        bytes -= vectors[first].iov_len;
        first++;
        if (bytes == 0)
            return first;
    }
    vectors[first].iov_base = (unsigned char *)vectors[first].iov_base + bytes;
    vectors[first].iov_len -= bytes;
    return first;
}

static raffia_status read_buffered(struct load_reader *reader, const struct load_window *window)
{
    struct load_source *source = reader->source;
    int fd = source->catalog->files[window->file].fd;
    int count = scatter(reader, window), first = 0;
    for (size_t done = 0; done < window->bytes;) {
        if (load_stopped(source))
            return RAFFIA_OK;
        uint64_t offset = window->file_offset + done;
        ssize_t got = sys_preadv(fd, reader->vectors + first, count - first, (off_t)offset);
        atomic_fetch_add_explicit(&source->reads, 1, memory_order_relaxed);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return load_read_failed(reader, window, offset, errno);
        if (got == 0)
            return load_read_short(reader, window, offset);
        atomic_fetch_add_explicit(&source->activity, 1, memory_order_relaxed);
        done += (size_t)got;
        if (done < window->bytes)
            first = skip_vectors(reader->vectors, first, (size_t)got);
    }
    atomic_fetch_add_explicit(&source->bytes_buffered, window->payload, memory_order_relaxed);
    return RAFFIA_OK;
}

bool load_wants_direct(const struct load_source *source, size_t file, uint64_t offset, size_t bytes)
{
    if (source->mode != RAFFIA_READER_AUTO)
        return source->mode == RAFFIA_READER_DIRECT;
    double cached = load_cached_share(source->catalog->files[file].fd, offset, bytes);
    return cached >= 0 && cached <= CACHED_SHARE_MAX;
}

raffia_status load_read_window(struct load_reader *reader, const struct load_window *window)
{
    struct load_source *source = reader->source;
    bool buffered = true;
    raffia_status status = RAFFIA_OK;
    if (load_wants_direct(source, window->file, window->file_offset, window->bytes)) {
        status = load_read_direct(reader, window, &buffered);
        if (!status && buffered)
            atomic_fetch_add_explicit(&source->direct_refusals, 1, memory_order_relaxed);
    }
    if (!status && buffered)
        status = read_buffered(reader, window);
    if (!status)
        atomic_fetch_add_explicit(&source->bytes_done, window->payload, memory_order_relaxed);
    return status;
}

void load_reader_close(struct load_reader *reader)
{
    if (reader->staging)
        sys_munmap(reader->staging, reader->source->staging_bytes);
    reader->staging = NULL;
}
