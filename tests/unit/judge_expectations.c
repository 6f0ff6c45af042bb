/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "cmd/shared/checked_expectations.h"
#include "judge/expect/expect.h"

#define SOURCES "sources: {s: {title: a test, date: 2026-11-21}}\n"
#define BASIS "basis: {cards: 1, runs: 1, windows: 1 s}, "
#define SKU                                                                                                  \
	"skus:\n - {name: toy, title: Toy, match: {pci: [0x1234], sm_count: 100, memory: [10 GiB, 12 GiB], " \
	"source: s,"                                                                                         \
	" confidence: high}, facts: [{source: s, confidence: high, sm_clock_max: 1000 MHz, flop_bf16: 1000," \
	" memory_clock_max: 1000 MHz, bus_bits: 4000}]}\n"

/* Reads the text and holds it against itself. */
static enum status hold(const char *text, struct error *err)
{
	struct expectations *e = calloc(1, sizeof(*e));
	enum status status = expect_add(e, "t.yaml", text, strlen(text), err);

	if (!status)
		status = expectations_check(e, err);
	expectations_free(e);
	return status;
}

static void refused(const char *text, const char *why)
{
	struct error err = {0};

	assert_int_equal(hold(text, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, why))
		fail_msg("\"%s\" does not say \"%s\"", err.text, why);
	assert_non_null(strstr(err.text, "t.yaml:"));
}

static void test_expectations__a_sound_toy_set_holds(void **state)
{
	struct error err = {0};

	(void)state;
	if (hold(SOURCES SKU "bands:\n - {name: b, when: {probe: gemm, sku: toy, type: bf16}, rate: [70 "
			     "TFLOPS, 90 TFLOPS], " BASIS " source: s, confidence: low}\n",
		 &err))
		fail_msg("%s", err.text);
}

static void test_expectations__a_band_above_its_bound_is_refused(void **state)
{
	(void)state;
	refused(SOURCES SKU "bands:\n - {name: b, when: {probe: gemm, sku: toy, type: bf16}, rate: [70 "
			    "TFLOPS, 101 TFLOPS], " BASIS " source: s, confidence: low}\n",
		"above its bound");
	refused(SOURCES SKU
		"bands:\n - {name: b, when: {probe: memory, sku: toy}, rate: [900 GB/s, 1.2 TB/s], " BASIS
		" source: s, confidence: low}\n",
		"above its bound");
	refused(SOURCES SKU "bands:\n - {name: b, when: {sku: toy}, clock_held: [900 MHz, 1100 MHz], " BASIS
			    " source: s,"
			    " confidence: low}\n",
		"above its bound");
	refused(SOURCES SKU "bands:\n - {name: b, when: {sku: toy}, efficiency_held: [0.9, 1.1], " BASIS
			    " source: s,"
			    " confidence: low}\n",
		"above its bound");
}

static void test_expectations__a_slip_of_the_unit_is_refused(void **state)
{
	(void)state;
	refused(SOURCES SKU
		"bands:\n - {name: b, when: {probe: memory, sku: toy}, rate: [600 MB/s, 900 MB/s], " BASIS
		"source: s,"
		" confidence: low}\n",
		"check its unit");
	refused(SOURCES SKU "bands:\n - {name: b, when: {sku: toy}, rate: [600 TFLOPS, 900 GB/s], " BASIS
			    " source: s,"
			    " confidence: low}\n",
		"900 GB/s");
	refused(SOURCES
		"skus:\n - {name: x, title: X, cc: 80, facts: [{source: s, confidence: low, memory_bandwidth:"
		" 3.35 GB/s}]}\n",
		"check its unit");
}

static void test_expectations__a_sparse_datasheet_figure_is_refused(void **state)
{
	(void)state;
	refused(SOURCES "skus:\n - {name: x, title: X, match: {pci: [0x1], sm_count: 132, memory: [1 GiB, 2 "
			"GiB], source: s,"
			" confidence: low}, facts: [{source: s, confidence: low, flop_bf16: 4096},"
			" {source: s, confidence: low, at: 1830 MHz, datasheet_bf16: 1979 TFLOPS}]}\n",
		"132 SM x 4096 FLOP");
}

static void test_expectations__a_missing_source_or_confidence_is_refused(void **state)
{
	(void)state;
	refused(SOURCES SKU "bands:\n - {name: b, when: {sku: toy}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
			    " confidence: low}\n",
		"source is missing");
	refused(SOURCES SKU "bands:\n - {name: b, when: {sku: toy}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
			    " source: s}\n",
		"confidence is missing");
	refused(SOURCES SKU "bands:\n - {name: b, when: {sku: toy}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
			    " source: other,"
			    " confidence: low}\n",
		"source other");
	refused("sources: {s: {title: a test}}\nbands:\n - {name: b, when: {type: bf16}, rate: [70 TFLOPS, "
		"90 TFLOPS], " BASIS " source: s, confidence: low}\n",
		"date");
}

static void test_expectations__bands_that_may_tie_are_refused(void **state)
{
	(void)state;
	refused(SOURCES SKU "bands:\n"
			    " - {name: a, when: {sku: toy, type: bf16}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
			    "source: s, confidence: low}\n"
			    " - {name: b, when: {sku: toy, m: 8192}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
			    " source: "
			    "s, confidence: low}\n",
		"can match the same case");
	refused(SOURCES SKU "bands:\n"
			    " - {name: a, when: {sku: toy, stream_bytes: {min: 4 GiB, unit: B}}, rate: [70 "
			    "TFLOPS, 90 TFLOPS], " BASIS " source: s,"
			    " confidence: low}\n"
			    " - {name: b, when: {sku: toy, stream_bytes: {max: 8 GiB, unit: B}}, rate: [70 "
			    "TFLOPS, 90 TFLOPS], " BASIS " source: s,"
			    " confidence: low}\n",
		"can match the same case");
}

/* In files of a folder the later one won. */
static void test_expectations__ceilings_that_may_tie_are_refused(void **state)
{
#define ROW(name, when, pass)                                                                                \
	" - {name: " name ", when: {" when "}, pass: " pass ", fail: 0.1, source: s, confidence: low}\n"
	struct error err = {0};

	(void)state;
	refused(SOURCES "ceilings:\n" ROW("a", "probe: gemm, target: cpu", "0.8")
			ROW("b", "probe: gemm, target: cpu", "0.2"),
		"t.yaml:4: ceilings b and a (t.yaml:3) can match the same case");
	refused(SOURCES "ceilings:\n" ROW("a", "probe: gemm, least_dimension: {min: 1024}", "0.8")
			ROW("b", "probe: gemm, type: [bf16, int8]", "0.2"),
		"can match the same case");
	if (hold(SOURCES "ceilings:\n" ROW("a", "probe: gemm, type: bf16", "0.8")
			 ROW("b", "probe: gemm, type: int8", "0.2") ROW("c", "probe: gemm", "0.5"),
		 &err))
		fail_msg("%s", err.text);
#undef ROW
}

static enum status ask_values(struct expectations *e, struct error *err)
{
	return expectations_check_values(e, checked_expectations_has, err);
}

static void test_expectations__a_value_that_no_case_has_is_refused(void **state)
{
	static const struct {
		const char *when, *why;
	} rows[] = {
		{"probe: gem", "no case has probe gem; the nearest is gemm"},
		{"engine: onednm", "the nearest is onednn"},
		{"type: bf61", "t.yaml:3: no case has type bf61; the nearest is bf16"},
		{"type: [fp32, bf61]", "bf61"},
		{"data: randum", "the nearest is random"},
		{"phase: sustaind", "the nearest is sustained"},
		{"target: cpuu", "the nearest is cpu"},
		{"limit: memry", "the nearest is memory"},
		{"limit: compute.bf61", "the nearest is bf16"},
		{"m: -1", "no case has m -1"},
		{"m: many", "no case has m many"},
		{"gpus: eight", "no case has gpus eight"},
		{"sku: h100", "no case has sku h100"},
		{"arch: 90", "no case has arch 90"},
		{"beside: rea", "the nearest is read"},
		{"mig: \"yes\"", "no case has mig yes"},
		{"bias: perhaps", "no case has bias perhaps"},
		{"algorithm: rings", "the nearest is ring"},
		{"protocol: simpel", "the nearest is simple"},
		{"nvlinks: all", "no case has nvlinks all"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct expectations *e = calloc(1, sizeof(*e));
		struct error err = {0};
		char text[512];

		snprintf(text, sizeof(text),
			 SOURCES "unknown:\n - {name: u, when: {%s}, why: w, source: s, confidence: low}\n",
			 rows[i].when);
		assert_int_equal(expect_add(e, "t.yaml", text, strlen(text), &err), STATUS_OK);
		assert_int_equal(ask_values(e, &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, rows[i].why))
			fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].why);
		expectations_free(e);
	}
}

static void test_expectations__a_probe_that_decides_nothing_is_refused(void **state)
{
	static const struct {
		const char *row, *why;
	} rows[] = {
		{"probe: ecd, field: f", "there is no probe ecd; the nearest is ecc"},
		{"probe: ecc, field: f, needed_when: {row_remapping: maybe}", "no case has row_remapping maybe"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct expectations *e = calloc(1, sizeof(*e));
		struct error err = {0};
		char text[512];

		snprintf(text, sizeof(text), SOURCES "decisive:\n - {%s, source: s, confidence: low}\n", rows[i].row);
		assert_int_equal(expect_add(e, "t.yaml", text, strlen(text), &err), STATUS_OK);
		assert_int_equal(ask_values(e, &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, rows[i].why))
			fail_msg("\"%s\" does not say \"%s\"", err.text, rows[i].why);
		expectations_free(e);
	}
}

static void test_expectations__every_built_in_value_is_one_that_a_case_can_have(void **state)
{
	struct expectations *e = NULL;
	struct error err = {0};

	(void)state;
	if (expectations_load(&e, NULL, &err) || ask_values(e, &err))
		fail_msg("%s", err.text);
	expectations_free(e);
}

static void test_expectations__what_stands_behind_a_band_is_told(void **state)
{
	static const struct {
		struct basis basis;
		const char *text;
	} rows[] = {
		{{0, 0, "as published", 0}, "published figures only"},
		{{1, 1, "3 s", 0}, "one card, 1 run of 3 s"},
		{{1, 3, "1.5 to 6 s", 0}, "one card, 3 runs of 1.5 to 6 s"},
		{{3, 4, "6 s", 0.018}, "3 cards, 4 runs of 6 s, 1.8 % apart"},
	};
	char text[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		basis_text(&rows[i].basis, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

static void test_expectations__bands_that_exclude_each_other_do_not_tie(void **state)
{
	struct error err = {0};

	(void)state;
	if (hold(SOURCES SKU
		 "bands:\n"
		 " - {name: a, when: {sku: toy, m: [8192, 4096]}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
		 " source: s, "
		 "confidence: low}\n"
		 " - {name: b, when: {sku: toy, m: 16384}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
		 " source: s, "
		 "confidence: low}\n"
		 " - {name: c, when: {sku: toy}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
		 " source: s, confidence: low}\n"
		 " - {name: d, when: {sku: toy}, clock_held: [700 MHz, 900 MHz], " BASIS
		 " source: s, confidence: "
		 "low}\n",
		 &err))
		fail_msg("%s", err.text);
}

static void test_expectations__unknown_keys_and_words_name_the_nearest(void **state)
{
	(void)state;
	refused("bandz: []\n", "bands");
	refused(SOURCES SKU "bands:\n - {name: b, when: {typ: bf16}, rate: [70 TFLOPS, 90 TFLOPS], " BASIS
			    " source: s,"
			    " confidence: low}\n",
		"nearest is type");
	refused(SOURCES SKU "bands:\n - {name: b, when: {type: bf16}, rtae: [70 TFLOPS, 90 TFLOPS], " BASIS
			    " source: s,"
			    " confidence: low}\n",
		"rate");
	refused(SOURCES "skus:\n - {name: x, title: X, cc: 80, facts: [{source: s, confidence: low, "
			"flop_bf17: 2048}]}\n",
		"flop_bf17");
}

struct malformed {
	const char *text, *why;
};

static void all_refused(const struct malformed *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		refused(rows[i].text, rows[i].why);
}

static void test_expectations__malformed_bands_are_refused(void **state)
{
	static const struct malformed rows[] = {
		{SOURCES "bands:\n - {name: b, when: {type: bf16}, source: s, confidence: low}\n",
		 "needs rate"},
		{SOURCES "bands:\n - {name: b, rate: [1 TFLOPS, 2 TFLOPS], " BASIS
			 " source: s, confidence: low}\n",
		 "every case"},
		{SOURCES "bands:\n - {name: b, when: {type: bf16}, rate: [2 TFLOPS, 1 TFLOPS], " BASIS
			 " source: s, "
			 "confidence: low}\n",
		 "low end"},
		{SOURCES "bands:\n - {name: b, when: {type: bf16}, rate: [nan TFLOPS, 1 TFLOPS], " BASIS
			 " source: s, "
			 "confidence: low}\n",
		 "not a number"},
		{SOURCES "bands:\n - {name: b, when: {type: bf16}, rate: [-1 TFLOPS, 1 TFLOPS], " BASIS
			 " source: s, "
			 "confidence: low}\n",
		 "zero"},
		{SOURCES "bands:\n - {name: b, when: {sku: nobody}, rate: [1 TFLOPS, 2 TFLOPS], " BASIS
			 " source: s, "
			 "confidence: low}\n",
		 "not in the set"},
		{SOURCES "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], source: s, "
			 "confidence: low}\n",
		 "basis is missing"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], basis: {cards: "
		 "1, runs: 1}, source: s, confidence: low}\n",
		 "windows is missing"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], basis: {cards: "
		 "1, windows: 1 s}, source: s, confidence: low}\n",
		 "basis needs runs"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], basis: {cards: "
		 "2, runs: 1, windows: 1 s}, source: s, confidence: low}\n",
		 "1 runs cannot come from 2 cards"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], basis: {cards: "
		 "2, runs: 2, windows: 1 s, scatter: 0.01}, source: s, confidence: medium}\n",
		 "that needs 3 cards measured"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], basis: {cards: "
		 "2, runs: 2, windows: 1 s}, source: s, confidence: low}\n",
		 "basis needs scatter"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], basis: {cards: "
		 "1, runs: 2, windows: 1 s, scatter: 0.01}, source: s, confidence: low}\n",
		 "scatter needs at least two cards"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], basis: {cards: "
		 "2, runs: 2, windows: 1 s, scatter: 0.3}, source: s, confidence: low}\n",
		 "not a share from 0 to 0.25"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, rate: [1 TFLOPS, 2 TFLOPS], fail: 1.5 TFLOPS, basis: "
		 "{cards: 1, runs: 2, windows: 1 s}, source: s, confidence: low}\n",
		 "is zero or inside its range"},
		{SOURCES
		 "bands:\n - {name: b, when: {type: bf16}, time: [1 us, 2 us], fail: 1.5 us, basis: "
		 "{cards: 1, runs: 2, windows: 1 s}, source: s, confidence: low}\n",
		 "is zero or inside its range"},
	};

	(void)state;
	all_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

static void test_expectations__malformed_rows_are_refused(void **state)
{
	static const struct malformed rows[] = {
		{SOURCES
		 "rules:\n - {name: r, field: x, above: 1, judges: true, text: t, verdict: fail, cause: "
		 "ecc, action: a, source: s, confidence: low}\n",
		 "every case"},
		{SOURCES
		 "rules:\n - {name: r, field: x, above: 1, text: t, verdict: fail, cause: ecc, source: "
		 "s, confidence: low}\n",
		 "action is missing"},
		{SOURCES "rules:\n - {name: r, field: x, text: t, verdict: fail, cause: ecc, source: s, "
			 "confidence: low}\n",
		 "needs one of"},
		{SOURCES "rules:\n - {name: r, field: x, above: 1, text: t, verdict: untrusted, cause: ecc, "
			 "source: s,"
			 " confidence: low}\n",
		 "verdict is untrusted"},
		{SOURCES "rules:\n - {name: r, field: x, above: 1, text: t, verdict: measured, cause: ecc, "
			 "source: s,"
			 " confidence: low}\n",
		 "verdict is measured"},
		{SOURCES "rules:\n - {name: r, field: x, above: 1, text: t, verdict: fail, cause: gremlins, "
			 "source: s,"
			 " confidence: low}\n",
		 "gremlins"},
		{SOURCES
		 "rules:\n - {name: q, field: x, above: 1, text: t, verdict: fail, cause: ecc, action: "
		 "a, source: s, confidence: low}\n - {name: r, field: x, above: 1, text: t, verdict: "
		 "warn, cause: ecc, action: a, source: s, confidence: low}\n",
		 "r repeats rule q"},
		{SOURCES "xids:\n - {xid: 0, name: n, during: fail, before: warn, action: a, source: s, "
			 "confidence: low}\n",
		 "not an Xid"},
		{SOURCES "xids:\n - {xid: 1e99, name: n, during: fail, before: warn, action: a, source: s, "
			 "confidence: low}\n",
		 "not an Xid"},
		{SOURCES
		 "xids:\n - {xid: 79, name: n, during: fail, before: warn, action: a, source: s, confidence: "
		 "low}\n"
		 " - {xid: 79, name: n, during: fail, before: warn, action: a, source: s, confidence: low}\n",
		 "twice"},
		{SOURCES "ceilings:\n - {name: c, when: {probe: gemm}, pass: 0.5, fail: 0.8, source: s, "
			 "confidence: low}\n",
		 "fail < pass"},
		{SOURCES "unknown:\n - {name: u, why: w, source: s, confidence: low}\n", "every case"},
		{SOURCES
		 "shares:\n - {name: h, when: {probe: p2p}, share: 0.95, source: s, confidence: low}\n",
		 "share of 0.95 is not from 0.1 to 0.9"},
		{SOURCES "shares:\n - {name: h, when: {probe: p2p}, source: s, confidence: low}\n",
		 "h needs when and share"},
		{SOURCES "shares:\n - {name: h, when: {probe: p2p}, share: 0.5, source: s, confidence: low}\n"
			 " - {name: i, when: {engine: nccl}, share: 0.4, source: s, confidence: low}\n",
		 "i and h (t.yaml:3) can match the same case"},
		{SOURCES "bands:\n - {name: b, when: {limit: latency}, time: [5 GB/s, 6 GB/s], " BASIS
			 "source: s, confidence: low}\n",
		 "5 GB/s is not a number with a unit of s"},
#define DECISIVE(row) SOURCES "decisive:\n - {" row "source: s, confidence: low}\n"
		{DECISIVE("field: f, "), "probe is missing"},
		{DECISIVE("probe: ecc, "), "field is missing"},
		{DECISIVE("probe: ecc, field: f, feature: wings, "), "no SKU has a fact wings"},
		{DECISIVE("probe: ecc, field: f, reads: tea, "), "reads is tea, not nvml, cuda or host"},
		{DECISIVE("probe: ecc, field: f, reads: host, "), "needs a cause"},
		{DECISIVE("probe: ecc, field: f, cause: gremlins, "), "there is no cause gremlins"},
		{DECISIVE("probe: ecc, field: f, needed_when: 3, "), "needed_when must be a map of words"},
		{DECISIVE("probe: ecc, field: f, needed_when: {ecq: on}, "), "no case has a word ecq"},
		{DECISIVE("probe: ecc, field: f, above: 3, "), "above"},
		{SOURCES "decisive:\n - {probe: ecc, field: f, needed_when: {ecc: on}, source: s, confidence: low}\n"
			 " - {probe: ecc, field: f, source: s, confidence: low}\n",
		 "field f of probe ecc is already decisive (t.yaml:3)"},
		{SOURCES "decisive:\n - 3\n", "t.yaml:3"},
		{"- a\n", "must be a map"},
	};

	(void)state;
	all_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_expectations__a_sound_toy_set_holds),
		cmocka_unit_test(test_expectations__a_band_above_its_bound_is_refused),
		cmocka_unit_test(test_expectations__a_slip_of_the_unit_is_refused),
		cmocka_unit_test(test_expectations__a_sparse_datasheet_figure_is_refused),
		cmocka_unit_test(test_expectations__a_missing_source_or_confidence_is_refused),
		cmocka_unit_test(test_expectations__bands_that_may_tie_are_refused),
		cmocka_unit_test(test_expectations__ceilings_that_may_tie_are_refused),
		cmocka_unit_test(test_expectations__a_value_that_no_case_has_is_refused),
		cmocka_unit_test(test_expectations__a_probe_that_decides_nothing_is_refused),
		cmocka_unit_test(test_expectations__every_built_in_value_is_one_that_a_case_can_have),
		cmocka_unit_test(test_expectations__what_stands_behind_a_band_is_told),
		cmocka_unit_test(test_expectations__bands_that_exclude_each_other_do_not_tie),
		cmocka_unit_test(test_expectations__unknown_keys_and_words_name_the_nearest),
		cmocka_unit_test(test_expectations__malformed_bands_are_refused),
		cmocka_unit_test(test_expectations__malformed_rows_are_refused),
	};

	return cmocka_run_group_tests_name("judge_expectations", tests, NULL, NULL);
}
