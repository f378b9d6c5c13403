/*
 * The drawing of a replay: how the pool's memory was divided, from the first operation to the last.
 *
 * Layers from below: held, stranded, free, unmapped (each a path of that class, its upper edge from
 * left to right, then its lower edge back), and over them a line of what was requested. What the
 * scale is the group "plot" tells programs: data-left, -right, -top and -bottom in units of the
 * drawing, data-operations and data-bytes for its width and height.
 */
#ifndef CLI_TRACE_SVG_H
#define CLI_TRACE_SVG_H

#include "cli/trace_series.h"

struct trace_svg {
    const char *name; /* of the trace */
    size_t operations;
    size_t requested_peak, reserved_peak;
    size_t limit;
    uint64_t failures;
    const struct trace_series *series;
};

/* The drawing as text, for free(). OUT_OF_HOST_MEMORY. */
raffia_status trace_svg_draw(const struct trace_svg *svg, char **text_p, size_t *bytes_p);

#endif
