/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot/plot.h"
#include <errno.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/process/module.h"

static enum status write_svg(const char *path, const struct canvas *c, const char *title, struct error *err)
{
	struct text svg = {0};
	enum status st;

	canvas_svg(&svg, c, title, true);
	st = svg.failed ? error_set(err, STATUS_NO_RESOURCE, "%s: no memory for the drawing", path)
			: file_write(path, svg.data, svg.size, err);
	text_release(&svg);
	return st;
}

static enum status write_by_module(const char *path, enum plot_format format, const struct canvas *c,
				   struct error *err)
{
	const struct plot_module *module;
	struct canvas flat = {0};
	char message[256] = "";
	struct file_new file = {.fd = -1};
	enum status st = module_open((const void **)&module, PLOT_MODULE, PLOT_SYMBOL, err);

	if (st)
		return st;
	if (module->version != PLOT_VERSION || module->size != sizeof(*module))
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
			"the plot module belongs to another build (version %u, expected %d); install both from one build",
			module->version, PLOT_VERSION);
	canvas_flatten(&flat, c);
	if (flat.failed) {
		st = error_set(err, STATUS_NO_RESOURCE, "%s: no memory for the drawing", path);
		goto out;
	}
	st = file_new_begin(
		&file, path,
		err); /* assay creates the file, so the module cannot follow another user's link */
	if (!st && (format == PLOT_PNG ? module->png(file.beside, &flat, 2, message, sizeof(message))
				       : module->pdf(file.beside, &flat, message, sizeof(message))))
		st = error_set(err, STATUS_NO_RESOURCE, "%s: %s", path, message);
	st = file_new_end(&file, st, err);
out:
	canvas_release(&flat);
	return st;
}

enum status plot_write(const char *path, enum plot_format format, const struct canvas *c, const char *title,
		       struct error *err)
{
	switch (format) {
	case PLOT_SVG:
		return write_svg(path, c, title, err);
	case PLOT_PNG:
	case PLOT_PDF:
		break;
	}
	return write_by_module(path, format, c, err);
}
