/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot.h"
#include <errno.h>
#include <unistd.h>
#include "core/file.h"
#include "report/module.h"

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
	char message[256] = "", beside[4200];
	enum status st = module_open((const void **)&module, PLOT_MODULE, PLOT_SYMBOL, err);
	int failed;

	if (st)
		return st;
	if (module->version != PLOT_VERSION || module->size != sizeof(*module))
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
				       "the plot module is of another build (version %u, here %d)",
				       module->version, PLOT_VERSION);
	snprintf(beside, sizeof(beside), "%s.new", path);
	canvas_flatten(&flat, c);
	if (flat.failed) {
		st = error_set(err, STATUS_NO_RESOURCE, "%s: no memory for the drawing", path);
		goto out;
	}
	failed = format == PLOT_PNG ? module->png(beside, &flat, 2, message, sizeof(message))
				    : module->pdf(beside, &flat, message, sizeof(message));
	if (failed)
		st = error_set(err, STATUS_NO_RESOURCE, "%s: %s", path, message);
	else if (rename(beside, path))
		st = error_errno(err, errno, "%s: renaming it into place", path);
	if (st)
		unlink(beside);
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
