#include "load/catalog_show.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES_MAX 80
#define PATH_BYTES_MAX 160

/* Longest piece that one character becomes: \xNN, or four bytes of UTF-8. */
#define PIECE_MAX 4

static const char cut_mark[] = "...";

_Static_assert(PATH_BYTES_MAX + PIECE_MAX + 2 * sizeof cut_mark <= CATALOG_SHOW_MAX,
               "a shown path must fit");

/* Control characters, and those that change the direction of text or break lines. */
static bool is_hidden(uint32_t character)
{
    static const struct {
        uint32_t first, last;
    } hidden[] = {{0x0000, 0x001f}, {0x007f, 0x009f}, {0x061c, 0x061c}, {0x200b, 0x200f},
                  {0x2028, 0x202e}, {0x2060, 0x206f}, {0xd800, 0xdfff}, {0xfeff, 0xfeff}};
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (character >= hidden[i].first && character <= hidden[i].last)
            return true;
    return false;
}

/* Bytes of the character at `text` if it is well-formed UTF-8 that can be shown as it is, else 0.
 * The NUL at the end of the text is no continuation byte, so nothing behind it is read. */
static size_t printable_bytes(const unsigned char *text)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    static const uint32_t largest = 0x10ffff;
    unsigned char lead = text[0];
    if (lead < 0x80)
        return is_hidden(lead) ? 0 : 1;
    size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc0 || lead >= 0xf8)
        return 0;
    uint32_t character = lead & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (text[i] & 0x3fu);
    }
    if (character < smallest[bytes] || character > largest || is_hidden(character))
        return 0;
    return bytes;
}

/* Appends `text` to `shown`, which holds `used` bytes, until `maximum` bytes are used. */
static void append(struct catalog_shown *shown, size_t used, const char *text, size_t maximum)
{
    const unsigned char *rest = (const unsigned char *)text;
    while (*rest) {
        size_t bytes = printable_bytes(rest);
        char piece[PIECE_MAX + 1];
        if (bytes)
            snprintf(piece, sizeof piece, "%.*s", (int)bytes, (const char *)rest);
        else
            snprintf(piece, sizeof piece, "\\x%02x", *rest);
        if (used + strlen(piece) > maximum) {
            memcpy(shown->text + used, cut_mark, sizeof cut_mark);
            return;
        }
        memcpy(shown->text + used, piece, strlen(piece));
        used += strlen(piece);
        rest += bytes ? bytes : 1;
    }
    shown->text[used] = '\0';
}

struct catalog_shown catalog_show(const char *text)
{
    struct catalog_shown shown;
    append(&shown, 0, text, NAME_BYTES_MAX);
    return shown;
}

struct catalog_shown catalog_show_path(const char *path)
{
    struct catalog_shown shown;
    size_t length = strlen(path), used = 0;
    if (length > PATH_BYTES_MAX) {
        path += length - PATH_BYTES_MAX;
        while ((*path & 0xc0) == 0x80) /* not in the middle of a character */
            path++;
        used = sizeof cut_mark - 1;
        memcpy(shown.text, cut_mark, used);
    }
    append(&shown, used, path, used + PATH_BYTES_MAX);
    return shown;
}
