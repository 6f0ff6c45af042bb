/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as one line: an event or a refusal in words. As a file: a record that any prefix gives, and
 * consistent. */
#include "fuzz.h"

#include <unistd.h>
#include "journal/journal.h"
#include "journal/record/record.h"

static void one_line(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct error err = {0};
	enum journal_type type;
	json_t *body = NULL;
	uint64_t t_ns;
	enum status st = journal_parse_line(text, size, &type, &t_ns, &body, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK((st == STATUS_OK) == (body != NULL) && st == err.status);
	if (body) {
		FUZZ_CHECK(json_is_object(body) && type < JOURNAL_TYPE_COUNT && *journal_type_name(type));
		FUZZ_CHECK(!json_object_get(body, "type"));
	}
	json_decref(body);
	free(text);
}

static void check_case(const struct record_case *c, size_t id)
{
	double v;

	FUZZ_CHECK(c->id == id && c->plan && c->key && c->probe && c->engine && c->target && c->limit &&
		   c->phases && c->group);
	FUZZ_CHECK(c->ended || c->ending == (c->begun ? ENDING_CUT : ENDING_NOT_RUN));
	FUZZ_CHECK(c->require <= REQUIRE_KNOWN && c->ending < ENDING_COUNT &&
		   c->status < STATUS_COUNT && c->cause < CAUSE_COUNT && c->skip_reason);
	for (size_t i = 0; i < c->phase_count; i++) {
		const struct record_phase *p = &c->phase[i];

		FUZZ_CHECK(record_phase(c, p->name) == p && (!p->has_window || p->t0_ns <= p->t1_ns));
		FUZZ_CHECK(!p->values || json_is_object(p->values));
		(void)record_number(p, "time_ns_mean", &v);
		(void)record_text(p, "variant");
	}
}

static void a_file(const uint8_t *data, size_t size)
{
	char dir[] = "/tmp/assay-fuzz-XXXXXX", path[64];
	struct error err = {0};
	struct record r;
	FILE *f;

	FUZZ_CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/%s", dir, JOURNAL_FILE);
	f = fopen(path, "wb");
	FUZZ_CHECK(f && fwrite(data, 1, size, f) == size && !fclose(f));
	if (record_read(&r, dir, &err)) /* a schema that is not known: refused with words, and nothing kept */
		FUZZ_CHECK(err.status == STATUS_BAD_INPUT && *err.text && !r.cases && !r.open);
	FUZZ_CHECK(r.cut_bytes <= size);
	for (size_t i = 0; i < r.case_count; i++)
		check_case(&r.cases[i], i);
	for (size_t i = 0; i < r.series_count; i++)
		for (size_t k = 1; k < r.series[i].count; k++)
			FUZZ_CHECK(r.series[i].t_ns[k - 1] <= r.series[i].t_ns[k]);
	record_release(&r);
	unlink(path);
	rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 65536)
		return 0;
	one_line(data, size);
	a_file(data, size);
	return 0;
}
