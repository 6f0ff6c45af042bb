/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the renderer for a report format. */
#include <errno.h>
#include "report/report.h"

const char *const report_formats[] = {"text", "markdown", "html", "json", "csv", NULL};

enum status report_render(struct text *out, enum report_format format, const struct report_input *in,
			  const struct report_style *style, struct error *err)
{
	enum status st = STATUS_OK;

	switch (format) {
	case REPORT_TEXT:
		report_terminal(out, in, style);
		break;
	case REPORT_MARKDOWN:
		report_markdown(out, in);
		break;
	case REPORT_HTML:
		report_html(out, in);
		break;
	case REPORT_JSON:
		st = report_json(out, in, err);
		break;
	case REPORT_CSV:
		report_csv(out, in);
		break;
	}
	return !st && out->failed ? error_errno(err, ENOMEM, "rendering the report") : st;
}
