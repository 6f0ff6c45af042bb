/* SPDX-License-Identifier: Apache-2.0 */
/* A recording of the made-up machine (unit/watch_made_up.h), for the exporter. usage: recording GPUS SECONDS > FILE */
#include <stdio.h>

#include "unit/watch_made_up.h"

static void print_lines(const struct text *lines, unsigned ms)
{
	const char *end;

	for (const char *p = text_str(lines); (end = strchr(p, '\n')); p = end + 1)
		printf("0 %u %.*s\n", ms, (int)(end - p), p);
}

int main(int argc, char **argv)
{
	unsigned gpus = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned seconds = gpus ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	static struct machine_stream m;
	struct text lines = {0};

	if (!gpus || gpus > 64) {
		fprintf(stderr, "usage: recording GPUS SECONDS > FILE\n");
		return 64;
	}
	printf("assay-recording 1 1 0 1764355200\n");
	machine_begin(&m, &lines, gpus);
	for (unsigned s = 0; s <= seconds; s++) {
		machine_reading(&m, &lines, s);
		print_lines(&lines, 1000 * s);
		text_release(&lines);
	}
	return 0;
}
