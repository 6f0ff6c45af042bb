/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a node from lines of its stream: values, rates, ages, copies, other versions, hostile lines.
 */
#include "test.h"

#include <math.h>
#include "watch_bed.h"
#include "watch/reading_line.h"

static void test_catalogue__rows_are_complete(void **unused)
{
	int last = -1;

	(void)unused;
	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		const struct catalogue_row *row = catalogue_row((enum catalogue)c);
		bool total = strlen(row->name) > 6 && !strcmp(row->name + strlen(row->name) - 6, "_total");
		struct text full = {0};

		/* Prometheus names what each program says of its own process "process_" */
		assert_true(!strncmp(row->name, "assay_", 6) ||
			    (row->scope == METRIC_SCOPE_EXPORTER && !strncmp(row->name, "process_", 8)));
		assert_true(*row->help && *row->unit && *row->source);
		assert_int_equal(total, row->type == METRIC_COUNTER);
		assert_true(row->resolution >= 0);
		assert_true(!row->dcgm.name || !strncmp(row->dcgm.name, "DCGM_", 5));
		/* rows of one scope stand together */
		assert_true((int)row->scope == last || (int)catalogue_first(row->scope) == c);
		last = (int)row->scope;
		catalogue_add_full(&full, (enum catalogue)c);
		assert_int_equal(catalogue_find_full(text_str(&full)), c);
		text_release(&full);
	}
	assert_int_equal(catalogue_find_full("assay_gpu_clock_held"), CATALOGUE_COUNT);
	assert_int_equal(catalogue_find_full("assay_gpu_power_watts{x=\"1\"}"), CATALOGUE_COUNT);
	assert_int_equal(catalogue_find_full("{"), CATALOGUE_COUNT);
}

static void test_catalogue__labels_of_a_page_are_declared(void **unused)
{
	unsigned rows = 0;

	(void)unused;
	for (int s = 0; s < METRIC_SCOPE_COUNT; s++) {
		const struct scope_row *row = metric_scope_row((enum metric_scope)s);
		char page[256], *save = NULL;

		rows += catalogue_scope_rows((enum metric_scope)s);
		assert_int_equal(metric_scope_find(row->name), s);
		assert_true(catalogue_scope_rows((enum metric_scope)s) > 0);
		text_copy(page, sizeof(page), row->page);
		for (char *word = strtok_r(page, " ", &save); word; word = strtok_r(NULL, " ", &save))
			assert_true(metric_scope_has((enum metric_scope)s, word, false));
	}
	assert_int_equal(rows, CATALOGUE_COUNT);
	assert_true(metric_scope_has(METRIC_SCOPE_GPU, "pci_bus_id", true));
	assert_false(metric_scope_has(METRIC_SCOPE_GPU, "UUID", true));
	assert_false(metric_scope_has(METRIC_SCOPE_GPU, "pci", false));
	assert_int_equal(metric_scope_find("nothing"), METRIC_SCOPE_COUNT);
}

static void test_catalogue__names_what_dcgm_has_more(void **unused)
{
	const char *why = NULL;

	(void)unused;
	for (unsigned i = 0; dcgm_without(i, &why); i++)
		assert_true(*why);
	assert_non_null(why);
}

static void test_values_and_absence(void **unused)
{
	struct watch_state s = {0};
	const struct watch_entity *e;

	(void)unused;
	bed_begin(&s);
	e = &s.entity[3];
	assert_string_equal(watch_label(e, "pci_bus_id"), "0000:1b:00.0");
	assert_null(watch_label(e, "nothing"));
	assert_null(watch_get(e, CATALOGUE_GPU_POWER));
	bed_values(&s, 1, 3, "[%u,312.5]", CATALOGUE_GPU_POWER);
	assert_true(watch_get(e, CATALOGUE_GPU_POWER)->value == 312.5);
	assert_null(watch_get(e, CATALOGUE_CPU_BUSY)); /* of another scope */
	bed_values(&s, 2, 3, "[%u,null]", CATALOGUE_GPU_POWER);
	assert_null(watch_get(e, CATALOGUE_GPU_POWER));
	bed_line(&s, "{\"t\":%llu,\"s\":0,\"x\":{\"3\":[%u,\"no permission\"]},\"end\":3}", 3000000000ull,
		 CATALOGUE_GPU_POWER);
	assert_string_equal(watch_why(e, CATALOGUE_GPU_POWER), "no permission");
	bed_values(&s, 4, 3, "[%u,1]", CATALOGUE_GPU_POWER);
	assert_null(watch_why(e, CATALOGUE_GPU_POWER));
	/* an entity's reason makes its values absent; a value may follow */
	bed_line(&s, "{\"s\":0,\"e\":3,\"why\":\"the GPU is lost\"}");
	assert_null(watch_get(e, CATALOGUE_GPU_POWER));
	assert_string_equal(watch_why(e, CATALOGUE_GPU_POWER), "the GPU is lost");
	bed_values(&s, 5, 3, "[%u,0]", CATALOGUE_GPU_UP);
	assert_true(watch_get(e, CATALOGUE_GPU_UP)->value == 0);
	bed_line(&s, "{\"s\":0,\"e\":3,\"why\":null}");
	assert_null(e->why);
	watch_state_release(&s);
}

static void test_rates(void **unused)
{
	struct watch_state s = {0};
	const struct watch_entity *e;
	double rate = -1;

	(void)unused;
	bed_begin(&s);
	e = &s.entity[3];
	bed_values(&s, 1, 3, "[%u,100]", CATALOGUE_GPU_SAMPLED_SETTING);
	assert_false(watch_rate(&rate, e, CATALOGUE_GPU_SAMPLED_SETTING)); /* one reading */
	bed_values(&s, 3, 3, "[%u,200]", CATALOGUE_GPU_SAMPLED_SETTING);
	assert_true(watch_rate(&rate, e, CATALOGUE_GPU_SAMPLED_SETTING) && rate == 50);
	/* a burst, then silence: a reading without the value says that it has not changed */
	bed_values(&s, 4, 3, "[%u,5]", CATALOGUE_GPU_POWER);
	assert_true(watch_rate(&rate, e, CATALOGUE_GPU_SAMPLED_SETTING) && rate == 0);
	/* the next change counts from the last reading, not from the last change */
	bed_values(&s, 5, 3, "[%u,210]", CATALOGUE_GPU_SAMPLED_SETTING);
	assert_true(watch_rate(&rate, e, CATALOGUE_GPU_SAMPLED_SETTING) && rate == 10);
	/* a counter that fell was reset: no rate for this interval, then rates again */
	bed_values(&s, 6, 3, "[%u,1]", CATALOGUE_GPU_SAMPLED_SETTING);
	assert_false(watch_rate(&rate, e, CATALOGUE_GPU_SAMPLED_SETTING));
	bed_values(&s, 7, 3, "[%u,3]", CATALOGUE_GPU_SAMPLED_SETTING);
	assert_true(watch_rate(&rate, e, CATALOGUE_GPU_SAMPLED_SETTING) && rate == 2);
	/* absent, then back: no rate over the gap */
	bed_values(&s, 8, 3, "[%u,null]", CATALOGUE_GPU_SAMPLED_SETTING);
	bed_values(&s, 9, 3, "[%u,9]", CATALOGUE_GPU_SAMPLED_SETTING);
	assert_false(watch_rate(&rate, e, CATALOGUE_GPU_SAMPLED_SETTING));
	assert_false(watch_rate(&rate, e, CATALOGUE_GPU_POWER)); /* a gauge */
	watch_state_release(&s);
}

static void test_slow_rows_have_their_own_pace(void **unused)
{
	struct watch_state s = {0};
	const struct watch_entity *e;
	double rate = -1;

	(void)unused;
	bed_begin(&s);
	e = &s.entity[3];
	bed_line(&s, "{\"t\":5000000000,\"s\":0,\"slow\":true,\"v\":{\"3\":[%u,100]},\"end\":3}",
		 CATALOGUE_GPU_ENERGY);
	bed_line(&s, "{\"t\":10000000000,\"s\":0,\"slow\":true,\"v\":{\"3\":[%u,600]},\"end\":3}",
		 CATALOGUE_GPU_ENERGY);
	assert_true(watch_rate(&rate, e, CATALOGUE_GPU_ENERGY) && rate == 100);
	for (int t = 11; t < 15; t++) {
		bed_values(&s, t, 3, "[%u,5]", CATALOGUE_GPU_POWER);
		assert_true(watch_rate(&rate, e, CATALOGUE_GPU_ENERGY) && rate == 100);
	}
	bed_line(&s, "{\"t\":15000000000,\"s\":0,\"slow\":true,\"v\":{},\"end\":3}");
	assert_true(watch_rate(&rate, e, CATALOGUE_GPU_ENERGY) && rate == 0);
	watch_state_release(&s);
}

#define RARE_REPLAYS(s, t, count)                                                                            \
	bed_line(s, "{\"t\":%d000000000,\"s\":0,\"slow\":true,\"rare\":%d000000000,\"v\":{\"3\":[%u,%d]},"      \
		    "\"end\":3}",                                                                            \
		 t, t, CATALOGUE_GPU_PCIE_REPLAYS, count)

/* A rate is over the time between two readings of its own pace, and holds until the next one. */
static void test_rare_rows_have_their_own_pace(void **unused)
{
	struct watch_state s = {0}, other = {0};
	struct text copy = {0};
	double rate = -1;

	(void)unused;
	bed_begin(&s);
	RARE_REPLAYS(&s, 5, 100);
	for (int t = 10; t < 35; t += 5)
		bed_line(&s, "{\"t\":%d000000000,\"s\":0,\"slow\":true,\"end\":3}", t);
	assert_false(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_PCIE_REPLAYS));
	RARE_REPLAYS(&s, 35, 400);
	for (int t = 40; t < 65; t += 5) {
		assert_true(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_PCIE_REPLAYS) && fabs(rate - 10) < 1e-9);
		bed_line(&s, "{\"t\":%d000000000,\"s\":0,\"slow\":true,\"end\":3}", t);
		bed_values(&s, t + 1, 3, "[%u,5]", CATALOGUE_GPU_POWER);
	}
	/* a copy has the time of the value too */
	watch_state_write(&s, &copy);
	bed_lines(&other, text_str(&copy));
	RARE_REPLAYS(&other, 65, 700);
	assert_true(watch_rate(&rate, &other.entity[3], CATALOGUE_GPU_PCIE_REPLAYS) && fabs(rate - 10) < 1e-9);
	bed_lines(&s, text_str(&copy));
	assert_true(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_PCIE_REPLAYS) && fabs(rate - 10) < 1e-9);
	bed_line(&s, "{\"t\":65000000000,\"s\":0,\"slow\":true,\"rare\":65000000000,\"end\":3}");
	assert_true(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_PCIE_REPLAYS) && rate == 0);
	text_release(&copy);
	watch_state_release(&s);
	watch_state_release(&other);
}

/* A node of an older version reads these rows with the SLOW ones. */
static void test_rare_rows_of_an_older_node(void **unused)
{
	struct watch_state s = {0};
	double rate = -1;

	(void)unused;
	bed_begin(&s);
	for (int t = 5; t < 15; t += 5)
		bed_line(&s, "{\"t\":%d000000000,\"s\":0,\"slow\":true,\"v\":{\"3\":[%u,%d]},\"end\":3}", t,
			 CATALOGUE_GPU_PCIE_REPLAYS, 10 * t);
	assert_true(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_PCIE_REPLAYS) && rate == 10);
	bed_line(&s, "{\"t\":15000000000,\"s\":0,\"slow\":true,\"end\":3}");
	assert_true(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_PCIE_REPLAYS) && rate == 0);
	watch_state_release(&s);
}

static void test_ages(void **unused)
{
	struct watch_state s = {0};

	(void)unused;
	bed_begin(&s);
	assert_true(watch_age(&s, &s.entity[3], 0) < 0);
	bed_values(&s, 2, 3, "[%u,1]", CATALOGUE_GPU_POWER);
	bed_line(&s, "{\"t\":7000000000}");
	assert_true(watch_age(&s, &s.entity[3], 99) == 5);
	s.arrival_ns = 1000000000;
	assert_true(watch_age(&s, &s.entity[3], 4000000000ull) == 8);
	/* a reading of one GPU is not one of the others */
	bed_line(&s, "{\"e\":4,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"0000:2b:00.0\"}}");
	assert_true(watch_age(&s, &s.entity[4], 0) < 0);
	/* what belongs to the GPU is read with it */
	bed_line(&s, "{\"e\":5,\"s\":0,\"of\":4,\"scope\":\"nvlink\",\"labels\":{\"nvlink\":\"0\"}}");
	bed_values(&s, 9, 4, "[%u,1]", CATALOGUE_GPU_POWER);
	assert_true(watch_age(&s, &s.entity[5], 0) == 0);
	assert_true(watch_age(&s, &s.entity[3], 0) == 7);
	assert_true(watch_source_age(&s, 0, 0) < 0);
	bed_line(&s, "{\"t\":9000000000,\"s\":0,\"done\":true}");
	assert_true(watch_source_age(&s, 0, 0) == 0 && s.readings == 1);
	/* the wall clock may step; ages do not */
	bed_line(&s, "{\"t\":10000000000,\"wall\":5000}");
	assert_true(watch_wall(&s) == 5000);
	assert_true(watch_source_age(&s, 0, 0) == 1);
	watch_state_release(&s);
}

static void test_a_source_begins_again(void **unused)
{
	struct watch_state s = {0};
	double rate;

	(void)unused;
	bed_begin(&s);
	bed_line(&s, "{\"e\":4,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"0000:2b:00.0\"}}");
	bed_values(&s, 1, 3, "[%u,10]", CATALOGUE_GPU_SAMPLED_SETTING);
	bed_values(&s, 1, 4, "[%u,10]", CATALOGUE_GPU_SAMPLED_SETTING);
	bed_line(&s, "{\"e\":5,\"s\":0,\"of\":4,\"scope\":\"nvlink\",\"labels\":{\"nvlink\":\"0\"}}");
	bed_line(&s, "{\"s\":0,\"why\":\"NVML did not answer for 20 s\"}");
	assert_string_equal(s.source[0].why, "NVML did not answer for 20 s");
	bed_line(&s, "{\"s\":0,\"begin\":true}");
	assert_null(s.source[0].why);
	assert_null(watch_get(&s.entity[3], CATALOGUE_GPU_SAMPLED_SETTING));
	bed_line(&s, "{\"e\":3,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"UUID\":\"GPU-b\"}}");
	bed_values(&s, 9, 3, "[%u,20]", CATALOGUE_GPU_SAMPLED_SETTING);
	assert_false(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_SAMPLED_SETTING));
	assert_int_equal(s.entity[4].scope, METRIC_SCOPE_GPU);
	bed_line(&s, "{\"e\":5,\"s\":0,\"scope\":\"nvlink\",\"labels\":{}}");
	bed_line(&s, "{\"t\":9000000000,\"s\":0,\"done\":true}");
	assert_int_equal(s.entity[4].scope, METRIC_SCOPE_COUNT); /* it did not return */
	assert_int_equal(s.entity[5].scope, METRIC_SCOPE_COUNT); /* its part goes with it */
	assert_int_equal(s.of_scope[METRIC_SCOPE_GPU], 1);
	assert_string_equal(watch_label(&s.entity[3], "UUID"), "GPU-b");
	watch_state_release(&s);
}

static void test_the_node_restarts(void **unused)
{
	struct watch_state s = {0};

	(void)unused;
	bed_begin(&s);
	bed_values(&s, 1, 3, "[%u,10]", CATALOGUE_GPU_POWER);
	bed_header(&s, "boot-2", 1);
	assert_int_equal(s.restarts, 1);
	assert_int_equal(s.entity[3].scope, METRIC_SCOPE_COUNT);
	bed_header(&s, "boot-2", 1);
	assert_int_equal(s.restarts, 1);
	watch_state_release(&s);
}

/* A copy of a state makes an equal state, and changes nothing in the state itself. */
static void test_a_copy_is_equal(void **unused)
{
	struct watch_state s = {0}, other = {0};
	struct text first = {0}, second = {0};
	double rate = 0;

	(void)unused;
	bed_begin(&s);
	bed_line(&s, "{\"e\":5,\"s\":0,\"of\":3,\"scope\":\"nvlink\",\"labels\":{\"nvlink\":\"0\"}}");
	bed_line(&s, "{\"e\":1,\"s\":0,\"of\":3,\"scope\":\"process\",\"labels\":{\"pid\":\"7\"}}");
	bed_line(&s, "{\"e\":6,\"s\":0,\"scope\":\"quantum\",\"labels\":{}}");
	bed_values(&s, 1, 3, "[%u,10]", CATALOGUE_GPU_SAMPLED_SETTING);
	bed_line(
		&s,
		"{\"t\":5000000000,\"s\":0,\"slow\":true,\"v\":{\"3\":[%u,0.1]},\"x\":{\"3\":[%u,\"a \\\"b\\\\\"]},\"end\":3}",
		CATALOGUE_GPU_ENERGY, CATALOGUE_GPU_POWER);
	bed_values(&s, 6, 3, "[%u,15]", CATALOGUE_GPU_SAMPLED_SETTING);
	bed_line(&s, "{\"t\":6000000000,\"s\":0,\"done\":true}");
	bed_line(&s, "{\"s\":1,\"why\":\"it is stuck\"}");
	watch_state_write(&s, &first);
	bed_lines(&other, text_str(&first));
	watch_state_write(&other, &second);
	assert_string_equal(text_str(&first), text_str(&second));
	assert_string_equal(watch_why(&other.entity[3], CATALOGUE_GPU_POWER), "a \"b\\");
	bed_lines(&s, text_str(&first));
	assert_true(watch_rate(&rate, &s.entity[3], CATALOGUE_GPU_SAMPLED_SETTING));
	assert_true(fabs(rate - 5) < 1e-9);
	/* what a copy does not name is gone */
	bed_line(&s, "{\"e\":7,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"0000:3b:00.0\"}}");
	bed_lines(&s, text_str(&first));
	assert_int_equal(s.entity[7].scope, METRIC_SCOPE_COUNT);
	text_release(&first);
	text_release(&second);
	watch_state_release(&s);
	watch_state_release(&other);
}

static void test_other_versions(void **unused)
{
	struct watch_state s = {0};
	struct error err = {0};

	(void)unused;
	/* another order, a metric that this build does not know, and all others missing */
	bed_line(
		&s,
		"{\"watch\":1,\"node\":\"n\",\"boot\":\"b\",\"t\":1,\"wall\":1,\"interval\":1,\"new\":[],\"sources\":[\"gpu\","
		"\"new\"],\"metrics\":[\"assay_new_total\",\"assay_gpu_clock_held{reason=\\\"sync_boost\\\"}\","
		"\"assay_gpu_power_watts\"]}");
	bed_line(
		&s,
		"{\"e\":3,\"s\":0,\"scope\":\"gpu\",\"new\":1,\"labels\":{\"pci_bus_id\":\"0000:1b:00.0\",\"colour\":\"x\"}}");
	bed_line(&s, "{\"e\":4,\"s\":1,\"scope\":\"quantum\",\"labels\":{\"q\":\"1\"}}");
	bed_line(&s, "{\"t\":5,\"s\":0,\"v\":{\"3\":[0,7,1,1,2,250]},\"end\":3,\"new\":{}}");
	bed_line(&s, "{\"t\":5,\"s\":1,\"v\":{\"4\":[0,7]},\"end\":true}");
	bed_line(&s, "{\"fact\":\"new\",\"value\":1}");
	assert_true(watch_get(&s.entity[3], CATALOGUE_GPU_POWER)->value == 250);
	assert_true(watch_get(&s.entity[3], CATALOGUE_GPU_HELD_SYNC)->value == 1);
	assert_null(watch_get(&s.entity[3], CATALOGUE_GPU_TEMPERATURE));
	assert_string_equal(watch_label(&s.entity[3], "colour"), "x");
	assert_null(watch_get(&s.entity[4], CATALOGUE_GPU_POWER));
	watch_state_release(&s);
	assert_int_equal(watch_state_line(&s, "{\"watch\":2}", 11, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "version 2"));
}

static void test_hostile_lines(void **unused)
{
	static const char *const lines[] = {
		"",
		"x",
		"[]",
		"{",
		"{\"t\":1,\"t\":2}",
		"{\"gone\":-1}",
		"{\"gone\":\"x\"}",
		"{\"gone\":99999999}",
		"{\"e\":-1,\"s\":0,\"scope\":\"gpu\"}",
		"{\"e\":8192,\"s\":0,\"scope\":\"gpu\"}",
		"{\"e\":9,\"s\":0}",
		"{\"e\":9,\"scope\":\"gpu\"}",
		"{\"e\":9,\"s\":9,\"scope\":\"gpu\"}",
		"{\"e\":9,\"s\":0,\"scope\":\"gpu\",\"of\":77}",
		"{\"e\":9,\"s\":0,\"scope\":\"gpu\",\"of\":9}",
		"{\"e\":3,\"s\":0,\"scope\":\"cpu\"}",
		"{\"e\":3,\"labels\":{\"pci_bus_id\":\"other\"}}",
		"{\"e\":3,\"labels\":{\"pci_bus_id\":null}}",
		"{\"e\":3,\"labels\":{\"a b\":\"c\"}}",
		"{\"e\":3,\"labels\":{\"a\":1}}",
		"{\"e\":3,\"labels\":[]}",
		"{\"e\":3,\"labels\":{\"\":\"c\"}}",
		"{\"s\":0,\"why\":1}",
		"{\"s\":7,\"why\":\"x\"}",
		"{\"e\":77,\"why\":\"x\"}",
		"{\"s\":-1,\"begin\":true}",
		"{\"s\":0,\"v\":{}}",
		"{\"t\":0,\"s\":0}",
		"{\"t\":-5,\"s\":0}",
		"{\"t\":1.5,\"s\":0}",
		"{\"t\":5,\"s\":5}",
		"{\"t\":2000000000,\"s\":0,\"rare\":2000000000,\"end\":3}",
		"{\"t\":2000000000,\"s\":0,\"slow\":true,\"rare\":2000000001,\"end\":3}",
		"{\"t\":2000000000,\"s\":0,\"slow\":true,\"rare\":true,\"end\":3}",
		"{\"t\":5,\"s\":0,\"v\":[]}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"77\":[0,1]}}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"-3\":[0,1]}}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[0]}}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[0,\"x\"]}}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[-1,1]}}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[99999,1]}}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[0,1e999]}}",
		"{\"t\":2000000000,\"s\":0,\"x\":{\"3\":[0,1]}}",
		"{\"t\":2000000000,\"s\":1,\"v\":{\"3\":[0,1]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"3\":[0,1]}}",
		"{\"t\":2000000000,\"s\":0,\"end\":77}",
		"{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[\"0\",1]}}",
		"{\"t\":\"x\"}",
		"{\"t\":5,\"wall\":\"x\"}",
		"{\"watch\":1}",
		"{\"watch\":1,\"node\":\"\",\"boot\":\"b\",\"t\":1,\"wall\":1,\"interval\":1,\"sources\":[],\"metrics\":[\"a\"]}",
		"{\"watch\":1,\"node\":\"n\",\"boot\":\"b\",\"t\":1,\"wall\":1,\"interval\":0,\"sources\":[],\"metrics\":[\"a\"]}",
		"{\"watch\":1,\"node\":\"n\",\"boot\":\"b\",\"t\":1,\"wall\":1,\"interval\":1,\"sources\":[\"0\"],\"metrics\":[\"a\"]}",
		"{\"watch\":1,\"node\":\"n\",\"boot\":\"b\",\"t\":1,\"wall\":1,\"interval\":1,\"sources\":[],\"metrics\":[\"a b\"]}",
		"{\"watch\":1,\"node\":\"n\",\"boot\":\"b\",\"t\":1,\"wall\":1,\"interval\":1,\"sources\":[],\"metrics\":[]}",
	};
	struct watch_state s = {0};
	struct text before = {0}, after = {0};

	(void)unused;
	bed_begin(&s);
	bed_values(&s, 2, 3, "[%u,10]", CATALOGUE_GPU_POWER);
	watch_state_write(&s, &before);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct error err = {0};

		if (watch_state_line(&s, lines[i], strlen(lines[i]), &err) != STATUS_BAD_INPUT)
			fail_msg("accepted: %s", lines[i]);
		assert_true(*err.text);
		text_release(&after);
		watch_state_write(&s, &after);
		assert_string_equal(text_str(&before), text_str(&after));
	}
	text_release(&before);
	text_release(&after);
	watch_state_release(&s);
}

static void test_a_stream_without_header(void **unused)
{
	struct watch_state s = {0};
	struct error err = {0};

	(void)unused;
	assert_int_equal(watch_state_line(&s, "{\"t\":1}", 7, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "header"));
	watch_state_release(&s);
}

static void test_text_is_cleaned(void **unused)
{
	struct watch_state s = {0};
	char line[2048], longer[1200];

	(void)unused;
	bed_begin(&s);
	bed_line(
		&s,
		"{\"e\":3,\"labels\":{\"container\":\"a\\u001b[31mb\\u202ec\\u200bd\\u0085e\",\"device\":\"x\xff\"}}");
	assert_string_equal(watch_label(&s.entity[3], "container"), "a [31mb cd e");
	assert_string_equal(watch_label(&s.entity[3], "device"), "x\xef\xbf\xbd");
	bed_line(&s, "{\"e\":3,\"labels\":{\"container\":\"a\\u00adb\\u1160c\\ufff9d\\ufffbe\\u3164f\\u034fg\\ufe0fh\\udb40\\udc41i\\u2064j\"}}");
	assert_string_equal(watch_label(&s.entity[3], "container"), "abcdefghij");
	bed_line(&s, "{\"e\":3,\"labels\":{\"container\":\"\\u00ac\\u1161\\ufffc\"}}"); /* their visible neighbours */
	assert_string_equal(watch_label(&s.entity[3], "container"), "\xc2\xac\xe1\x85\xa1\xef\xbf\xbc");
	memset(longer, 'y', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	snprintf(line, sizeof(line), "{\"e\":3,\"labels\":{\"pod\":\"%s\"}}", longer);
	bed_line(&s, "%s", line);
	assert_int_equal(strlen(watch_label(&s.entity[3], "pod")), WATCH_TEXT_MAX - 1);
	bed_line(&s, "{\"e\":3,\"labels\":{\"pod\":null}}");
	assert_null(watch_label(&s.entity[3], "pod"));
	watch_state_release(&s);
}

static void test_limits(void **unused)
{
	struct watch_state s = {0};
	struct error err = {0};
	char line[WATCH_LINE_MAX + 2];

	(void)unused;
	bed_begin(&s);
	for (unsigned i = 4; i < 3 + metric_scope_row(METRIC_SCOPE_GPU)->most; i++)
		bed_line(&s, "{\"e\":%u,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"%u\"}}", i, i);
	assert_int_equal(watch_state_line(&s, "{\"e\":100,\"s\":0,\"scope\":\"gpu\"}", 29, &err),
			 STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "more than 64 entities of scope gpu"));
	bed_line(&s, "{\"gone\":4}");
	bed_line(&s, "{\"e\":100,\"s\":0,\"scope\":\"gpu\"}");
	/* more labels than a build knows are left out */
	for (unsigned i = 0; i < 40; i++)
		bed_line(&s, "{\"e\":100,\"labels\":{\"l%u\":\"v\"}}", i);
	assert_int_equal(s.entity[100].label_count, WATCH_LABELS_MAX);
	memset(line, ' ', sizeof(line));
	err = (struct error){0};
	assert_int_equal(watch_state_line(&s, line, sizeof(line), &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "65536 bytes"));
	watch_state_release(&s);
	assert_int_equal(s.bytes, 0);
}

static void test_memory_is_bounded(void **unused)
{
	struct watch_state s = {0};
	struct reading_line reading;
	struct error err = {0};
	enum status st = STATUS_OK;
	char text[256], line[8192];
	size_t size;

	(void)unused;
	bed_begin(&s);
	memset(text, 'z', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (unsigned i = 10; !st && i < WATCH_ENTITIES_MAX; i++) {
		int n = snprintf(line, sizeof(line), "{\"e\":%u,\"s\":0,\"scope\":\"quantum\",\"labels\":{",
				 i);

		for (unsigned k = 0; k < WATCH_LABELS_MAX; k++)
			n += snprintf(line + n, sizeof(line) - (size_t)n, "%s\"l%u\":\"%s\"", k ? "," : "", k,
				      text);
		n += snprintf(line + n, sizeof(line) - (size_t)n, "}}");
		st = watch_state_line(&s, line, (size_t)n, &err);
	}
	assert_int_equal(st, STATUS_NO_RESOURCE);
	assert_non_null(strstr(err.text, "8 MB"));
	/* readings are refused too, also those that need no JSON tree */
	size = (size_t)snprintf(line, sizeof(line), "{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[%u,1]},\"end\":3}",
				CATALOGUE_GPU_POWER);
	assert_true(reading_line_parse(&reading, line, size));
	assert_false(watch_state_reading(&s, &reading));
	err = (struct error){0};
	assert_int_equal(watch_state_line(&s, line, size, &err), STATUS_NO_RESOURCE);
	assert_non_null(strstr(err.text, "8 MB"));
	watch_state_release(&s);
}

static void test_gone_takes_its_parts_along(void **unused)
{
	struct watch_state s = {0};

	(void)unused;
	bed_begin(&s);
	bed_line(&s, "{\"e\":5,\"s\":0,\"of\":3,\"scope\":\"nvlink\",\"labels\":{\"nvlink\":\"0\"}}");
	bed_line(&s, "{\"gone\":3}");
	assert_int_equal(s.entity[3].scope, METRIC_SCOPE_COUNT);
	assert_int_equal(s.entity[5].scope, METRIC_SCOPE_COUNT);
	bed_line(&s, "{\"gone\":3}");
	watch_state_release(&s);
}

static void test_history(void **unused)
{
	struct watch_state s = {0};
	const struct watch_history *h;

	(void)unused;
	bed_begin(&s);
	watch_state_keep(&s, CATALOGUE_GPU_POWER);
	watch_state_keep(&s, CATALOGUE_GPU_SAMPLED_SETTING);
	assert_null(watch_history(&s.entity[3], CATALOGUE_GPU_POWER));
	for (int t = 1; t <= WATCH_HISTORY + 5; t++)
		bed_values(&s, t, 3, "[%u,%d,%u,%d]", CATALOGUE_GPU_POWER, t, CATALOGUE_GPU_SAMPLED_SETTING,
			   2 * t);
	h = watch_history(&s.entity[3], CATALOGUE_GPU_POWER);
	assert_int_equal(h->count, WATCH_HISTORY);
	assert_true(watch_history_at(h, 0) == 6 &&
		    watch_history_at(h, WATCH_HISTORY - 1) == WATCH_HISTORY + 5);
	h = watch_history(&s.entity[3], CATALOGUE_GPU_SAMPLED_SETTING);
	assert_true(watch_history_at(h, WATCH_HISTORY - 1) == 2);
	bed_values(&s, 1000, 3, "[%u,null]", CATALOGUE_GPU_POWER);
	h = watch_history(&s.entity[3], CATALOGUE_GPU_POWER);
	assert_true(isnan(watch_history_at(h, WATCH_HISTORY - 1)));
	assert_null(watch_history(&s.entity[3], CATALOGUE_GPU_TEMPERATURE));
	watch_state_release(&s);
}

/* Takes the line, and its equal with a space, which only JSON allows. Both states are the same afterwards. */
static void take_both(struct watch_state *plain, struct watch_state *json, const char *line)
{
	struct reading_line reading;
	struct text first = {0}, second = {0};

	if (!reading_line_parse(&reading, line, strlen(line)))
		fail_msg("not parsed: %s", line);
	bed_line(plain, "%s", line);
	bed_line(json, "{ %s", line + 1);
	watch_state_write(plain, &first);
	watch_state_write(json, &second);
	assert_string_equal(text_str(&first), text_str(&second));
	assert_int_equal(plain->readings, json->readings);
	text_release(&first);
	text_release(&second);
}

static void test_readings_without_a_tree(void **unused)
{
	static const char *const lines[] = {
		"{\"t\":2000000000,\"s\":0,\"v\":{\"3\":[%u,69,%u,-0.5e-3],\"5\":[%u,1000]},\"end\":3}",
		"{\"t\":3000000000,\"s\":0,\"v\":{\"3\":[%u,null,%u,12345.678901],\"5\":[%u,2000]},\"end\":3,\"alone\":true}",
		"{\"t\":4000000000,\"s\":0,\"v\":{\"3\":[%u,70,%u,-0],\"5\":[%u,123456789012345]},\"end\":true,\"slow\":true,\"rare\":4000000000}",
		"{\"t\":5000000000,\"s\":0,\"v\":{\"3\":[%u,0,%u,1E2],\"5\":[%u,7]}}",
	};
	static const char *const empty[] = {
		"{\"t\":6000000000,\"s\":0,\"end\":3,\"slow\":true}", "{\"t\":7000000000,\"s\":0,\"v\":{},\"end\":true}",
		"{\"t\":8000000000,\"s\":0,\"v\":{\"3\":[]},\"end\":5}", "{\"t\":9000000000,\"s\":0,\"done\":true}"};
	struct watch_state plain = {0}, json = {0};
	struct watch_state *both[] = {&plain, &json};
	char line[512];
	double first, second;
	unsigned rates = 0;
	bool has_rate;

	(void)unused;
	for (int i = 0; i < 2; i++) {
		bed_begin(both[i]);
		bed_line(both[i], "{\"e\":5,\"s\":0,\"of\":3,\"scope\":\"nvlink\",\"labels\":{\"pci_bus_id\":\"0000:1b:00.0\",\"nvlink\":\"0\"}}");
		bed_line(both[i], "{\"t\":1000000000,\"s\":0,\"x\":{\"3\":[%u,\"no permission\"]},\"end\":3}", CATALOGUE_GPU_POWER);
	}
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(line, sizeof(line), lines[i], CATALOGUE_GPU_POWER, CATALOGUE_GPU_TEMPERATURE, CATALOGUE_NVLINK_TX);
		take_both(&plain, &json, line);
		has_rate = watch_rate(&first, &plain.entity[5], CATALOGUE_NVLINK_TX);
		assert_int_equal(has_rate, watch_rate(&second, &json.entity[5], CATALOGUE_NVLINK_TX));
		if (has_rate)
			assert_true(first == second);
		rates += has_rate;
	}
	assert_true(rates > 0);
	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++)
		take_both(&plain, &json, empty[i]);
	watch_state_release(&plain);
	watch_state_release(&json);
}

/* Lines that are no JSON, are wrong, or have another form: the parser of JSON decides about them. */
static void test_other_forms_are_left_to_json(void **unused)
{
	static const char *const lines[] = {
		"", "{", "{}", "{\"t\":1}", "{\"t\":0,\"s\":0}", "{\"t\":1,\"s\":0", "{\"t\":1,\"s\":0}}", "{\"t\":1,\"s\":0} ",
		"{\"t\":01,\"s\":0}", "{\"t\":1234567890123456789,\"s\":0}", "{\"t\":-1,\"s\":0}", "{\"t\":1.5,\"s\":0}",
		"{\"t\":1,\"s\":\"0\"}", "{\"t\":1,\"s\":4294967295}", "{\"t\":1,\"s\":0,\"end\":false}", "{\"t\":1,\"s\":0,\"slow\":false}",
		"{\"t\":1,\"s\":0,\"done\":true,\"end\":true}", "{\"t\":1,\"s\":0,\"s\":0}", "{\"t\":1,\"s\":0,\"rare\":1}",
		"{\"t\":1,\"s\":0,\"slow\":true,\"rare\":2}", "{\"t\":1,\"s\":0,\"v\":[]}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"3\":[1,2],}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,2,]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"3\":[1,2],\"3\":[1,3]}}", "{\"t\":1,\"s\":0,\"v\":{\"5\":[1,2],\"3\":[1,3]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"03\":[1,2]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,02]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,2.]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"3\":[1,.5]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,-]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,1e]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"3\":[1,1e+]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,1e999]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,nan]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"3\":[1,true]}}", "{\"t\":1,\"s\":0,\"v\":{\"3\":[1,+1]}}", "{\"t\":1,\"s\":0,\"x\":{\"3\":[1,\"a\"]}}",
		"{\"t\":1,\"s\":0,\"v\":{\"3\":[1,1234567890123456]}}", "{\"t\": 1,\"s\":0}", "{\"s\":0,\"t\":1}"};
	struct reading_line reading;

	(void)unused;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (reading_line_parse(&reading, lines[i], strlen(lines[i])))
			fail_msg("parsed: %s", lines[i]);
}

/* A line with as many values and entities as it may have, and one with more. */
static void test_a_reading_has_a_largest_size(void **unused)
{
	for (unsigned over = 0; over < 2; over++) {
		struct text lists = {0}, values = {0};
		struct reading_line reading;

		(void)unused;
		text_add(&lists, "{\"t\":1,\"s\":0,\"v\":{");
		for (unsigned i = 0; i < READING_LISTS_MAX + over; i++)
			text_addf(&lists, "%s\"%u\":[0,1]", i ? "," : "", i);
		text_add(&lists, "}}");
		text_add(&values, "{\"t\":1,\"s\":0,\"v\":{\"0\":[");
		for (unsigned i = 0; i < READING_VALUES_MAX + over; i++)
			text_addf(&values, "%s%u,1", i ? "," : "", i);
		text_add(&values, "]}}");
		assert_int_equal(reading_line_parse(&reading, text_str(&lists), lists.size), !over);
		assert_int_equal(reading_line_parse(&reading, text_str(&values), values.size), !over);
		text_release(&lists);
		text_release(&values);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_catalogue__rows_are_complete),
		cmocka_unit_test(test_catalogue__labels_of_a_page_are_declared),
		cmocka_unit_test(test_catalogue__names_what_dcgm_has_more),
		cmocka_unit_test(test_values_and_absence),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_slow_rows_have_their_own_pace),
		cmocka_unit_test(test_rare_rows_have_their_own_pace),
		cmocka_unit_test(test_rare_rows_of_an_older_node),
		cmocka_unit_test(test_ages),
		cmocka_unit_test(test_a_source_begins_again),
		cmocka_unit_test(test_the_node_restarts),
		cmocka_unit_test(test_a_copy_is_equal),
		cmocka_unit_test(test_other_versions),
		cmocka_unit_test(test_hostile_lines),
		cmocka_unit_test(test_a_stream_without_header),
		cmocka_unit_test(test_text_is_cleaned),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_gone_takes_its_parts_along),
		cmocka_unit_test(test_history),
		cmocka_unit_test(test_readings_without_a_tree),
		cmocka_unit_test(test_other_forms_are_left_to_json),
		cmocka_unit_test(test_a_reading_has_a_largest_size),
	};

	return cmocka_run_group_tests_name("watch_state", tests, NULL, NULL);
}
