/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG and PDF of a drawing, by cairo. cairo has more dependencies than the rest of the program, so it is in a
 * module that the program loads only for these formats. The module gets only strokes and areas, so it needs
 * no fonts.
 */
#ifndef REPORT_PLOT_PLOT_H
#define REPORT_PLOT_PLOT_H
#include "core/error.h"
#include "report/plot/canvas.h"

/* The module's symbol. Increase PLOT_VERSION when a struct below or in canvas.h changes. */
#define PLOT_MODULE "assay-plot"
#define PLOT_SYMBOL "assay_plot_1"
enum { PLOT_VERSION = 1 };

/* `flat` has no TEXT operations. `scale`: pixels per point. The functions return 0, or else a sentence in
 * `message`. */
struct plot_module {
	unsigned version, size; /* of this struct */
	int (*png)(const char *path, const struct canvas *flat, double scale, char *message, size_t size);
	int (*pdf)(const char *path, const struct canvas *flat, char *message, size_t size);
};

enum plot_format { PLOT_SVG, PLOT_PNG, PLOT_PDF };

/* Writes the drawing to a temporary file and renames it to `path`. UNAVAILABLE: the module is missing; the
 * error lists the folders searched. SVG needs no module. */
enum status plot_write(const char *path, enum plot_format format, const struct canvas *c, const char *title,
		       struct error *err);
#endif
