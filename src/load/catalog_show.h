/*
 * Text of a file as it may appear in a message: short, and without bytes that would move a
 * terminal's cursor or forge another line of a log.
 */
#ifndef LOAD_CATALOG_SHOW_H
#define LOAD_CATALOG_SHOW_H

#define CATALOG_SHOW_MAX 192

/* Returned by value: `catalog_show(name).text` lives until the end of the statement it stands in,
 * and several may stand in one. */
struct catalog_shown {
    char text[CATALOG_SHOW_MAX];
};

/* A name: printable UTF-8 as it is, every other byte as \xNN; a long one is cut and ends in "...".
 */
struct catalog_shown catalog_show(const char *text);

/* A path: the same, but a long one loses its beginning. */
struct catalog_shown catalog_show_path(const char *path);

#endif
