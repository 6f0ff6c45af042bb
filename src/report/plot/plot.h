/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG and PDF of a drawing: by cairo, in a module of its own that the program loads when it is asked for one
 * (cairo needs more of a system than the rest of the program). The module is given strokes and areas alone,
 * so no font is looked for.
 */
#ifndef REPORT_PLOT_PLOT_H
#define REPORT_PLOT_PLOT_H
#include "core/error.h"
#include "report/plot/canvas.h"

/* The module's one symbol. Another layout of any struct below or of canvas.h asks for another number. */
#define PLOT_MODULE "assay-plot"
#define PLOT_SYMBOL "assay_plot_1"
enum { PLOT_VERSION = 1 };

/* `flat` holds no TEXT. `scale`: pixels a point. 0, or not 0 with a sentence in `message`. */
struct plot_module {
	unsigned version, size; /* of this struct */
	int (*png)(const char *path, const struct canvas *flat, double scale, char *message, size_t size);
	int (*pdf)(const char *path, const struct canvas *flat, char *message, size_t size);
};

enum plot_format { PLOT_SVG, PLOT_PNG, PLOT_PDF };

/* Writes beside and renames. UNAVAILABLE where the module is missing (never for SVG), with where it was
 * looked for. */
enum status plot_write(const char *path, enum plot_format format, const struct canvas *c, const char *title,
		       struct error *err);
#endif
