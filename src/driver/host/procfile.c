#include "driver/host/procfile.h"

#include "core/memory.h"
#include "core/sys.h"

#include <stdlib.h>
#include <string.h>

/* A mount table of a busy container host stays far below this. */
#define WHOLE_BYTES_MAX   ((size_t)4 << 20)
#define WHOLE_BYTES_FIRST ((size_t)8 << 10)

char *host_read_whole(const char *path)
{
    for (size_t capacity = WHOLE_BYTES_FIRST; capacity <= WHOLE_BYTES_MAX; capacity *= 2) {
        char *text = core_malloc(capacity);
        if (!text)
            return NULL;
        ssize_t length = sys_read_text(path, text, capacity);
        if (length >= 0 && (size_t)length + 1 < capacity)
            return text;
        core_free(text);
        if (length < 0)
            return NULL;
    }
    return NULL;
}

static const char *line_behind(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0)
            return line + length;
    }
    return NULL;
}

bool host_find_number(const char *text, const char *key, uint64_t *value_p)
{
    const char *number = line_behind(text, key);
    if (!number)
        return false;
    number += strspn(number, " \t");
    if (*number < '0' || *number > '9')
        return false;
    *value_p = strtoull(number, NULL, 10);
    return true;
}

bool host_find_kilobytes(const char *text, const char *key, uint64_t *bytes_p)
{
    uint64_t kilobytes, bytes;
    if (!host_find_number(text, key, &kilobytes) || __builtin_mul_overflow(kilobytes, 1024, &bytes))
        return false;
    *bytes_p = bytes;
    return true;
}

uint64_t host_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t host_subtract(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}
