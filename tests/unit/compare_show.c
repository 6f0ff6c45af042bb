/* SPDX-License-Identifier: Apache-2.0 */
/* What `assay compare` prints of the runs that are kept under results/. */
#include "test.h"
#include "cmd/compare/compare.h"
#include "report/text/fact_label.h"
#include "core/text/text.h"
#include "judge/compare/facts_difference.h"
#include "judge/judge.h"

#define CPU SOURCE_DIR "/results/2026-11-21-cpu-2core/quick"
#define H100 SOURCE_DIR "/results/2026-11-21-h100-sxm/quick"
#define H200 SOURCE_DIR "/results/2026-11-21-h200-sxm/quick"

static struct text shown(const char *first, const char *second, bool all, int *exit_code)
{
	const char *const dirs[] = {first, second};
	struct compare_run runs[2];
	struct record record[2];
	struct judgements judged[2];
	struct expectations *e = NULL;
	struct comparison c;
	struct text out = {0};
	int i;

	assert_false(expectations_load(&e, NULL, NULL));
	for (i = 0; i < 2; i++) {
		assert_false(record_read_run(&record[i], dirs[i], NULL));
		assert_false(judge_record(&judged[i], &record[i], e, NULL, NULL));
		runs[i] = (struct compare_run){.name = dirs[i], .record = &record[i], .judged = &judged[i]};
	}
	assert_false(compare_runs(&c, runs, 2, COMPARE_AUTO, NULL));
	compare_show(&out, &c, runs, 2, all);
	*exit_code = c.exit_code;
	comparison_release(&c);
	for (i = 0; i < 2; i++) {
		judgements_release(&judged[i]);
		record_release(&record[i]);
	}
	expectations_free(e);
	return out;
}

#define HAS(text, part) assert_non_null(strstr(text_str(&(text)), part))
#define LACKS(text, part) assert_null(strstr(text_str(&(text)), part))

static void test_compare_show__two_machines_stand_side_by_side_without_a_verdict(void **state)
{
	struct text out;
	int code;

	(void)state;
	out = shown(H100, H200, false, &code);
	assert_int_equal(code, 2);
	HAS(out, "2 machines side by side");
	HAS(out, "BF16 GEMM 8192, cuBLASLt ");
	HAS(out, "B / A");
	LACKS(out, "engine=");
	text_release(&out);
}

static void test_compare_show__inventory_is_in_words_and_ids_in_hex(void **state)
{
	struct text out;
	int code;

	(void)state;
	out = shown(H100, H200, false, &code);
	HAS(out, "GPU 0: memory bus width ");
	HAS(out, "5120 bit ");
	HAS(out, "10de:2330 ");
	HAS(out, "GPU 0: device memory, total ");
	HAS(out, "79.6 GiB ");
	LACKS(out, "590352606");
	LACKS(out, "gpus[0]");
	text_release(&out);
}

static void test_compare_show__a_run_beside_itself_is_within_noise(void **state)
{
	struct text out;
	int code;

	(void)state;
	out = shown(CPU, CPU, false, &code);
	assert_int_equal(code, 0);
	HAS(out, "within noise (--all shows them)");
	LACKS(out, "result\n"); /* no heading without a row */
	text_release(&out);
	out = shown(CPU, CPU, true, &code);
	HAS(out, "result\n");
	HAS(out, "FP64 GEMM 2048, OpenBLAS ");
	text_release(&out);
}

static void test_compare_show__what_cannot_be_compared_is_a_line_a_reason(void **state)
{
	struct record_case c = {.key = "k",
				.target = "cpu",
				.where = "cpu",
				.probe = "memory",
				.engine = "own",
				.limit = "cache"};
	struct compare_row rows[3] = {
		{.c = &c, .why = "after: 75.1 % of the CPU", .verdict_after = VERDICT_UNTRUSTED},
		{.c = &c, .why = "after: 80 % of the CPU", .verdict_after = VERDICT_UNTRUSTED},
		{.c = &c, .why = "after: 3 wrong", .verdict_after = VERDICT_FAIL},
	};
	struct comparison of = {.row = rows, .row_count = 3};
	struct text out = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		rows[i].change = COMPARE_NOT_COMPARABLE;
	compare_show(&out, &of, NULL, 0, false);
	HAS(out, "\n2 not comparable, the first: after: 75.1 % of the CPU\n");
	HAS(out, "not comparable: was pass, is fail; after: 3 wrong\n");
	LACKS(out, "80 %");
	LACKS(out, "  -  ");
	text_release(&out);
	compare_show(&out, &of, NULL, 0, true);
	HAS(out, "80 %");
	text_release(&out);
}

static void test_compare_show__paths_get_labels(void **state)
{
	static const struct {
		const char *path, *label;
	} rows[] = {
		{"cpu.numa[0].cpus", "CPU: numa 0 cpus"},
		{"gpus[3].facts.power_limit_w", "GPU 3: power limit, enforced"},
		{"gpus[3].facts.of_tomorrow", "GPU 3: facts of tomorrow"},
		{"environment.CUDA_HOME", "variable: CUDA_HOME"},
		{"gpu_topology", "gpu topology"},
		{"device_nodes", "device node"},
	};
	char label[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fact_label(label, sizeof(label), rows[i].path);
		assert_string_equal(label, rows[i].label);
	}
}

static void test_compare_show__leaves_get_units(void **state)
{
	static const struct {
		const char *path, *text, *shown;
	} rows[] = {
		{"gpus[0].pci_device", "590352606", "10de:2330"},
		{"gpus[0].pci_device", "absent", "absent"},
		{"cpu.caches[1].bytes", "32768", "32 KiB"},
		{"limits.memlock_bytes", "unlimited", "unlimited"},
		{"gpus[0].facts.power_limit_w", "700", "700 W"},
		{"gpus[0].facts.power_limit_w", "absent", "absent"},
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fact_leaf(text, sizeof(text), rows[i].path, rows[i].text);
		assert_string_equal(text, rows[i].shown);
	}
}

static void test_compare_show__a_difference_says_of_which_nodes_it_is(void **state)
{
	struct compare_difference d[] = {{.path = "driver.version",
					  .before = "570",
					  .after = "580",
					  .run = "b",
					  .node = "node-b",
					  .nodes = 3},
					 {.path = "node",
					  .before = "absent",
					  .after = "there",
					  .run = "b",
					  .node = "node-c",
					  .nodes = 1}};
	const struct comparison c = {.difference = d, .difference_count = 2};
	const struct compare_run runs[2] = {{.name = "a"}, {.name = "b"}};
	struct text out = {0};

	(void)state;
	compare_show(&out, &c, runs, 2, false);
	HAS(out, "node-b and 2 more: driver: version ");
	HAS(out, "node-c: node ");
	text_release(&out);
}

static void test_compare_show__runs_go_by_what_tells_their_paths_apart(void **state)
{
	static const struct {
		const char *run[3], *shown[3];
	} rows[] = {
		{{"nodes/gpu-01/quick", "nodes/gpu-02/quick", "nodes/gpu-17/quick"},
		 {"gpu-01", "gpu-02", "gpu-17"}},
		{{"runs/a-quick", "runs/a-quick-2", "runs/a-quick-3/"},
		 {"a-quick", "a-quick-2", "a-quick-3"}},
		{{"/x/y/one/quick", "/x/y/two/full", "/x/y/two/quick"},
		 {"one/quick", "two/full", "two/quick"}},
		{{"a", "a", "a/b"}, {"a", "a", "a/b"}},
		{{"x/x", "x/x/x", "x"}, {"x/x", "x/x/x", "x"}},
		{{"../one", "/one", "one"}, {"../one", "/one", "one"}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct compare_run runs[3];

		for (size_t k = 0; k < 3; k++)
			runs[k] = (struct compare_run){.name = rows[i].run[k]};
		for (size_t k = 0; k < 3; k++) {
			char shown[64];

			compare_name(shown, sizeof(shown), runs, 3, runs[k].name);
			assert_string_equal(shown, rows[i].shown[k]);
		}
	}
}

static void test_compare_show__an_outlier_is_named_and_called_slow_or_fast(void **state)
{
	static const char run[] = "a-folder-of-a-long-name/another-one-below-it/gpu-node-02/quick";
	struct record_case c = {.key = "k",
				.target = "gpu0",
				.where = "host-11ccc27a/gpu0",
				.probe = "memory",
				.engine = "own",
				.limit = "cache"};
	struct compare_outlier o[2] = {{.c = &c,
					.run = run,
					.unit = "ns",
					.value = 900,
					.median = 800,
					.deviation = 0.125,
					.siblings = 4,
					.slower = true},
				       {.c = &c,
					.run = run,
					.unit = "B/s",
					.value = 9e9,
					.median = 8e9,
					.deviation = 0.125,
					.siblings = 4}};
	const struct compare_run runs[2] = {
		{.name = run}, {.name = "a-folder-of-a-long-name/another-one-below-it/gpu-node-01/quick"}};
	const struct comparison of = {.fleet = true, .outlier = o, .outlier_count = 2};
	struct text out = {0};

	(void)state;
	compare_show(&out, &of, runs, 2, false);
	HAS(out, "\ngpu-node-02  ");
	HAS(out, "host-11ccc27a/gpu0 ");
	HAS(out, "+12.5 %  slow  ");
	HAS(out, "+12.5 %  fast  ");
	text_release(&out);
}

static void test_compare_show__long_values_are_shown_from_where_they_differ(void **state)
{
	struct compare_difference d = {.path = "environment.LD_LIBRARY_PATH",
				       .before = "/usr/local/of/all/of/them/one:/usr/lib",
				       .after = "/usr/local/of/all/of/them/two:/usr/lib",
				       .run = "b"};
	const struct comparison of = {.difference = &d, .difference_count = 1};
	const struct compare_run runs[2] = {{.name = "a"}, {.name = "b"}};
	struct text out = {0};

	(void)state;
	compare_show(&out, &of, runs, 2, false);
	HAS(out, "\u2026of/them/one:/usr/lib ");
	HAS(out, "-> \u2026of/them/two:/usr/lib ");
	text_release(&out);
}

static void test_compare_show__lists_differ_by_number_and_by_what_one_alone_has(void **state)
{
	json_t *a = json_pack("[{s:s}, {s:s}]", "path", "/dev/nvidia0", "path", "/dev/nvidiactl");
	json_t *b = json_pack("[{s:s}]", "path", "/dev/nvidiactl"), *c = json_pack("[{s:i}]", "of", 1),
	       *none = json_array();
	char before[64], after[64];

	(void)state;
	facts_difference_two(a, b, before, after, sizeof(before));
	assert_string_equal(before, "2 with /dev/nvidia0");
	assert_string_equal(after, "1");
	facts_difference_two(none, c, before, after, sizeof(before)); /* entries without a name */
	assert_string_equal(before, "0");
	assert_string_equal(after, "1");
	facts_difference_two(NULL, b, before, after, sizeof(before));
	assert_string_equal(before, "absent");
	json_decref(a);
	json_decref(b);
	json_decref(c);
	json_decref(none);
}

#define T(name) cmocka_unit_test(test_compare_show__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(two_machines_stand_side_by_side_without_a_verdict),
		T(inventory_is_in_words_and_ids_in_hex),
		T(a_run_beside_itself_is_within_noise),
		T(what_cannot_be_compared_is_a_line_a_reason),
		T(paths_get_labels),
		T(leaves_get_units),
		T(a_difference_says_of_which_nodes_it_is),
		T(runs_go_by_what_tells_their_paths_apart),
		T(an_outlier_is_named_and_called_slow_or_fast),
		T(long_values_are_shown_from_where_they_differ),
		T(lists_differ_by_number_and_by_what_one_alone_has),
	};

	return cmocka_run_group_tests_name("compare_show", tests, NULL, NULL);
}
