/* SPDX-License-Identifier: Apache-2.0 */
/* Pages and JSON of a profile: the schema, and text that is not ours. */
#include "test.h"
#include "profile/page/internal.h"
#include "profile_bed.h"
#include "schema.h"
#include "scratch.h"

#define MS 1000000ull
static const char hostile[] = "<script>alert(1)</script> | `x` \x1b[2J **b**";

/* Two ranks that communicate, copy and wait; a kernel whose name is an attack. */
static void write_run(const char *dir)
{
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct ring_copy c = {.head = {.type = RING_COPY, .size = sizeof(c)},
				      .start = 40 * MS + CUPTI_AHEAD,
				      .end = 41 * MS + CUPTI_AHEAD,
				      .bytes = 1 << 24,
				      .context = 1,
				      .kind = 1,
				      .from = 1};
		struct writer w;

		bed_open(&w, dir);
		bed_comm(&w, 0xfeedbeef, 2, rank);
		bed_launch(&w, (struct bed_kernel){hostile, 1 * MS, 2 * MS, 5 * MS, .thread = 1});
		bed_call(&w, "ncclAllReduce", 4 * MS, 0xfeedbeef, 1 << 26, 0);
		bed_launch(&w,
			   (struct bed_kernel){"ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4 * MS + 1000,
					       (5 + rank) * MS, (8 - rank) * MS, .thread = 1, .stream = 20});
		add_call(&w, "cudaDeviceSynchronize", 12 * MS, 8 * MS, 7);
		writer_add(&w, &c);
		w.header->rank = (int32_t)rank;
		bed_close(&w);
	}
}

static void count(struct writer *w, const char *name, double ns, double active, double flop)
{
	struct ring_counted c = {
		.head = {.type = RING_COUNTED, .size = sizeof(c), .name = writer_string(w, name)},
		.has = 1u << KERNEL_COUNTER_time_ns | 1u << KERNEL_COUNTER_sm_active_share | 1u << KERNEL_COUNTER_dram_read_bytes |
		       1u << KERNEL_COUNTER_dram_write_bytes};

	c.value[KERNEL_COUNTER_time_ns] = ns;
	c.value[KERNEL_COUNTER_sm_active_share] = active;
	c.value[KERNEL_COUNTER_dram_read_bytes] = 1e6;
	c.value[KERNEL_COUNTER_dram_write_bytes] = 1e6;
	c.value[KERNEL_COUNTER_tensor_flop] = flop;
	c.has |= flop > 0 ? 1u << KERNEL_COUNTER_tensor_flop : 0;
	writer_add(w, &c);
}

static void find(struct findings *f, struct timeline *t, const char *dir)
{
	struct error err = {0};

	write_run(dir);
	read_back(t, dir);
	assert_int_equal(findings_of(f, t, &(struct findings_bounds){.link_rate = 64e9}, &err), STATUS_OK);
}

static void done(struct findings *f, struct timeline *t)
{
	findings_release(f);
	timeline_release(t);
}

static void test_page__json_fits_its_schema(void **state)
{
	json_t *schema = json_load_file(SOURCE_DIR "/docs/schema/profile.schema.json", 0, NULL), *all;
	struct findings f;
	struct timeline t;
	char why[256] = "";

	find(&f, &t, *state);
	all = findings_json(&f);
	assert_non_null(schema);
	assert_non_null(all);
	assert_int_equal(json_array_size(json_object_get(all, "savings")) > 0, 1);
	if (!schema_valid(schema, all, why, sizeof(why)))
		fail_msg("%s", why);
	json_object_del(json_array_get(json_object_get(json_object_get(all, "nccl"), "rows"), 0), "count");
	assert_false(schema_valid(schema, all, why, sizeof(why)));
	json_decref(schema);
	json_decref(all);
	done(&f, &t);
}

static void test_page__both_forms_have_every_table(void **state)
{
	static const char *const words[] = {"How to save time",
					    "waiting for a peer",
					    "Overlap of communication and compute",
					    "feedbeef",
					    "allreduce",
					    "host to device, pageable",
					    "Processes",
					    "rank 1"};
	struct page page = {.command = "train", .ending = "exit code 0", .note = ""};
	struct text markdown = {0}, html = {0};
	struct findings f;
	struct timeline t;

	find(&f, &t, *state);
	page.f = &f;
	page_markdown(&markdown, &page);
	page_html(&html, &page);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(text_str(&markdown), words[i]) || !strstr(text_str(&html), words[i]))
			fail_msg("not in both: %s", words[i]);
	text_release(&markdown);
	text_release(&html);
	done(&f, &t);
}

static void test_page__foreign_text_is_text(void **state)
{
	struct page page = {.command = hostile, .ending = "exit code 0", .note = "a <b>note</b>\n"};
	struct text markdown = {0}, html = {0};
	struct findings f;
	struct timeline t;

	find(&f, &t, *state);
	page.f = &f;
	page_markdown(&markdown, &page);
	page_html(&html, &page);
	assert_null(strstr(text_str(&html), "<script>alert"));
	assert_null(strstr(text_str(&html), "<b>note"));
	assert_non_null(strstr(text_str(&html), "&lt;script&gt;alert(1)"));
	for (const char *at = text_str(&html); (at = strstr(at, "http://")); at++)
		assert_int_equal(strncmp(at, "http://www.w3.org/2000/svg", 26), 0); /* a name, and no door */
	assert_null(strstr(text_str(&html), "https://"));
	assert_non_null(strstr(text_str(&html), "Timeline"));
	assert_null(strchr(text_str(&html), '\x1b'));
	assert_null(strstr(text_str(&markdown), "<script>"));
	assert_non_null(strstr(text_str(&markdown), "\\<script\\>alert(1)\\</script\\> \\| \\`x\\`"));
	assert_null(strchr(text_str(&markdown), '\x1b'));
	text_release(&markdown);
	text_release(&html);
	done(&f, &t);
}

static void test_page__a_table_for_programs_has_a_row_each(void **state)
{
	struct text nccl = {0}, states = {0}, copies = {0};
	struct findings f;
	struct timeline t;

	find(&f, &t, *state);
	findings_nccl_csv(&nccl, &f);
	findings_breakdown_csv(&states, &f);
	findings_copies_csv(&copies, &f);
	assert_non_null(strstr(text_str(&nccl), "\nallreduce,feedbeef,2,67108864,1,0,2,2,15000000,"));
	assert_non_null(strstr(text_str(&copies), "\n\"host to device, pageable\",2,33554432,2000000,"));
	/* first kernel to copy: 39 ms; rank 0 waits under the kernel; 27 ms before the copy and it. */
	assert_non_null(strstr(text_str(&states), ",0,39000000,5000000,6000000,0,0,28000000,0,0,0,"));
	text_release(&nccl);
	text_release(&states);
	text_release(&copies);
	done(&f, &t);
}

/* Sums add up; shares and rates weigh by time; what one run lacks the row has not. */
static void test_page__counters_of_a_name_are_one_row_and_a_point(void **state)
{
	const struct findings_bounds bounds = {.compute = {{"BF16", 1e15}}};
	struct page page = {.command = "train", .ending = "exit code 0", .note = ""};
	const double shares[] = {0.9, 0.2, 0.5};
	const struct kernel_counters_row *r;
	struct text svg = {0}, csv = {0};
	struct error err = {0};
	struct findings f;
	struct timeline t;
	struct writer w;
	const char *why, *line;
	char name[16];
	unsigned pid;
	double share;

	bed_open(&w, *state);
	count(&w, "gemm", 1000, 0.9, 2e9);
	count(&w, "softmax", 5000, 0.2, 0);
	count(&w, "gemm", 3000, 0.5, 2e9);
	bed_close(&w);
	read_back(&t, *state);
	assert_int_equal(findings_of(&f, &t, &bounds, &err), STATUS_OK);
	assert_int_equal(f.counted.rows, 2);
	r = &f.counted.row[1];
	assert_string_equal(timeline_name(&t, r->name), "gemm");
	assert_int_equal(r->count, 2);
	assert_true(r->value[KERNEL_COUNTER_time_ns] == 4000);
	assert_true(r->value[KERNEL_COUNTER_sm_active_share] > 0.5999 && r->value[KERNEL_COUNTER_sm_active_share] < 0.6001);
	assert_true(kernel_counters_dram_bytes(r) == 4e6);
	assert_true(r->value[KERNEL_COUNTER_tensor_flop] == 4e9);
	assert_false(kernel_counters_has(&f.counted.row[0], KERNEL_COUNTER_tensor_flop));
	page.f = &f;
	assert_true(page_roofline(&svg, &page, &why));
	assert_non_null(strstr(text_str(&svg), "gemm"));
	assert_non_null(strstr(text_str(&svg), "BF16"));
	assert_null(strstr(text_str(&svg), "softmax")); /* no FLOP: nowhere on it */
	findings_counters_csv(&csv, &f);
	assert_non_null(strstr(text_str(&csv), "\n\"gemm\",2,0.6,"));
	text_release(&csv);
	findings_launches_csv(&csv, &f);
	assert_int_equal(strncmp(text_str(&csv), "name,pid,device,at_ns,sm_active_share,", 38), 0);
	line = strchr(text_str(&csv), '\n') + 1;
	for (int i = 0; i < 3; i++, line = strchr(line, '\n') + 1) {
		assert_int_equal(sscanf(line, "\"%15[a-z]\",%u,0,%*u,%lf,", name, &pid, &share), 3);
		assert_string_equal(name, i == 1 ? "softmax" : "gemm");
		assert_true(pid == t.process[0].pid && share == shares[i]);
	}
	assert_int_equal(*line, '\0');
	text_release(&svg);
	text_release(&csv);
	done(&f, &t);
}

/* Pages and the terminal have labels that differ, files for programs the names. */
static void test_page__kernel_names_are_short_for_people(void **state)
{
	static const char *const names[] = {"void a::(anonymous namespace)::f<a::X>(int)", "void b::f<b::X>(int)",
					    "triton_poi_0"};
	static const char *const cells[] = {
		"<td title=\"void a::(anonymous namespace)::f&lt;a::X&gt;(int)\">f&lt;X&gt;</td>",
		"<td title=\"void b::f&lt;b::X&gt;(int)\">f&lt;X&gt; #2</td>", "<td>triton_poi_0</td>"};
	struct page page = {.command = "train", .ending = "exit code 0", .note = ""};
	struct text markdown = {0}, html = {0}, brief = {0}, csv = {0}, svg = {0};
	struct error err = {0};
	struct findings f;
	struct timeline t;
	struct writer w;
	const char *why;

	bed_open(&w, *state);
	for (unsigned i = 0; i < 3; i++) {
		add_kernel(&w, names[i], (10 + 10 * i) * MS, (5 - i) * MS, i + 1);
		count(&w, names[i], 5000 - i, 0.5, 2e9);
	}
	bed_close(&w);
	read_back(&t, *state);
	assert_int_equal(findings_of(&f, &t, NULL, &err), STATUS_OK);
	page.f = &f;
	page_markdown(&markdown, &page);
	page_html(&html, &page);
	page_brief(&brief, &page);
	summary_csv(&csv, &f.whole.summary, &t);
	assert_true(page_roofline(&svg, &page, &why));
	for (unsigned i = 0; i < 3; i++) {
		const char *first = strstr(text_str(&html), cells[i]);

		/* Kernels, then counters. */
		if (!first || !strstr(first + 1, cells[i]))
			fail_msg("not twice: %s", cells[i]);
		assert_non_null(strstr(text_str(&csv), names[i]));
		assert_true(i == 2 || !strstr(text_str(&markdown), names[i]));
	}
	assert_null(strstr(text_str(&markdown), "namespace"));
	assert_non_null(strstr(text_str(&markdown), "summary.csv has the full names"));
	assert_non_null(strstr(text_str(&markdown), "counters.csv has the full names"));
	assert_non_null(strstr(text_str(&brief), " f<X>\n"));
	assert_non_null(strstr(text_str(&brief), " f<X> #2\n"));
	assert_non_null(strstr(text_str(&svg), "f&lt;X&gt; #2"));
	text_release(&markdown);
	text_release(&html);
	text_release(&brief);
	text_release(&csv);
	text_release(&svg);
	done(&f, &t);
}

static void test_page__without_counters_the_roofline_says_how(void **state)
{
	struct page page = {.command = "train", .ending = "exit code 0", .note = ""};
	struct text svg = {0}, markdown = {0};
	struct findings f;
	struct timeline t;
	const char *why;

	find(&f, &t, *state);
	page.f = &f;
	assert_false(page_roofline(&svg, &page, &why));
	page_markdown(&markdown, &page);
	assert_non_null(strstr(text_str(&markdown), "--counters-flop"));
	text_release(&svg);
	text_release(&markdown);
	done(&f, &t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_page__json_fits_its_schema),
		scratch_test(test_page__both_forms_have_every_table),
		scratch_test(test_page__foreign_text_is_text),
		scratch_test(test_page__a_table_for_programs_has_a_row_each),
		scratch_test(test_page__counters_of_a_name_are_one_row_and_a_point),
		scratch_test(test_page__kernel_names_are_short_for_people),
		scratch_test(test_page__without_counters_the_roofline_says_how),
	};

	return cmocka_run_group_tests_name("profile_page", tests, NULL, NULL);
}
