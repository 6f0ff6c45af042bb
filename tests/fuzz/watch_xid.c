/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the kernel log: Xids of the GPUs that it names, each with a count, and lines of the stream that are JSON. The input has two
 * parts: records that are there at the start, and records that come later. */
#include "folder.h"

#include <fcntl.h>
#include <jansson.h>
#include "watch/read/gpu.h"

static void check_gpu(const struct gpu *g)
{
	FUZZ_CHECK(g->xids <= GPU_XIDS_MAX);
	for (unsigned i = 0; i < g->xids; i++) {
		FUZZ_CHECK(g->xid[i].count >= 1 && g->xid[i].number <= 9999);
		for (unsigned k = 0; k < i; k++)
			FUZZ_CHECK(g->xid[k].number != g->xid[i].number);
	}
}

/* Each line of the stream is a JSON object. */
static void check_stream(const struct watch_out *out)
{
	const char *at = out->text.size ? text_str((struct text *)&out->text) : "", *end;

	for (; (end = strchr(at, '\n')); at = end + 1) {
		json_error_t e;
		json_t *line = json_loadb(at, (size_t)(end - at), 0, &e);

		FUZZ_CHECK(json_is_object(line));
		json_decref(line);
	}
	FUZZ_CHECK(!*at);
}

static void append(const uint8_t *data, size_t size)
{
	FILE *f = fopen(fuzz_path("kmsg"), "ab");

	FUZZ_CHECK(f && fwrite(data, 1, size, f) == size && !fclose(f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpu_reader r;
	struct reader_spec spec = {.kmsg = NULL};
	const uint8_t *first = data;
	char path[256];
	size_t part;

	if (size > 65536)
		return 0;
	part = fuzz_part(&data, &size, "\n--\n");
	fuzz_write("kmsg", first, part);
	snprintf(path, sizeof(path), "%s", fuzz_path("kmsg"));
	spec.kmsg = path;
	r = (struct gpu_reader){.spec = &spec, .count = 2};
	out_init(&r.out, -1);
	for (unsigned i = 0; i < r.count; i++) {
		struct gpu *g = &r.gpu[i];

		snprintf(g->pci, sizeof(g->pci), "0000:%x:00.0", 0x1b + i);
		snprintf(g->number, sizeof(g->number), "%u", i);
		g->e = out_entity(&r.out, METRIC_SCOPE_GPU, OUT_NONE, "pci_bus_id", g->pci, "gpu", g->number, NULL);
	}
	gpu_xids_open(&r);
	append(data, size);
	gpu_xids_read(&r);
	for (unsigned i = 0; i < r.count; i++) {
		check_gpu(&r.gpu[i]);
		gpu_xids_set(&r, &r.gpu[i]);
	}
	FUZZ_CHECK(r.xids.line.size <= 2 * 8192);
	FUZZ_CHECK(!strcmp(r.xids.since, "boot") || !strcmp(r.xids.since, "reader"));
	out_end(&r.out, OUT_NONE, 1, true);
	check_stream(&r.out);
	gpu_xids_close(&r);
	out_release(&r.out);
	return 0;
}
