/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_DATA_MANIFEST_H
#define REPORT_DATA_MANIFEST_H
#include "report/view/view.h"

struct manifest_file {
	const char *name;
	const void *data;
	size_t size;
};

/* Appends the manifest: versions, seeds, SKUs, hourly prices and hashes of `count` runs, and the checksums of
 * the files made from them. */
enum status manifest_text(struct text *out, const struct view *views, size_t count,
			  const struct manifest_file *files, size_t file_count, struct error *err);
#endif
