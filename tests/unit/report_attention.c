/* SPDX-License-Identifier: Apache-2.0 */
/* The table of attention: published figures, the library beside our kernels, block lists beside the dense
 * case. */
#include "test.h"
#include "report/tables/attention.h"

enum { ROWS = 8 };

struct shown {
	struct record_case c[ROWS];
	struct record_phase phase[ROWS], once[ROWS][1];
	struct judgement j;
	struct view_row row[ROWS];
	struct view v;
	struct grid g;
};

static struct view_row *add(struct shown *s, const char *engine, const char *heads, const char *pattern,
			    double us)
{
	size_t i = s->v.row_count++;
	struct record_case *c = &s->c[i];

	s->v.rows = s->row;
	c->probe = "attention";
	c->engine = engine;
	c->target = "gpu0";
	c->plan = json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}}", "options", "type", "fp16",
			    "batch", "16", "heads", heads, "kv_heads", "0", "seq", "512", "kv_seq", "0",
			    "head_dim", "64", "mask", "none", "pattern", pattern);
	s->phase[i].values = json_pack("{s:f, s:f}", "time_ns_mean", us * 1e3, "flop_rate", 4e14);
	snprintf(s->once[i][0].name, sizeof(s->once[i][0].name), "once");
	s->once[i][0].values = json_pack("{s:s, s:f}", "kernel", engine, "error_rms", 1.5e-5);
	c->phase = s->once[i];
	c->phase_count = 1;
	s->row[i].c = c;
	s->row[i].j = &s->j;
	s->row[i].phase = &s->phase[i];
	snprintf(s->row[i].title, sizeof(s->row[i].title), "case %zu", i);
	return &s->row[i];
}

static void release(struct shown *s)
{
	grid_release(&s->g);
	for (size_t i = 0; i < s->v.row_count; i++) {
		json_decref(s->phase[i].values);
		json_decref(s->once[i][0].values);
		json_decref((json_t *)(uintptr_t)s->c[i].plan);
	}
}

static void expect_row(const struct shown *s, size_t row, const char *const *cells)
{
	for (size_t k = 0; k < s->g.columns; k++)
		if (strcmp(grid_at(&s->g, row, k), cells[k]) != 0)
			fail_msg("row %zu, %s: \"%s\" is not \"%s\"", row, s->g.column[k].head,
				 grid_at(&s->g, row, k), cells[k]);
}

static void test_report_attention__engines_stand_beside_the_published_figure(void **state)
{
	static const char *const first[] = {"case 0", "cuDNN 9.19.0, cudnn", "251.0", "2.615",
					    "3.846",  "400 TFLOPS",	     "–",     "1.5e-05",
					    "–"};
	static const char *const second[] = {"case 1",	   "own",   "200.8",   "2.092", "3.846",
					     "400 TFLOPS", "0.800", "1.5e-05", "1.10"};
	static const struct judgement near = {.error_over_library = 1.1};
	static struct shown s;
	struct view_row *row;

	(void)state;
	row = add(&s, "cudnn", "96", "none", 251);
	json_object_set_new(s.once[0][0].values, "library",
			    json_string("cuDNN 9.19.0 /usr/lib/libcudnn.so.9"));
	add(&s, "own", "96", "none", 200.8)->j = &near;
	add(&s, "own", "48", "none", 100)->aside = true;
	assert_ptr_equal(row, &s.row[0]);
	assert_true(attention_grid(&s.g, &s.v));
	assert_int_equal(grid_rows(&s.g), 2);
	expect_row(&s, 0, first);
	expect_row(&s, 1, second);
	assert_non_null(strstr(text_str(&s.g.note), "limit for a pass is 5 us per head"));
	release(&s);
}

static void test_report_attention__lists_stand_beside_the_dense_case(void **state)
{
	static const char *const sparse[] = {"case 1", "sparse", "50.0", "1.042",   "400 TFLOPS",
					     "25.0 %", "3.60",	 "4.00", "20.0 us", "1.5e-05"};
	static struct shown s;

	(void)state;
	add(&s, "own", "48", "none", 180);
	add(&s, "sparse", "48", "random", 50);
	json_object_set_new(s.once[1][0].values, "pairs_share", json_real(0.25));
	json_object_set_new(s.once[1][0].values, "blocks_build_s", json_real(20e-6));
	assert_true(attention_grid(&s.g, &s.v));
	expect_row(&s, 1, sparse);
	assert_null(strstr(text_str(&s.g.note), "limit for a pass"));
	release(&s);
}

static void test_report_attention__nothing_measured_is_no_table(void **state)
{
	static struct shown s;

	(void)state;
	add(&s, "cudnn", "96", "none", 251)->phase = NULL;
	assert_false(attention_grid(&s.g, &s.v));
	release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_attention__engines_stand_beside_the_published_figure),
		cmocka_unit_test(test_report_attention__lists_stand_beside_the_dense_case),
		cmocka_unit_test(test_report_attention__nothing_measured_is_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
