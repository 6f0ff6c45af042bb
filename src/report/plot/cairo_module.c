/* SPDX-License-Identifier: Apache-2.0 */
/* The module `assay-plot`: draws strokes and areas through cairo, in light colours. */
#include <cairo-pdf.h>
#include <cairo.h>
#include "report/plot/plot.h"

static const unsigned colours[] = {
#define X(name, light, dark) light,
	CANVAS_ROLES(X)
#undef X
};

static void set_colour(cairo_t *cr, enum canvas_role role, double opacity)
{
	unsigned rgb = colours[role];

	cairo_set_source_rgba(cr, (rgb >> 16 & 255) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0,
			      opacity);
}

static void draw(cairo_t *cr, const struct canvas *c)
{
	static const double dashed[] = {7, 4}, dotted[] = {2, 4};

	set_colour(cr, CANVAS_paper, 1);
	cairo_paint(cr);
	cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
	cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
	for (size_t i = 0; i < c->op_count; i++) {
		const struct canvas_op *op = &c->ops[i];

		if (op->kind == CANVAS_TEXT)
			continue;
		cairo_new_path(cr);
		for (size_t k = 0; k < op->count; k++)
			cairo_line_to(cr, c->points[op->first + k].x, c->points[op->first + k].y);
		if (op->kind == CANVAS_FILL) {
			set_colour(cr, op->role, op->opacity);
			cairo_fill(cr);
			continue;
		}
		set_colour(cr, op->role, 1);
		cairo_set_line_width(cr, op->width);
		cairo_set_dash(cr, op->dash == CANVAS_DOTTED ? dotted : dashed,
			       op->dash == CANVAS_SOLID ? 0 : 2, 0);
		cairo_stroke(cr);
	}
}

static int say(cairo_status_t status, const char *what, char *message, size_t size)
{
	if (status != CAIRO_STATUS_SUCCESS)
		snprintf(message, size, "cairo, %s: %s", what, cairo_status_to_string(status));
	return status != CAIRO_STATUS_SUCCESS;
}

static int png(const char *path, const struct canvas *flat, double scale, char *message, size_t size)
{
	cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)(flat->width * scale),
							      (int)(flat->height * scale));
	cairo_t *cr = cairo_create(surface);
	int failed;

	cairo_scale(cr, scale, scale);
	draw(cr, flat);
	failed = say(cairo_status(cr), "drawing", message, size) ||
		 say(cairo_surface_write_to_png(surface, path), "writing", message, size);
	cairo_destroy(cr);
	cairo_surface_destroy(surface);
	return failed;
}

static int pdf(const char *path, const struct canvas *flat, char *message, size_t size)
{
	cairo_surface_t *surface = cairo_pdf_surface_create(path, flat->width, flat->height);
	cairo_t *cr = cairo_create(surface);
	int failed;

	/* No creation date: the same drawing gives the same bytes. */
	cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_CREATE_DATE, "1970-01-01T00:00:00Z");
	draw(cr, flat);
	cairo_show_page(cr);
	failed = say(cairo_status(cr), "drawing", message, size);
	cairo_destroy(cr);
	cairo_surface_finish(surface);
	failed = failed || say(cairo_surface_status(surface), "writing", message, size);
	cairo_surface_destroy(surface);
	return failed;
}

extern const struct plot_module assay_plot_1;
__attribute__((visibility("default"))) const struct plot_module assay_plot_1 = {
	.version = PLOT_VERSION,
	.size = sizeof(struct plot_module),
	.png = png,
	.pdf = pdf,
};
