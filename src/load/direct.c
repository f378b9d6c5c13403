/* Direct reads: opening a file for them, alignment, staging, and what to do when refused. */
#include "load/direct.h"

#include "core/checked.h"
#include "core/log.h"
#include "core/sys.h"
#include "load/catalog_show.h"
#include "load/options.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

/* Room for "/proc/self/fd/" and any int. */
#define FD_PATH_MAX 40

/* Shorter pieces are not worth a read of their own. */
#define IN_PLACE_BYTES_MIN LOAD_CONGRUENT_BYTES_MIN

/* A second descriptor of the same file, or -1 with errno set. By way of /proc it is the very file
 * that is open; by its path it may have been replaced meanwhile. */
static int open_again(const struct catalog_file *file)
{
    char self[FD_PATH_MAX];
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->fd);
    int fd = sys_open(self, O_RDONLY | O_DIRECT);
    if (fd < 0 && errno == ENOENT)
        fd = sys_open(file->path, O_RDONLY | O_DIRECT);
    if (fd < 0)
        return -1;
    struct stat status;
    if (sys_fstat(fd, &status) || status.st_dev != file->device || status.st_ino != file->inode) {
        sys_close(fd);
        errno = ESTALE;
        return -1;
    }
    return fd;
}

/* What O_DIRECT wants of this file; 0 if it cannot be had. Never less than the plan's congruence:
 * kernels report 512 where they can, but whole pages are right everywhere. */
static size_t alignment_of(int fd)
{
    size_t memory = 0, offset = 0;
    if (sys_direct_alignment(fd, &memory, &offset))
        return LOAD_CONGRUENCE;
    if (memory == 0 || offset == 0 || memory > LOAD_CONGRUENCE || offset > LOAD_STAGING_UNIT ||
        !core_is_power_of_two(memory) || !core_is_power_of_two(offset))
        return 0;
    return core_max(offset, LOAD_CONGRUENCE);
}

static void log_refusal(const struct load_source *source, size_t index, int error_number)
{
    core_log(source->mode == RAFFIA_READER_DIRECT ? RAFFIA_LOG_WARN : RAFFIA_LOG_INFO,
             "%s: cannot be read with O_DIRECT (%s); it is read through the page cache instead",
             catalog_show_path(source->catalog->files[index].path).text, strerror(error_number));
}

static void refuse(struct load_source *source, size_t index, int error_number)
{
    struct load_direct_file *direct = &source->direct_files[index];
    if (atomic_exchange(&direct->state, LOAD_DIRECT_REFUSED) != LOAD_DIRECT_REFUSED)
        log_refusal(source, index, error_number);
}

/* Returns 0, or the error number for which the file cannot be read directly. */
static int try_direct(const struct catalog_file *file, struct load_direct_file *direct)
{
    int fd = open_again(file);
    if (fd < 0)
        return errno;
    direct->alignment = alignment_of(fd);
    if (direct->alignment == 0) {
        sys_close(fd);
        return EOPNOTSUPP;
    }
    direct->fd = fd;
    return 0;
}

static bool open_direct(struct load_source *source, size_t index)
{
    struct load_direct_file *direct = &source->direct_files[index];
    int error_number = 0;
    if (atomic_load_explicit(&direct->state, memory_order_acquire) == LOAD_DIRECT_UNTRIED) {
        pthread_mutex_lock(&source->direct_lock);
        if (atomic_load(&direct->state) == LOAD_DIRECT_UNTRIED) {
            error_number = try_direct(&source->catalog->files[index], direct);
            atomic_store_explicit(&direct->state,
                                  error_number ? LOAD_DIRECT_REFUSED : LOAD_DIRECT_OPEN,
                                  memory_order_release);
        }
        pthread_mutex_unlock(&source->direct_lock);
    }
    if (error_number)
        log_refusal(source, index, error_number);
    return atomic_load_explicit(&direct->state, memory_order_acquire) == LOAD_DIRECT_OPEN;
}

static bool have_staging(struct load_reader *reader)
{
    if (reader->staging)
        return true;
    size_t bytes = reader->source->staging_bytes;
    void *staging =
        sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (staging == MAP_FAILED) {
        core_log_info("no staging buffer of %zu bytes to be had (%s); reading through the page "
                      "cache instead",
                      bytes, strerror(errno));
        return false;
    }
    /* Fewer, larger pages make a direct read cheaper to set up; without them it works as well. */
    if (bytes >= HUGE_PAGE_BYTES && sys_madvise(staging, bytes, MADV_HUGEPAGE))
        core_log_debug("staging buffer without huge pages: %s", strerror(errno));
    reader->staging = staging;
    atomic_fetch_add_explicit(&reader->source->staging_used, bytes, memory_order_relaxed);
    return true;
}

/* Whether a piece has a middle that can be read straight into place, and which. */
static bool find_middle(const struct load_part *piece, size_t alignment, uint64_t *begin_p,
                        uint64_t *end_p)
{
    if (piece->bytes < IN_PLACE_BYTES_MIN ||
        ((uintptr_t)piece->address - (size_t)piece->file_offset) % alignment != 0)
        return false;
    *begin_p = core_align_up_unchecked((size_t)piece->file_offset, alignment);
    *end_p = core_align_down((size_t)(piece->file_offset + piece->bytes), alignment);
    return *begin_p < *end_p;
}

static void add_part(struct load_reader *reader, size_t *count, const struct load_part *piece,
                     uint64_t begin, uint64_t end, bool in_place)
{
    if (begin == end)
        return;
    assert(*count < LOAD_PARTS_MAX);
    reader->parts[(*count)++] = (struct load_part){
        .address = piece->address + (begin - piece->file_offset),
        .file_offset = begin,
        .bytes = (size_t)(end - begin),
        .in_place = in_place,
    };
}

static size_t list_parts(struct load_reader *reader, const struct load_window *window,
                         size_t alignment)
{
    const struct load_source *source = reader->source;
    struct load_cursor cursor = window->cursor;
    uint64_t at = window->file_offset, window_end = at + window->bytes;
    size_t count = 0;
    while (at < window_end) {
        struct load_piece next = load_piece_next(source->plan, &cursor, window_end);
        struct load_part piece = {
            .address = source->addresses[next.item] + next.position,
            .file_offset = next.file_offset,
            .bytes = (size_t)next.bytes,
        };
        uint64_t end = piece.file_offset + piece.bytes, begin_middle = end, end_middle = end;
        if (!find_middle(&piece, alignment, &begin_middle, &end_middle))
            begin_middle = end_middle = end;
        add_part(reader, &count, &piece, piece.file_offset, begin_middle, false);
        add_part(reader, &count, &piece, begin_middle, end_middle, true);
        add_part(reader, &count, &piece, end_middle, end, false);
        at = end;
    }
    return count;
}

/* A window's direct read under way. */
struct direct_read {
    struct load_reader *reader;
    const struct load_window *window;
    struct load_direct_file *file;
    bool refused;
    uint64_t staged;
};

static bool is_refusal(int error_number)
{
    return error_number == EINVAL || error_number == EFAULT || error_number == EOPNOTSUPP;
}

/*
 * Reads aligned `bytes` at aligned `offset`, of which the first `wanted` must come: the last block
 * of a file may be short. After a short read it goes on at the last whole block.
 */
static raffia_status read_blocks(struct direct_read *read, unsigned char *to, size_t bytes,
                                 size_t wanted, uint64_t offset)
{
    struct load_source *source = read->reader->source;
    size_t done = 0;
    while (!read->refused && !load_stopped(source)) {
        ssize_t got = sys_pread(read->file->fd, to + done, bytes - done, (off_t)(offset + done));
        atomic_fetch_add_explicit(&source->reads, 1, memory_order_relaxed);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && is_refusal(errno)) {
            refuse(source, read->window->file, errno);
            read->refused = true;
            break;
        }
        if (got < 0)
            return load_read_failed(read->reader, read->window, offset + done, errno);
        atomic_fetch_add_explicit(&source->activity, 1, memory_order_relaxed);
        if (done + (size_t)got >= wanted)
            break;
        size_t whole = core_align_down((size_t)got, read->file->alignment);
        if (whole == 0)
            return load_read_short(read->reader, read->window, offset + done + (size_t)got);
        done += whole;
    }
    return RAFFIA_OK;
}

/* Reads the stretch of `count` parts, gaps included, into the staging buffer and copies each part
 * to its place. */
static raffia_status read_staged(struct direct_read *read, const struct load_part *parts,
                                 size_t count)
{
    struct load_reader *reader = read->reader;
    if (!have_staging(reader)) {
        read->refused = true;
        return RAFFIA_OK;
    }
    const struct load_part *last = &parts[count - 1];
    uint64_t end = last->file_offset + last->bytes;
    uint64_t begin = core_align_down((size_t)parts->file_offset, read->file->alignment);
    size_t bytes = core_align_up_unchecked((size_t)(end - begin), read->file->alignment);
    assert(bytes <= reader->source->staging_bytes);
    raffia_status status = read_blocks(read, reader->staging, bytes, (size_t)(end - begin), begin);
    if (status || read->refused || load_stopped(reader->source))
        return status;
    for (size_t i = 0; i < count; i++) {
        memcpy(parts[i].address, reader->staging + (parts[i].file_offset - begin), parts[i].bytes);
        read->staged += parts[i].bytes;
    }
    return RAFFIA_OK;
}

raffia_status load_read_direct(struct load_reader *reader, const struct load_window *window,
                               bool *refused_p)
{
    struct load_source *source = reader->source;
    *refused_p = !open_direct(source, window->file);
    if (*refused_p)
        return RAFFIA_OK;
    struct direct_read read = {
        .reader = reader, .window = window, .file = &source->direct_files[window->file]};
    size_t count = list_parts(reader, window, read.file->alignment);
    raffia_status status = RAFFIA_OK;
    for (size_t i = 0; i < count && !status && !read.refused && !load_stopped(source);) {
        struct load_part *part = &reader->parts[i];
        if (part->in_place) {
            status = read_blocks(&read, part->address, part->bytes, part->bytes, part->file_offset);
            i++;
            continue;
        }
        size_t end = i + 1;
        while (end < count && !reader->parts[end].in_place)
            end++;
        status = read_staged(&read, part, end - i);
        i = end;
    }
    if (status || read.refused) {
        *refused_p = read.refused;
        return status;
    }
    atomic_fetch_add_explicit(&source->bytes_direct, window->payload, memory_order_relaxed);
    atomic_fetch_add_explicit(&source->bytes_staged, read.staged, memory_order_relaxed);
    return RAFFIA_OK;
}

raffia_status load_read_direct_at(struct load_reader *reader, const struct load_window *window,
                                  unsigned char *to, uint64_t offset, size_t bytes, bool *refused_p)
{
    struct load_source *source = reader->source;
    *refused_p = !open_direct(source, window->file);
    if (*refused_p)
        return RAFFIA_OK;
    struct direct_read read = {
        .reader = reader, .window = window, .file = &source->direct_files[window->file]};
    size_t before = (size_t)offset & (read.file->alignment - 1);
    size_t wanted = before + bytes;
    size_t whole = core_align_up_unchecked(wanted, read.file->alignment);
    raffia_status status = read_blocks(&read, to - before, whole, wanted, offset - before);
    *refused_p = read.refused;
    return status;
}
