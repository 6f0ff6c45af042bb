/* SPDX-License-Identifier: Apache-2.0 */
/* Pages for Prometheus: every row once under its names, nothing that is absent or old, limits, labels that cannot break a
 * page, and OpenMetrics' rules. */
#include "test.h"

#include "core/file/file.h"
#include "unit/watch_bed.h"
#include "unit/watch_made_up.h"
#include "watch/page/page.h"

static struct machine_stream machine;

static void take(struct watch_state *s, const struct text *lines)
{
	bed_lines(s, text_str(lines));
}

static void machine_state(struct watch_state *s, unsigned gpus)
{
	struct text lines = {0};

	machine_begin(&machine, &lines, gpus);
	machine_reading(&machine, &lines, 0);
	machine_reading(&machine, &lines, 1);
	take(s, &lines);
	text_release(&lines);
}

/* Owner: caller. */
static char *page_of(const struct watch_state *s, enum page_format format, enum page_names names)
{
	const struct page_spec spec = {.names = names};
	struct page_own own = {0};
	struct text out = {0};

	for (int row = PAGE_OWN_FIRST; row < CATALOGUE_COUNT; row++)
		page_own_set(&own, (enum catalogue)row, 1);
	page_write(&out, format, s, &spec, &own);
	assert_false(out.failed);
	return out.data;
}

static size_t count_of(const char *text, const char *word)
{
	size_t count = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		count++;
	return count;
}

/* Series of a name: lines that begin with it and a brace or blank. */
static size_t series_of(const char *page, const char *name)
{
	char braced[200], plain[200];

	snprintf(braced, sizeof(braced), "\n%s{", name);
	snprintf(plain, sizeof(plain), "\n%s ", name);
	return count_of(page, braced) + count_of(page, plain);
}

static void test_page__every_row_has_its_series(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	machine_state(&s, 8);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_BOTH);
	for (int i = 0; i < CATALOGUE_COUNT; i++) {
		const struct catalogue_row *r = catalogue_row((enum catalogue)i);
		char type[200];

		if (!series_of(page, r->name))
			fail_msg("no series of %s", r->name);
		if (r->dcgm.name && series_of(page, r->dcgm.name) != 8)
			fail_msg("%zu series of %s", series_of(page, r->dcgm.name), r->dcgm.name);
		snprintf(type, sizeof(type), "\n# TYPE %s ", r->name);
		assert_int_equal(count_of(page, type), 1);
	}
	assert_int_equal(series_of(page, "assay_nvlink_transmit_bytes_total"), 8 * MACHINE_LINKS);
	free(page);
	watch_state_release(&s);
}

/* The values of the exporter are kept by row: its rows are the last ones, and one that is not set is not on the page. */
static void test_page__the_exporters_rows_are_the_last_ones(void **state)
{
	const struct page_spec spec = {.names = PAGE_NAMES_ASSAY};
	struct watch_state s = {0};
	struct page_own own = {0};
	struct text out = {0};

	(void)state;
	assert_int_equal(catalogue_first(METRIC_SCOPE_EXPORTER), PAGE_OWN_FIRST);
	assert_int_equal(catalogue_scope_rows(METRIC_SCOPE_EXPORTER), PAGE_OWN_COUNT);
	page_own_set(&own, CATALOGUE_EXPORTER_SCRAPES, 12);
	page_write(&out, PAGE_TEXT, &s, &spec, &own);
	assert_non_null(strstr(out.data, "# TYPE assay_exporter_scrapes_total counter\nassay_exporter_scrapes_total 12\n"));
	assert_null(strstr(out.data, "assay_exporter_connections"));
	assert_null(page_own_get(&own, CATALOGUE_EXPORTER_CONNECTIONS));
	assert_non_null(strstr(out.data, "\nassay_exporter_series 4\n"));
	text_release(&out);
}

static void test_page__dcgm_has_its_names_units_and_labels(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	machine_state(&s, 2);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_DCGM);
	assert_non_null(strstr(page, "\nDCGM_FI_DEV_GPU_UTIL{pci_bus_id=\"00000000:1C:00.0\",gpu=\"1\",UUID=\"GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e801\","
				     "device=\"nvidia1\",modelName=\"NVIDIA H100 80GB HBM3\",DCGM_FI_DRIVER_VERSION=\"570.86.15\",hostname=\"gpu7\"} 51\n"));
	assert_non_null(strstr(page, "hostname=\"gpu7\"} 300000\n")); /* mJ of 300 J, one second at 300 W */
	assert_non_null(strstr(page, "# TYPE DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS counter\n"));
	assert_null(strstr(page, "\nassay_gpu_"));
	assert_null(strstr(page, "9223372036854775")); /* DCGM's sentinel */
	free(page);
	watch_state_release(&s);
}

static void test_page__default_fields_of_dcgm_are_given_or_explained(void **state)
{
	struct error err = {0};
	char *fields = NULL, *line, *rest;
	size_t size, count = 0;

	(void)state;
	assert_int_equal(file_read(&fields, &size, SOURCE_DIR "/tests/data/watch/dcgm-default-fields", 1 << 16, &err), STATUS_OK);
	for (line = strtok_r(fields, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const char *name, *why;
		bool found = *line == '#';

		for (int i = 0; i < CATALOGUE_COUNT && !found; i++) {
			const struct dcgm_metric *d = &catalogue_row((enum catalogue)i)->dcgm;

			found = d->name && !strcmp(d->name, line) && d->by_default;
		}
		for (unsigned i = 0; !found && (name = dcgm_without(i, &why)); i++)
			found = !strcmp(name, line) && *why;
		if (!found)
			fail_msg("%s is neither given nor explained", line);
		count++;
	}
	assert_true(count > 20);
	free(fields);
}

static void test_page__absent_is_absent(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	bed_line(&s, "{\"t\":2,\"s\":0,\"v\":{\"3\":[%d,312.5,%d,null]},\"end\":true}", CATALOGUE_GPU_POWER, CATALOGUE_GPU_TEMPERATURE);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_BOTH);
	assert_non_null(strstr(page, "\nassay_gpu_power_watts{gpu=\"0\"} 312.5\n"));
	assert_null(strstr(page, "assay_gpu_temperature_celsius"));
	assert_null(strstr(page, "DCGM_FI_DEV_GPU_TEMP"));
	free(page);
	watch_state_release(&s);
}

static void test_page__a_silent_gpu_is_down_and_has_no_values(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	bed_line(&s, "{\"t\":2,\"s\":0,\"v\":{\"3\":[%d,1,%d,312.5]},\"end\":true}", CATALOGUE_GPU_UP, CATALOGUE_GPU_POWER);
	bed_line(&s, "{\"t\":2500000000,\"s\":1,\"end\":true}");
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_non_null(strstr(page, "\nassay_gpu_up{gpu=\"0\"} 1\n"));
	assert_non_null(strstr(page, "assay_source_up{source=\"gpu\"} 1\n"));
	free(page);
	bed_line(&s, "{\"t\":9000000000,\"s\":1,\"end\":true}"); /* the host goes on */
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_non_null(strstr(page, "\nassay_gpu_up{gpu=\"0\"} 0\n"));
	assert_null(strstr(page, "assay_gpu_power_watts"));
	assert_non_null(strstr(page, "assay_source_up{source=\"gpu\"} 0\n"));
	assert_non_null(strstr(page, "assay_source_up{source=\"host\"} 1\n"));
	assert_non_null(strstr(page, "assay_source_age_seconds{source=\"gpu\"} 8.99"));
	assert_non_null(strstr(page, "\nassay_gpu_info{"));
	free(page);
	bed_line(&s, "{\"t\":9100000000,\"s\":0,\"v\":{\"3\":[%d,1,%d,300]},\"end\":true}", CATALOGUE_GPU_UP, CATALOGUE_GPU_POWER);
	bed_line(&s, "{\"s\":0,\"why\":\"stuck\"}");
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_non_null(strstr(page, "assay_source_up{source=\"gpu\"} 0\n")); /* it says so itself */
	free(page);
	watch_state_release(&s);
}

/* A GPU that was found in /sys but whose driver never answered. */
static void test_page__a_gpu_that_never_answered_is_down(void **state)
{
	struct page_spec spec = {.local_ns = 2000000000, .begun_ns = 1};
	struct watch_state s = {0};
	struct page_own own = {0};
	struct text out = {0};

	(void)state;
	bed_begin(&s);
	page_write(&out, PAGE_TEXT, &s, &spec, &own);
	assert_null(strstr(out.data, "assay_gpu_up")); /* too early to say */
	text_release(&out);
	spec.local_ns = 20000000000;
	page_write(&out, PAGE_TEXT, &s, &spec, &own);
	assert_non_null(strstr(out.data, "assay_gpu_up{gpu=\"0\"} 0\n"));
	text_release(&out);
	watch_state_release(&s);
}

/* SLOW rows are read every five seconds and stay as long. */
static void test_page__slow_rows_stay_between_their_readings(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	bed_line(&s, "{\"t\":2,\"s\":0,\"v\":{\"3\":[%d,500]},\"end\":true,\"slow\":true}", CATALOGUE_GPU_ENERGY);
	assert_int_equal(catalogue_row(CATALOGUE_GPU_ENERGY)->pace, METRIC_SLOW);
	bed_line(&s, "{\"t\":14000000000,\"s\":0,\"v\":{\"3\":[%d,312]},\"end\":true}", CATALOGUE_GPU_POWER);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_non_null(strstr(page, "assay_gpu_energy_joules_total{gpu=\"0\"} 500\n"));
	free(page);
	bed_line(&s, "{\"t\":16000000000,\"s\":0,\"v\":{\"3\":[%d,312]},\"end\":true}", CATALOGUE_GPU_POWER);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_null(strstr(page, "assay_gpu_energy_joules_total"));
	assert_non_null(strstr(page, "assay_gpu_power_watts{gpu=\"0\"} 312\n"));
	free(page);
	watch_state_release(&s);
}

/* RARE rows are read every thirty seconds and stay as long. */
static void test_page__rare_rows_stay_between_their_readings(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	bed_line(&s, "{\"t\":2,\"s\":0,\"v\":{\"3\":[%d,7]},\"end\":true,\"slow\":true,\"rare\":2}",
		 CATALOGUE_GPU_PCIE_REPLAYS);
	bed_line(&s, "{\"t\":89000000000,\"s\":0,\"end\":true,\"slow\":true}");
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_non_null(strstr(page, "assay_gpu_pcie_replays_total{gpu=\"0\"} 7\n"));
	free(page);
	bed_line(&s, "{\"t\":91000000000,\"s\":0,\"end\":true,\"slow\":true}");
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_null(strstr(page, "assay_gpu_pcie_replays_total"));
	free(page);
	watch_state_release(&s);
}

static void test_page__the_largest_processes_stay(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	for (int i = 0; i < 20; i++) {
		bed_line(&s, "{\"e\":%d,\"s\":0,\"scope\":\"process\",\"of\":3,\"labels\":{\"pci_bus_id\":\"0000:1b:00.0\",\"gpu\":\"0\",\"pid\":\"%d\",\"comm\":\"train\"}}",
			 10 + i, 100 + i);
		bed_line(&s, "{\"t\":2,\"s\":0,\"v\":{\"%d\":[%d,%d]}}", 10 + i, CATALOGUE_PROCESS_MEMORY, 1000 + i);
	}
	bed_line(&s, "{\"t\":2,\"s\":0,\"end\":true}");
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_int_equal(series_of(page, "assay_process_gpu_memory_bytes"), 8);
	assert_non_null(strstr(page, "assay_process_gpu_memory_bytes{gpu=\"0\",pid=\"119\",comm=\"train\"} 1019\n"));
	assert_null(strstr(page, "pid=\"111\""));
	assert_non_null(strstr(page, "assay_exporter_series_left_out{scope=\"process\"} 12\n"));
	free(page);
	watch_state_release(&s);
}

/* The page has room for all instances that a GPU can have, and for no more. */
static void test_page__all_instances_of_a_gpu_stay(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	for (int i = 0; i <= METRIC_GPU_INSTANCES_MOST; i++) {
		bed_line(&s, "{\"e\":%d,\"s\":0,\"scope\":\"gpu_instance\",\"of\":3,\"labels\":{\"pci_bus_id\":\"0000:1b:00.0\",\"gpu\":\"0\",\"GPU_I_ID\":\"%d\",\"GPU_C_ID\":\"0\"}}",
			 10 + i, 7 + i);
		bed_line(&s, "{\"t\":2,\"s\":0,\"v\":{\"%d\":[%d,1000]}}", 10 + i, CATALOGUE_INSTANCE_MEMORY_USED);
	}
	bed_line(&s, "{\"t\":2,\"s\":0,\"end\":true}");
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_int_equal(METRIC_GPU_INSTANCES_MOST, 7);
	assert_int_equal(series_of(page, "assay_gpu_instance_memory_used_bytes"), METRIC_GPU_INSTANCES_MOST);
	assert_non_null(strstr(page, "assay_exporter_series_left_out{scope=\"gpu_instance\"} 1\n"));
	free(page);
	watch_state_release(&s);
}

static void test_page__a_label_cannot_break_the_page(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	bed_line(&s, "{\"e\":5,\"s\":1,\"scope\":\"interface\",\"labels\":{\"interface\":\"a\\\"b\\\\c\"}}");
	bed_line(&s, "{\"t\":2,\"s\":1,\"v\":{\"5\":[%d,1]},\"end\":true}", CATALOGUE_INTERFACE_UP);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_non_null(strstr(page, "assay_interface_up{interface=\"a\\\"b\\\\c\"} 1\n"));
	free(page);
	watch_state_release(&s);
}

static void test_page__a_long_label_is_cut_between_characters(void **state)
{
	struct watch_state s = {0};
	char name[200] = "x", *page, *at;

	(void)state;
	for (int i = 1; i < 199; i += 2)
		memcpy(name + i, "\xc3\xa9", 3); /* e acute: 128 bytes would end within one */
	bed_begin(&s);
	bed_line(&s, "{\"e\":5,\"s\":1,\"scope\":\"interface\",\"labels\":{\"interface\":\"%s\"}}", name);
	bed_line(&s, "{\"t\":2,\"s\":1,\"v\":{\"5\":[%d,1]},\"end\":true}", CATALOGUE_INTERFACE_UP);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	at = strstr(page, "assay_interface_up{interface=\"");
	assert_non_null(at);
	at += strlen("assay_interface_up{interface=\"");
	assert_int_equal(strcspn(at, "\""), 127);
	free(page);
	watch_state_release(&s);
}

/* Prometheus refuses a page with the same series twice. */
static void test_page__equal_series_appear_once(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_begin(&s);
	bed_line(&s, "{\"e\":5,\"s\":1,\"scope\":\"disk\",\"labels\":{\"disk\":\"sda\"}}");
	bed_line(&s, "{\"e\":6,\"s\":1,\"scope\":\"disk\",\"labels\":{\"disk\":\"sda\"}}");
	bed_line(&s, "{\"t\":2,\"s\":1,\"v\":{\"5\":[%d,1],\"6\":[%d,2]},\"end\":true}", CATALOGUE_DISK_READ, CATALOGUE_DISK_READ);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_int_equal(series_of(page, "assay_disk_read_bytes_total"), 1);
	assert_non_null(strstr(page, "assay_disk_read_bytes_total{disk=\"sda\"} 2\n"));
	free(page);
	watch_state_release(&s);
}

static void test_page__openmetrics(void **state)
{
	struct watch_state s = {0};
	char *page;
	size_t size;

	(void)state;
	machine_state(&s, 1);
	page = page_of(&s, PAGE_OPENMETRICS, PAGE_NAMES_BOTH);
	size = strlen(page);
	assert_string_equal(page + size - 6, "# EOF\n");
	assert_non_null(strstr(page, "# TYPE assay_gpu_energy_joules counter\n# UNIT assay_gpu_energy_joules joules\nassay_gpu_energy_joules_total{"));
	assert_non_null(strstr(page, "# UNIT assay_gpu_power_watts watts\n"));
	assert_non_null(strstr(page, "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION unknown\n"));
	assert_null(strstr(page, "_total counter\n"));
	free(page);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_BOTH);
	assert_non_null(strstr(page, "# TYPE assay_gpu_energy_joules_total counter\n"));
	assert_null(strstr(page, "# EOF"));
	assert_null(strstr(page, "# UNIT"));
	free(page);
	watch_state_release(&s);
}

static void test_page__the_number_of_series_is_stated_and_bounded(void **state)
{
	struct watch_state s = {0};
	size_t lines = 0, heads;
	char *page, *at, number[64];

	(void)state;
	machine_state(&s, 8);
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_BOTH);
	for (at = page; (at = strchr(at, '\n')); at++)
		lines++;
	heads = count_of(page, "# HELP ") + count_of(page, "# TYPE ");
	snprintf(number, sizeof(number), "\nassay_exporter_series %zu\n", lines - heads);
	assert_non_null(strstr(page, number));
	assert_true(lines - heads < page_series_most(8));
	free(page);
	watch_state_release(&s);
}

/* What 8 GPUs send with every row of the catalogue, without compression. end2end/exporter.sh holds the compressed page
 * against its target. */
/* Plain text, with 18 NVLinks on each GPU. docs/TARGETS.md has these sizes, and those of compressed pages, which end2end/exporter.sh holds. */
static void test_page__eight_gpus_fit(void **state)
{
	static const size_t most[] = {[PAGE_NAMES_ASSAY] = 75000, [PAGE_NAMES_DCGM] = 75000, [PAGE_NAMES_BOTH] = 145000};
	struct watch_state s = {0};
	char *page;

	(void)state;
	machine_state(&s, 8);
	for (size_t names = 0; names < sizeof(most) / sizeof(most[0]); names++) {
		page = page_of(&s, PAGE_TEXT, (enum page_names)names);
		print_message("# %s: %zu bytes\n", page_names_words[names], strlen(page));
		assert_in_range(strlen(page), most[names] / 2, most[names]);
		free(page);
	}
	watch_state_release(&s);
}

/* A machine without GPUs: the source says why it gives nothing, and is not down. */
static void test_page__a_source_with_nothing_to_read_is_not_down(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	bed_header(&s, "boot-1", 1);
	bed_line(&s, "{\"t\":2,\"s\":0,\"end\":true}");
	bed_line(&s, "{\"t\":2,\"s\":1,\"end\":true}");
	bed_line(&s, "{\"s\":0,\"why\":\"no driver\"}");
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_null(strstr(page, "source=\"gpu\""));
	assert_non_null(strstr(page, "assay_source_up{source=\"host\"} 1\n"));
	free(page);
	bed_line(&s, BED_GPU); /* with a GPU it is */
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_ASSAY);
	assert_non_null(strstr(page, "assay_source_up{source=\"gpu\"} 0\n"));
	free(page);
	watch_state_release(&s);
}

static void test_page__an_empty_state_has_the_exporters_rows_only(void **state)
{
	struct watch_state s = {0};
	char *page;

	(void)state;
	page = page_of(&s, PAGE_TEXT, PAGE_NAMES_BOTH);
	assert_non_null(strstr(page, "assay_build_info{version=\""));
	assert_null(strstr(page, "assay_gpu_"));
	assert_null(strstr(page, "assay_source_up"));
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_page__every_row_has_its_series),
		cmocka_unit_test(test_page__the_exporters_rows_are_the_last_ones),
		cmocka_unit_test(test_page__dcgm_has_its_names_units_and_labels),
		cmocka_unit_test(test_page__default_fields_of_dcgm_are_given_or_explained),
		cmocka_unit_test(test_page__absent_is_absent),
		cmocka_unit_test(test_page__a_silent_gpu_is_down_and_has_no_values),
		cmocka_unit_test(test_page__a_gpu_that_never_answered_is_down),
		cmocka_unit_test(test_page__slow_rows_stay_between_their_readings),
		cmocka_unit_test(test_page__rare_rows_stay_between_their_readings),
		cmocka_unit_test(test_page__the_largest_processes_stay),
		cmocka_unit_test(test_page__all_instances_of_a_gpu_stay),
		cmocka_unit_test(test_page__a_label_cannot_break_the_page),
		cmocka_unit_test(test_page__a_long_label_is_cut_between_characters),
		cmocka_unit_test(test_page__equal_series_appear_once),
		cmocka_unit_test(test_page__openmetrics),
		cmocka_unit_test(test_page__the_number_of_series_is_stated_and_bounded),
		cmocka_unit_test(test_page__eight_gpus_fit),
		cmocka_unit_test(test_page__a_source_with_nothing_to_read_is_not_down),
		cmocka_unit_test(test_page__an_empty_state_has_the_exporters_rows_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
