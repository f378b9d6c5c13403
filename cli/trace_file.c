/* A trace from a file or from standard input. */
#include "cli/input.h"
#include "cli/trace.h"
#include "core/checked.h"
#include "core/error.h"
#include "core/memory.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PIECE_FIRST ((size_t)1 << 16)

/* What gzip writes begins so. */
static const unsigned char gzip_magic[] = {0x1f, 0x8b};

struct contents {
    char *text;
    size_t bytes, capacity;
};

static raffia_status make_room(const char *name, struct contents *contents)
{
    if (contents->bytes < contents->capacity)
        return RAFFIA_OK;
    size_t capacity = contents->capacity ? contents->capacity * 2 : PIECE_FIRST;
    if (capacity > TRACE_BYTES_MAX)
        return core_error(RAFFIA_ERROR_LIMIT, "%s: traces of more than %zu bytes are not read",
                          name, TRACE_BYTES_MAX);
    char *text = core_reallocate(contents->text, capacity, 1);
    if (!text)
        return RAFFIA_ERROR_OUT_OF_HOST_MEMORY;
    contents->text = text;
    contents->capacity = capacity;
    return RAFFIA_OK;
}

/* To the end, which for a pipe nobody knows before. */
static raffia_status read_all(const char *name, int fd, struct contents *contents)
{
    for (;;) {
        raffia_status status = make_room(name, contents);
        if (status)
            return status;
        ssize_t got =
            read(fd, contents->text + contents->bytes, contents->capacity - contents->bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return core_error_errno(core_status_of_errno(errno), errno, "%s: cannot read the trace",
                                    name);
        if (got == 0)
            return RAFFIA_OK;
        contents->bytes += (size_t)got;
    }
}

raffia_status trace_read(const char *path, struct trace *trace)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    struct contents contents = {0};
    int fd = STDIN_FILENO;
    raffia_status status = standard ? RAFFIA_OK : input_open(path, &fd);
    if (status)
        return status;
    status = read_all(name, fd, &contents);
    if (!status && contents.bytes >= sizeof gzip_magic &&
        memcmp(contents.text, gzip_magic, sizeof gzip_magic) == 0)
        status = core_error(RAFFIA_ERROR_FORMAT,
                            "%s: it is compressed; read it like this: gzip -dc FILE | raffia bench "
                            "trace -",
                            name);
    if (!status)
        status = trace_parse(name, contents.text, contents.bytes, trace);
    core_free(contents.text);
    if (!standard)
        close(fd);
    return status;
}
