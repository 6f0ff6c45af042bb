/* SPDX-License-Identifier: Apache-2.0 */
/* The drawing code, the roofline, the files that report_write makes, the modules for PNG and PDF.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "report/plot/label_places.h"
#include "report/files/merge.h"
#include "core/process/module.h"
#include "report/plot/plot.h"
#include "report/plot/roofline.h"
#include "report_sample.h"

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/assay-test-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static const char *in_folder(const char *name)
{
	static char path[160];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void draw(struct canvas *c, const char *const *names, size_t count, unsigned *left_out)
{
	struct roofline r = {0};

	for (size_t i = 0; i < count; i++) {
		struct sample s;
		struct view v;

		sample_load(&s, names[i]);
		assert_int_equal(view_build(&v, &s.in, NULL), STATUS_OK);
		roofline_add(&r, &v);
		view_release(&v);
		sample_release(&s);
	}
	assert_false(r.failed);
	canvas_init(c, 960, 600);
	roofline_draw(c, &r, left_out);
	assert_false(c->failed);
	roofline_release(&r);
}

static void test_report_plot__the_roofline_equals_what_is_committed(void **state)
{
	static const char *const names[] = {"h200", "h100-fault", "cpu"};
	struct text svg = {0};
	struct canvas c;
	unsigned left_out;

	(void)state;
	draw(&c, names, 3, &left_out);
	assert_int_equal(left_out, 0);
	canvas_svg(&svg, &c, "roofline", true);
	sample_golden("h200", "merged.svg", text_str(&svg));
	text_release(&svg);
	canvas_release(&c);
}

static void test_report_plot__points_stand_at_their_intensity_and_rate(void **state)
{
	struct roofline r = {0};
	const struct roofline_point *p = NULL;
	struct sample s;
	struct view v;

	(void)state;
	sample_load(&s, "h200");
	assert_int_equal(view_build(&v, &s.in, NULL), STATUS_OK);
	roofline_add(&r, &v);
	assert_int_equal(r.count, 2);
	assert_string_equal(r.series[0].name, "NVIDIA H200");
	for (size_t i = 0; i < r.series[0].point_count && !p; i++)
		if (!strcmp(r.series[0].point[i].name, "BF16 8192"))
			p = &r.series[0].point[i];
	assert_non_null(p);
	/* 2 n^3 FLOP over three matrices of two bytes an element */
	assert_float_equal(p->intensity, 8192 / 3.0, 1e-3);
	assert_float_equal(p->rate / 1e12, 671, 1e-6);
	roofline_release(&r);
	view_release(&v);
	sample_release(&s);
}

/* Every text's box; turned ones are left out (their small boxes are held apart by the same table). */
static void test_report_plot__labels_do_not_lie_on_one_another(void **state)
{
	static const char *const names[] = {"h200", "h100-fault", "cpu"};
	struct label_box boxes[256];
	struct canvas c;
	size_t count = 0;

	(void)state;
	draw(&c, names, 3, NULL);
	for (size_t i = 0; i < c.op_count; i++) {
		const struct canvas_op *op = &c.ops[i];
		double x = c.points[op->first].x, y = c.points[op->first].y;
		double width = op->kind == CANVAS_TEXT
				       ? canvas_text_width(c.texts.data + op->text, op->width, op->bold)
				       : 0;

		if (op->kind != CANVAS_TEXT || op->angle != 0)
			continue;
		x -= op->anchor == CANVAS_END ? width : op->anchor == CANVAS_MIDDLE ? width / 2 : 0;
		boxes[count++] = (struct label_box){x, y - 8, x + width, y + 2};
		assert_true(x >= 0 && x + width <= c.width && y <= c.height);
	}
	assert_true(count > 20);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			assert_false(boxes[i].x0 < boxes[k].x1 && boxes[k].x0 < boxes[i].x1 &&
				     boxes[i].y0 < boxes[k].y1 && boxes[k].y0 < boxes[i].y1);
	canvas_release(&c);
}

static void test_report_plot__nothing_measured_draws_an_empty_frame(void **state)
{
	static const char *const names[] = {"empty"};
	struct text svg = {0};
	struct canvas c;

	(void)state;
	draw(&c, names, 1, NULL);
	canvas_svg(&svg, &c, "roofline", true);
	assert_null(strstr(text_str(&svg), "nan"));
	assert_null(strstr(text_str(&svg), "inf"));
	text_release(&svg);
	canvas_release(&c);
}

static void test_report_plot__what_is_not_finite_is_not_drawn(void **state)
{
	struct text svg = {0};
	struct canvas c;

	(void)state;
	canvas_init(&c, 100, 100);
	canvas_line(&c, CANVAS_ink, 1, CANVAS_SOLID, 0, 0, (double)NAN, 4);
	canvas_line(&c, CANVAS_ink, 1, CANVAS_SOLID, 0, 0, (double)INFINITY, 4);
	canvas_text(&c, &(struct canvas_style){.size = 10}, (double)NAN, 0, "x");
	assert_int_equal(c.op_count, 0);
	canvas_text(&c, &(struct canvas_style){.size = 10}, -0.001, 2, "<&>");
	canvas_svg(&svg, &c, "a \"title\"", false);
	assert_non_null(strstr(text_str(&svg), "x=\"0\""));
	assert_non_null(strstr(text_str(&svg), "&lt;&amp;&gt;"));
	text_release(&svg);
	canvas_release(&c);
}

static void test_report_plot__flattened_text_is_strokes(void **state)
{
	struct canvas c, flat;
	size_t strokes = 0;

	(void)state;
	canvas_init(&c, 100, 100);
	for (char letter = ' '; letter <= '~'; letter++) {
		char s[2] = {letter, '\0'};

		canvas_text(&c, &(struct canvas_style){.size = 10}, 10, 10, s);
	}
	canvas_text(&c, &(struct canvas_style){.size = 10, .halo = true}, 10, 10, "日 ≤ µ");
	canvas_flatten(&flat, &c);
	for (size_t i = 0; i < flat.op_count; i++) {
		assert_int_not_equal(flat.ops[i].kind, CANVAS_TEXT);
		strokes += flat.ops[i].kind == CANVAS_STROKE;
	}
	assert_true(strokes > 94);
	canvas_release(&flat);
	canvas_release(&c);
}

static const char *report_module_folder(void)
{
	const char *stated = getenv("ASSAY_MODULE_DIR");

	return stated ? stated : "";
}

static void test_report_plot__png_and_pdf_are_the_same_every_time(void **state)
{
	static const char *const names[] = {"h200"};
	static const enum plot_format formats[] = {PLOT_PNG, PLOT_PDF};
	static const char *const magic[] = {"\x89PNG\r\n", "%PDF-"};
	struct error err = {0};
	struct canvas c;

	(void)state;
	if (!sample_has_module(PLOT_MODULE))
		skip();
	draw(&c, names, 1, NULL);
	for (int i = 0; i < 2; i++) {
		char *first, *second;
		size_t size, again;

		assert_int_equal(plot_write(in_folder("a"), formats[i], &c, "t", &err), STATUS_OK);
		assert_int_equal(file_read(&first, &size, in_folder("a"), 1 << 24, &err), STATUS_OK);
		assert_int_equal(plot_write(in_folder("a"), formats[i], &c, "t", &err), STATUS_OK);
		assert_int_equal(file_read(&second, &again, in_folder("a"), 1 << 24, &err), STATUS_OK);
		assert_true(size > 1000 && size == again);
		assert_memory_equal(first, magic[i], strlen(magic[i]));
		assert_memory_equal(first, second, size);
		free(first);
		free(second);
	}
	assert_int_equal(plot_write("/nowhere/at/all.png", PLOT_PNG, &c, "t", &err), STATUS_UNAVAILABLE);
	canvas_release(&c);
}

static void test_report_plot__a_missing_module_leaves_out_the_png_and_says_so(void **state)
{
	char *kept = strdup(report_module_folder());
	static const char *const names[] = {"h200"};
	struct error err = {0};
	struct text note = {0};
	struct sample s;
	struct canvas c;

	(void)state;
	sample_load(&s, "h200");
	setenv("ASSAY_MODULE_DIR", folder, 1);
	assert_int_equal(report_write(folder, &s.in, &note, &err), STATUS_OK);
	draw(&c, names, 1, NULL);
	if (note.size) { /* an installed module may still be found */
		assert_non_null(strstr(text_str(&note), "roofline.png is left out"));
		assert_int_equal(access(in_folder("roofline.png"), F_OK), -1);
		assert_int_equal(plot_write(in_folder("b.png"), PLOT_PNG, &c, "t", &err), STATUS_UNAVAILABLE);
		assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	}
	assert_int_equal(access(in_folder("roofline.svg"), F_OK), 0);
	setenv("ASSAY_MODULE_DIR", kept, 1);
	free(kept);
	text_release(&note);
	canvas_release(&c);
	sample_release(&s);
}

static void test_report_plot__a_module_that_is_nowhere_names_the_folders(void **state)
{
	char *kept = strdup(report_module_folder());
	struct error err = {0};
	const void *symbol;

	(void)state;
	setenv("ASSAY_MODULE_DIR", folder, 1);
	assert_int_equal(module_open(&symbol, "assay-of-tomorrow", "draw", &err), STATUS_UNAVAILABLE);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	assert_non_null(strstr(err.text, "libassay-of-tomorrow.so"));
	assert_non_null(strstr(err.text, folder));
	assert_non_null(strstr(err.text, "../lib/assay"));
	assert_non_null(strstr(err.text, "ASSAY_MODULE_DIR"));
	setenv("ASSAY_MODULE_DIR", kept, 1);
	free(kept);
}

static void test_report_plot__the_manifest_has_the_checksums_of_the_files(void **state)
{
	struct error err = {0};
	struct sample s;
	json_t *manifest, *file;
	size_t i;

	(void)state;
	sample_load(&s, "h100-fault");
	assert_int_equal(report_write(folder, &s.in, NULL, &err), STATUS_OK);
	manifest = json_load_file(in_folder("manifest.json"), 0, NULL);
	assert_non_null(manifest);
	assert_int_equal(json_array_size(json_object_get(manifest, "files")), 5);
	json_array_foreach(json_object_get(manifest, "files"), i, file)
	{
		char hex[65];

		assert_int_equal(file_sha256_of(hex,
						in_folder(json_string_value(json_object_get(file, "name"))),
						&err),
				 STATUS_OK);
		assert_string_equal(hex, json_string_value(json_object_get(file, "sha256")));
	}
	json_decref(manifest);
	sample_release(&s);
}

/* A share of what another loop of the run reached is an estimate and is marked. Above 100 % that loop bounds nothing, and
 * no share is shown. */
static void test_report_plot__an_estimate_is_marked_beside_other_runs(void **state)
{
	static const struct {
		enum bound_from from;
		double share;
		const char *text; /* of the cell; NULL: the share is not shown */
	} rows[] = {
		{BOUND_DEVICE, 1.17, "| 117"},
		{BOUND_CEILING, 0.87, "| ≈ 87"},
		{BOUND_CEILING, 1.17, NULL},
	};
	struct text out = {0};
	struct sample s;
	struct view v;

	(void)state;
	sample_load(&s, "h200");
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		for (size_t i = 0; i < s.judged.count; i++) {
			s.judged.of_case[i].bound.from = rows[k].from;
			if (!strcmp(s.record.cases[i].limit, "memory"))
				s.judged.of_case[i].share_of_bound = rows[k].share;
		}
		assert_int_equal(view_build(&v, &s.in, NULL), STATUS_OK);
		merge_markdown(&out, &v, 1);
		if (rows[k].text)
			assert_non_null(strstr(text_str(&out), rows[k].text));
		else
			assert_null(strstr(text_str(&out), "117"));
		text_release(&out);
		view_release(&v);
	}
	sample_release(&s);
}

static void test_report_plot__runs_merge_into_one_report(void **state)
{
	struct error err = {0};
	struct report_input in[2];
	struct sample a, b;
	char *text;
	size_t size;

	(void)state;
	sample_load(&a, "h200");
	sample_load(&b, "h100-fault");
	in[0] = a.in;
	in[1] = b.in;
	assert_int_equal(report_write_merged(folder, in, 2, PLOT_SVG, NULL, &err), STATUS_OK);
	assert_int_equal(file_read(&text, &size, in_folder("REPORT.md"), 1 << 24, &err), STATUS_OK);
	sample_golden("h200", "merged.md", text);
	free(text);
	assert_int_equal(file_read(&text, &size, in_folder("results.csv"), 1 << 24, &err), STATUS_OK);
	assert_non_null(strstr(text, "NVIDIA H200"));
	assert_non_null(strstr(text, "NVIDIA H100 80GB HBM3"));
	assert_null(strstr(strstr(text, "Problem,") + 1, "Problem,")); /* one heading */
	free(text);
	sample_release(&a);
	sample_release(&b);
}

static void test_report_plot__a_folder_that_cannot_be_written_is_an_error(void **state)
{
	struct error err = {0};
	struct sample s;

	(void)state;
	sample_load(&s, "cpu");
	assert_int_not_equal(report_write("/proc/no/such", &s.in, NULL, &err), STATUS_OK);
	assert_non_null(strstr(err.text, "/proc/no/such"));
	sample_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_plot__the_roofline_equals_what_is_committed),
		cmocka_unit_test(test_report_plot__points_stand_at_their_intensity_and_rate),
		cmocka_unit_test(test_report_plot__labels_do_not_lie_on_one_another),
		cmocka_unit_test(test_report_plot__nothing_measured_draws_an_empty_frame),
		cmocka_unit_test(test_report_plot__what_is_not_finite_is_not_drawn),
		cmocka_unit_test(test_report_plot__flattened_text_is_strokes),
		cmocka_unit_test(test_report_plot__png_and_pdf_are_the_same_every_time),
		cmocka_unit_test(test_report_plot__a_module_that_is_nowhere_names_the_folders),
		cmocka_unit_test(test_report_plot__a_missing_module_leaves_out_the_png_and_says_so),
		cmocka_unit_test(test_report_plot__the_manifest_has_the_checksums_of_the_files),
		cmocka_unit_test(test_report_plot__an_estimate_is_marked_beside_other_runs),
		cmocka_unit_test(test_report_plot__runs_merge_into_one_report),
		cmocka_unit_test(test_report_plot__a_folder_that_cannot_be_written_is_an_error),
	};

	return cmocka_run_group_tests_name("report_plot", tests, make_folder, drop_folder);
}
