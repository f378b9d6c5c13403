#include "cli/trace_svg.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/text.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The drawing and the plot in it. */
enum {
    WIDTH = 960,
    HEIGHT = 420,
    LEFT = 90,
    RIGHT = 940,
    TOP = 70,
    BOTTOM = 340,
    TICKS = 5,       /* about so many on an axis */
    TICK_LENGTH = 5, /* and from a tick to its number */
    LEGEND_Y = 394,
    LEGEND_STEP = 165,
    LEGEND_SIZE = 12,
};

enum layer {
    LAYER_HELD,
    LAYER_STRANDED,
    LAYER_FREE,
    LAYER_UNMAPPED,
    LAYER_COUNT,
};

static const char *const layer_names[LAYER_COUNT] = {"held", "stranded", "free", "unmapped"};

/* Colours that keep apart on white and on black, and for people who do not tell red from green. */
static const char style[] =
    "<style>\n"
    "text{font:13px sans-serif;fill:#222}.title{font-size:16px;font-weight:bold}\n"
    ".ground{fill:#fff}.axis{stroke:#222;fill:none}.grid{stroke:#8884;fill:none}\n"
    ".held{fill:#2f6fb0}.stranded{fill:#d9822b}.free{fill:#9fc8e8}.unmapped{fill:#bbb6}\n"
    ".requested{stroke:#111;fill:none;stroke-width:1.2;stroke-dasharray:5 3}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.ground{fill:#16181c}.axis{stroke:#ddd}\n"
    ".held{fill:#3f86cf}.free{fill:#6d93b0}.unmapped{fill:#7776}.requested{stroke:#fff}}\n"
    "</style>\n";

struct canvas {
    FILE *out;
    const struct trace_svg *svg;
    double top_bytes; /* at the upper edge of the plot */
};

static double x_of(const struct canvas *canvas, double operations)
{
    return LEFT + (RIGHT - LEFT) * operations / (double)canvas->svg->operations;
}

static double y_of(const struct canvas *canvas, double bytes)
{
    const double share = bytes / canvas->top_bytes;
    return BOTTOM - (BOTTOM - TOP) * (share < 1 ? share : 1);
}

/* A name comes from outside: what is no text becomes '?', what XML reserves is written out. */
static void put_name(FILE *out, const char *name)
{
    json_t *text = json_string(name);
    for (const char *c = name; *c; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !text))
            fputc('?', out);
        else if (strchr("<>&\"'", *c))
            fprintf(out, "&#%u;", byte);
        else
            fputc(*c, out);
    }
    json_decref(text);
}

/* A step of 1, 2 or 5 times a power of ten that gives about TICKS of them. */
static double nice_step(double range)
{
    double step = 1;
    while (step * 10 * TICKS <= range)
        step *= 10;
    if (step * 5 * TICKS <= range)
        return step * 5;
    return step * 2 * TICKS <= range ? step * 2 : step;
}

static void put_tick_y(const struct canvas *canvas, double bytes, const char *label)
{
    const double y = y_of(canvas, bytes);
    fprintf(canvas->out,
            "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
            "text-anchor=\"end\">%s</text>\n",
            LEFT, y, RIGHT, LEFT - TICK_LENGTH, y + 4, label);
}

/* Bytes in the largest unit that leaves numbers of at least TICKS. */
static void put_axis_y(const struct canvas *canvas)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"TiB", 0x1p40}, {"GiB", 0x1p30}, {"MiB", 0x1p20}, {"KiB", 0x1p10}, {"B", 1}};
    size_t unit = 0;
    while (unit < sizeof units / sizeof *units - 1 && canvas->top_bytes < TICKS * units[unit].bytes)
        unit++;
    const double range = canvas->top_bytes / units[unit].bytes, step = nice_step(range);
    for (unsigned i = 0; i * step <= range; i++) {
        char label[CORE_SIZE_TEXT_MAX];
        snprintf(label, sizeof label, "%.0f %s", i * step, units[unit].name);
        put_tick_y(canvas, i * step * units[unit].bytes, label);
    }
}

static void put_axis_x(const struct canvas *canvas)
{
    const double range = (double)canvas->svg->operations, step = nice_step(range);
    for (unsigned i = 0; i * step <= range; i++) {
        const double x = x_of(canvas, i * step);
        fprintf(canvas->out,
                "<path class=\"axis\" d=\"M%.1f %dv%d\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%.0f</text>\n",
                x, BOTTOM, TICK_LENGTH, x, BOTTOM + 20, i * step);
    }
    fprintf(canvas->out,
            "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">operations</text>\n"
            "<path class=\"axis\" d=\"M%d %dV%dH%d\"/>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 38, LEFT, TOP, BOTTOM, RIGHT);
}

/* The height at which a layer ends, or begins as the end of the one below. */
static double edge(const struct trace_point *point, int layers)
{
    const size_t parts[LAYER_COUNT] = {point->held, point->stranded, point->free, point->unmapped};
    double sum = 0;
    for (int i = 0; i < layers; i++)
        sum += (double)parts[i];
    return sum;
}

static void put_point(const struct canvas *canvas, char command, const struct trace_point *point,
                      double bytes)
{
    fprintf(canvas->out, "%c%.1f %.1f", command, x_of(canvas, (double)point->op),
            y_of(canvas, bytes));
}

static void put_layer(const struct canvas *canvas, int layer)
{
    const struct trace_series *series = canvas->svg->series;
    fprintf(canvas->out, "<path class=\"%s\" d=\"", layer_names[layer]);
    for (size_t i = 0; i < series->count; i++)
        put_point(canvas, i ? 'L' : 'M', &series->points[i], edge(&series->points[i], layer + 1));
    for (size_t i = series->count; i-- > 0;)
        put_point(canvas, 'L', &series->points[i], edge(&series->points[i], layer));
    fprintf(canvas->out, "Z\"/>\n");
}

static void put_requested(const struct canvas *canvas)
{
    const struct trace_series *series = canvas->svg->series;
    fprintf(canvas->out, "<path class=\"requested\" d=\"");
    for (size_t i = 0; i < series->count; i++)
        put_point(canvas, i ? 'L' : 'M', &series->points[i], (double)series->points[i].requested);
    fprintf(canvas->out, "\"/>\n");
}

static void put_legend(const struct canvas *canvas)
{
    int x = LEFT;
    for (int i = 0; i < LAYER_COUNT; i++, x += LEGEND_STEP)
        fprintf(canvas->out,
                "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>"
                "<text x=\"%d\" y=\"%d\">%s</text>\n",
                layer_names[i], x, LEGEND_Y, LEGEND_SIZE, LEGEND_SIZE,
                x + LEGEND_SIZE + TICK_LENGTH, LEGEND_Y + LEGEND_SIZE - 1, layer_names[i]);
    fprintf(canvas->out,
            "<path class=\"requested\" d=\"M%d %dh20\"/><text x=\"%d\" y=\"%d\">requested</text>\n",
            x, LEGEND_Y + LEGEND_SIZE / 2, x + 20 + TICK_LENGTH, LEGEND_Y + LEGEND_SIZE - 1);
}

static void put_title(const struct canvas *canvas)
{
    const struct trace_svg *svg = canvas->svg;
    char requested[CORE_SIZE_TEXT_MAX], reserved[CORE_SIZE_TEXT_MAX], limit[CORE_SIZE_TEXT_MAX];
    fprintf(canvas->out, "<title>");
    put_name(canvas->out, svg->name);
    fprintf(canvas->out, "</title>\n%s<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", style,
            WIDTH, HEIGHT);
    fprintf(canvas->out, "<text class=\"title\" x=\"%d\" y=\"28\">", LEFT);
    put_name(canvas->out, svg->name);
    fprintf(canvas->out,
            "</text>\n<text x=\"%d\" y=\"50\">%zu operations; peak requested %s, reserved %s "
            "(%.3f), limit %s; %llu refused</text>\n",
            LEFT, svg->operations, core_format_size(svg->requested_peak, requested),
            core_format_size(svg->reserved_peak, reserved),
            (double)svg->reserved_peak / (double)core_max(svg->requested_peak, 1),
            core_format_size(svg->limit, limit), (unsigned long long)svg->failures);
}

static void put_all(const struct canvas *canvas)
{
    fprintf(canvas->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    put_title(canvas);
    fprintf(canvas->out,
            "<g id=\"plot\" data-left=\"%d\" data-right=\"%d\" data-top=\"%d\" data-bottom=\"%d\" "
            "data-operations=\"%zu\" data-bytes=\"%.0f\">\n",
            LEFT, RIGHT, TOP, BOTTOM, canvas->svg->operations, canvas->top_bytes);
    for (int layer = 0; layer < LAYER_COUNT; layer++)
        put_layer(canvas, layer);
    put_axis_y(canvas);
    put_requested(canvas);
    fprintf(canvas->out, "</g>\n");
    put_axis_x(canvas);
    put_legend(canvas);
    fprintf(canvas->out, "</svg>\n");
}

/* The limit, unless it is so far away that what happens below it would not be seen. */
static double top_bytes(const struct trace_svg *svg)
{
    const double reserved = (double)core_max(svg->reserved_peak, 1) * 1.25;
    return (double)svg->limit < reserved ? (double)core_max(svg->limit, 1) : reserved;
}

raffia_status trace_svg_draw(const struct trace_svg *svg, char **text_p, size_t *bytes_p)
{
    char *text = NULL;
    size_t bytes = 0;
    struct canvas canvas = {open_memstream(&text, &bytes), svg, top_bytes(svg)};
    if (!canvas.out)
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "no memory for the drawing");
    put_all(&canvas);
    const bool whole = !ferror(canvas.out);
    if (fclose(canvas.out) || !whole) {
        free(text);
        return core_error(RAFFIA_ERROR_OUT_OF_HOST_MEMORY, "no memory for the drawing");
    }
    *text_p = text;
    *bytes_p = bytes;
    return RAFFIA_OK;
}
