/* SPDX-License-Identifier: Apache-2.0 */
/* A run directory of any bytes: journal, a line "%%", another rank's journal, a line "%%", a site file. It is refused with
 * words, or judged and rendered in every format. */
#include "folder.h"

#include "cmd/shared/checked_expectations.h"
#include "machine/machine.h"
#include "report/report.h"

static const char mark[] = "\n%%\n";

static void render(const struct report_input *in)
{
	static const struct report_style style = {.columns = 100};

	for (int format = REPORT_TEXT; format <= REPORT_CSV; format++) {
		struct error err = {0};
		struct text out = {0};
		enum status st = report_render(&out, (enum report_format)format, in, &style, &err);

		FUZZ_CHECK(st == err.status && (st || out.size));
		text_release(&out);
	}
}

static void judge(const struct record *r, const struct expectations *e)
{
	struct machine *machine = NULL, **nodes = calloc(r->node_count + 1, sizeof(*nodes));
	const struct judge_site site = {.file = access(fuzz_path("site.yaml"), F_OK) ? NULL : fuzz_path("site.yaml")};
	struct judgements judged = {0};
	struct error err = {0};
	enum status st = r->machine ? machine_from_json(&machine, r->machine, &err) : STATUS_OK;

	FUZZ_CHECK(nodes);
	for (size_t i = 0; i < r->node_count && !st; i++)
		if (r->node[i].machine)
			st = machine_from_json(&nodes[i], r->node[i].machine, &err);
	if (!st)
		st = judge_record(&judged, r, e, &site, &err);
	FUZZ_CHECK(st == err.status && (!st || *err.text));
	if (!st)
		render(&(struct report_input){.record = r,
					      .machine = machine,
					      .nodes = (const struct machine *const *)nodes,
					      .judged = &judged,
					      .expectations = e});
	judgements_release(&judged);
	for (size_t i = 0; i < r->node_count; i++)
		machine_free(nodes[i]);
	machine_free(machine);
	free(nodes);
}

static void lay(const uint8_t *data, size_t size)
{
	struct error err = {0};
	const uint8_t *at = data;
	size_t part = fuzz_part(&at, &size, mark);

	file_remove_tree(fuzz_path("nodes"));
	unlink(fuzz_path("site.yaml"));
	fuzz_write("journal.jsonl", data, part);
	data = at;
	part = fuzz_part(&at, &size, mark);
	if (part) {
		FUZZ_CHECK(!file_make_dir(fuzz_path("nodes/n/rank-1"), &err));
		fuzz_write("nodes/n/rank-1/journal.jsonl", data, part);
	}
	if (size)
		fuzz_write("site.yaml", at, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct expectations *e;
	struct error err = {0};
	struct record r;

	if (size > 200000)
		return 0;
	if (!e)
		FUZZ_CHECK(!checked_expectations_load(&e, NULL, &err));
	lay(data, size);
	if (record_read_run(&r, fuzz_dir, &err))
		FUZZ_CHECK(*err.text);
	else
		judge(&r, e);
	record_release(&r);
	return 0;
}
