/* SPDX-License-Identifier: Apache-2.0 */
/* The best way to run a collective, and the ranks of one, in every form. */
#include "test.h"

#include "core/file/file.h"
#include "journal/journal.h"
#include "report_shown.h"
#include "scratch.h"

static void add_case(struct text *t, unsigned id, const char *size, const char *how)
{
	text_addf(
		t,
		"%s{'case':%u,'key':'collective engine=nccl size=%s number=%u','probe':'collective','engine':'nccl','options':{'op':"
		"'allreduce','type':'bf16','size':'%s',%s},'kind':'timed','target':'node','gpus':['0000:10:00.0','0000:20:00.0','0000:30:00.0'],'phases':'burst','require':'measured',"
		"'work':{'messages':1,'limit':'latency'},'skip':null}",
		id ? "," : "", id, size, id, size, how);
}

static void add_result(struct text *t, unsigned *n, unsigned id, const char *phase, const char *values)
{
	text_addf(t, "{'n':%u,'t':%u,'type':'result','case':%u,'phase':'%s','values':{%s}}\n", *n, 1000 + *n,
		  id, phase, values);
	++*n;
}

/* What NCCL told, and the burst of a case that ended well. */
static void add_run(struct text *t, unsigned *n, unsigned id, const char *once, double us)
{
	char values[200];

	text_addf(t, "{'n':%u,'t':%u,'type':'begin','case':%u,'attempt':1,'pid':5}\n", *n, 1000 + *n, id);
	++*n;
	snprintf(
		values, sizeof(values),
		"'latency_ns':%g,'time_ns_mean':%g,'half_width_share':0.003,'samples':200,'settled':1,'wrong_checked':9,"
		"'wrong_total':9,'wrong_count':0",
		1e3 * us, 1e3 * us);
	add_result(t, n, id, "burst", values);
	add_result(t, n, id, "once", once);
}

static void add_end(struct text *t, unsigned *n, unsigned id)
{
	text_addf(
		t,
		"{'n':%u,'t':%u,'type':'end','case':%u,'ending':'done','status':'ok','cause':'','text':''}\n",
		*n, 1000 + *n, id);
	++*n;
}

static void write_run(const char *dir, struct text *t)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < t->size; i++)
		if (t->data[i] == '\'')
			t->data[i] = '"';
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir);
	assert_int_equal(file_write(path, t->data, t->size, NULL), STATUS_OK);
	text_release(t);
}

static void write_ways(const char *dir)
{
	static const char search[] =
		"'variant':'32 CTAs','latency_ns':11000,'variants_tried':7,'best_ratio':1.1,"
		"'best_ratio_low':1.08,'best_ratio_high':1.11";
	struct text t = {0};
	unsigned n = 3;

	text_add(
		&t,
		"{'n':0,'t':1000,'type':'open','schema':2,'program':'0.1.0','build':'b','seed':7,'node':'x'}\n"
		"{'n':1,'t':1001,'type':'machine','facts':{'format':1,'gpus':[]}}\n"
		"{'n':2,'t':1002,'type':'plan','hash':'h','suite':'tiny','steps':[{'together':false,'cases':[");
	add_case(&t, 0, "8", "'launch':'stream','buffers':'plain'");
	add_case(&t, 1, "8", "'launch':'graph','buffers':'window'");
	add_case(&t, 2, "32KiB", "'launch':'stream','buffers':'plain','search':'top'");
	text_add(&t, "]}]}\n");
	add_run(&t, &n, 0, "'algorithm':'ring','protocol':'ll'", 8.5);
	add_end(&t, &n, 0);
	add_run(&t, &n, 1, "'algorithm':'symmetric'", 3.4);
	add_end(&t, &n, 1);
	add_run(&t, &n, 2,
		"'algorithm':'ring','protocol':'ll','best_algorithm':'tree','best_protocol':'ll128'", 12);
	add_result(&t, &n, 2, "best", search);
	add_end(&t, &n, 2);
	text_addf(&t, "{'n':%u,'t':%u,'type':'close','ending':'done','text':''}\n", n, 1000 + n);
	write_run(dir, &t);
}

static void test_ways__each_form_has_the_best_of_each_size(void **state)
{
	static const char *const said[] = {"The best way to run all-reduce, bf16: node",
					   "window buffers, graph",
					   "3.40 us",
					   "x 2.500 ± 0.025",
					   "symmetric",
					   "fastest of 2 ways",
					   "32 KiB",
					   "32 CTAs",
					   "11.0 us",
					   "x 1.100 ± 0.020",
					   "tree ll128",
					   "search of 7 variants"};
	struct shown s;

	write_ways(*state);
	shown_read(&s, *state);
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		shown_all_say(&s, said[i]);
	shown_release(&s);
}

static void test_ways__json_has_the_cases(void **state)
{
	json_t *results, *ways, *one;
	struct shown s;

	write_ways(*state);
	shown_read(&s, *state);
	shown_valid(&s, &results);
	ways = json_object_get(results, "best_ways");
	assert_int_equal(json_array_size(ways), 2);
	one = json_array_get(ways, 0);
	assert_int_equal(json_integer_value(json_object_get(one, "case")), 1);
	assert_int_equal(json_integer_value(json_object_get(one, "default_case")), 0);
	assert_true(json_is_false(json_object_get(one, "searched")));
	assert_true(json_number_value(json_object_get(one, "over_default")) == 2.5);
	assert_string_equal(json_string_value(json_object_get(one, "way")), "window buffers, graph");
	one = json_array_get(ways, 1);
	assert_true(json_is_true(json_object_get(one, "searched")));
	assert_int_equal(json_integer_value(json_object_get(one, "variants")), 7);
	assert_true(json_number_value(json_object_get(one, "over_default_low")) == 1.08);
	json_decref(results);
	shown_release(&s);
}

/* A terminal that is too narrow for a table gets sentences, and loses nothing. */
static void test_ways__a_narrow_terminal_has_sentences(void **state)
{
	const struct report_style narrow = {.columns = 60};
	struct text out = {0};
	struct shown s;

	write_ways(*state);
	shown_read(&s, *state);
	report_terminal(&out, &s.j.in, &narrow);
	assert_non_null(strstr(text_str(&out), "8 B: best way window buffers, graph; figure 3.40 us;"));
	assert_null(strstr(text_str(&out), "…"));
	text_release(&out);
	shown_release(&s);
}

/* Two cases on four GPUs: of the first the ranks are alike, the second waits for rank 2. */
static void write_ranks(const char *dir)
{
	struct text t = {0};
	unsigned n = 3;

	text_add(
		&t,
		"{'n':0,'t':1000,'type':'open','schema':2,'program':'0.1.0','build':'b','seed':7,'node':'x'}\n"
		"{'n':1,'t':1001,'type':'machine','facts':{'format':1,'gpus':[{'pci':'0000:10:00.0','status':'ok'},"
		"{'pci':'0000:20:00.0','status':'ok'},{'pci':'0000:30:00.0','status':'ok'}]}}\n"
		"{'n':2,'t':1002,'type':'plan','hash':'h','suite':'tiny','steps':[{'together':false,'cases':[");
	add_case(&t, 0, "8", "'launch':'stream'");
	add_case(&t, 1, "1GiB", "'launch':'stream'");
	text_add(&t, "]}]}\n");
	add_run(&t, &n, 0, "'algorithm':'ring'", 8.5);
	add_result(
		&t, &n, 0, "burst",
		"'ranks':3,'rank_ns_min':8490,'rank_ns_median':8495,'rank_ns_max':8500,'rank_shortest':0,'rank_longest':1");
	add_end(&t, &n, 0);
	add_run(&t, &n, 1, "'algorithm':'ring'", 4000);
	add_result(
		&t, &n, 1, "burst",
		"'ranks':3,'rank_ns_min':3e6,'rank_ns_median':3.98e6,'rank_ns_max':4e6,'rank_shortest':2,'rank_longest':1,"
		"'wait_share':0.165,'skew_ns':1e6,'rank_late':2");
	add_end(&t, &n, 1);
	text_addf(&t, "{'n':%u,'t':%u,'type':'close','ending':'done','text':''}\n", n, 1000 + n);
	write_run(dir, &t);
}

static void test_ranks__each_form_names_who_comes_last(void **state)
{
	struct shown s;

	write_ranks(*state);
	shown_read(&s, *state);
	shown_all_say(&s, "3.00 ms, rank 2 (gpu2)");
	shown_all_say(&s, "3.98 ms");
	shown_all_say(&s, "4.00 ms, rank 1 (gpu1)");
	shown_all_say(&s, "25.0 %");
	shown_all_say(&s, "16.5 %");
	shown_all_say(&s, "1.00 ms");
	shown_release(&s);
}

static void test_ranks__a_terminal_has_those_that_differ_alone(void **state)
{
	const char *all = "8.49 us, rank 0 (gpu0)";
	const char *text;
	struct shown s;

	write_ranks(*state);
	shown_read(&s, *state);
	text = text_str(&s.text[REPORT_TEXT]);
	assert_non_null(strstr(text, "Ranks that differ"));
	assert_null(strstr(text, all));
	assert_non_null(strstr(text_str(&s.text[REPORT_MARKDOWN]), all));
	assert_non_null(strstr(text_str(&s.text[REPORT_HTML]), all));
	assert_non_null(strstr(text_str(&s.text[REPORT_HTML]),
			       "<details class=\"group\"><summary><b>Ranks</b><span class=\"muted\">2 rows"));
	shown_release(&s);
}

/* Of a run whose cases have one rank each there is no such table. */
static void test_ranks__one_rank_has_no_table(void **state)
{
	struct shown s;

	write_ways(*state);
	shown_read(&s, *state);
	for (int f = REPORT_TEXT; f <= REPORT_HTML; f++)
		assert_null(strstr(text_str(&s.text[f]), "last to start"));
	shown_release(&s);
}

/* All-reduce of 1 GiB on 8, 4 and 2 GPUs, in this order; of the last the search for who is slow follows;
 * all-gather on all alone. */
static void write_groups(const char *dir)
{
	static const struct {
		const char *op, *target, *more;
		unsigned ranks;
		double gb;
	} cases[] = {{"allreduce", "node", "", 8, 306},
		     {"allreduce", "node:0,1,2,3", "", 4, 342},
		     {"allreduce", "node:0,1", "", 2, 360},
		     {"allreduce", "node:4,5,6", "'follows':{'case':2},", 3, 100},
		     {"allgather", "node", "", 8, 300}};
	struct text t = {0};
	char values[300];
	unsigned n = 3;

	text_add(
		&t,
		"{'n':0,'t':1000,'type':'open','schema':2,'program':'0.1.0','build':'b','seed':7,'node':'x'}\n"
		"{'n':1,'t':1001,'type':'machine','facts':{'format':1,'gpus':[]}}\n"
		"{'n':2,'t':1002,'type':'plan','hash':'h','suite':'tiny','steps':[{'together':false,'cases':[");
	for (unsigned i = 0; i < 5; i++)
		text_addf(
			&t,
			"%s{'case':%u,'key':'collective engine=nccl op=%s','probe':'collective','engine':'nccl','options':{'op':'%s',"
			"'type':'bf16','size':'1GiB'},'kind':'timed','target':'%s',%s'gpus':[],'phases':'burst','require':'measured',"
			"'work':{'link_bytes':1073741824,'limit':'collective.%s'},'skip':null}",
			i ? "," : "", i, cases[i].op, cases[i].op, cases[i].target, cases[i].more,
			cases[i].op);
	text_add(&t, "]}]}\n");
	for (unsigned i = 0; i < 5; i++) {
		add_run(&t, &n, i, "'algorithm':'ring'", 4000);
		snprintf(values, sizeof(values), "'link_rate':%g,'ranks':%u", 1e9 * cases[i].gb,
			 cases[i].ranks);
		add_result(&t, &n, i, "burst", values);
		add_end(&t, &n, i);
	}
	text_addf(&t, "{'n':%u,'t':%u,'type':'close','ending':'done','text':''}\n", n, 1000 + n);
	write_run(dir, &t);
}

static void test_groups__one_collective_over_growing_groups_is_a_table(void **state)
{
	static const char *const said[] = {"Collective by group size: all-reduce 1 GiB, bf16", "95.0 %",
					   "85.0 %", "342 GB/s", "306 GB/s"};
	static const struct {
		unsigned ranks, id;
		double share;
	} groups[] = {{2, 2, 1}, {4, 1, 0.95}, {8, 0, 0.85}};
	json_t *results, *all, *one;
	struct shown s;

	write_groups(*state);
	shown_read(&s, *state);
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		shown_all_say(&s, said[i]);
	assert_null(strstr(text_str(&s.text[REPORT_MARKDOWN]), "groups: all-gather"));
	shown_valid(&s, &results);
	all = json_object_get(results, "collective_groups");
	assert_int_equal(json_array_size(all), 1);
	all = json_object_get(json_array_get(all, 0), "groups");
	assert_int_equal(json_array_size(all), 3);
	for (unsigned i = 0; i < 3; i++) {
		one = json_array_get(all, i);
		assert_int_equal(json_integer_value(json_object_get(one, "ranks")), groups[i].ranks);
		assert_int_equal(json_integer_value(json_object_get(one, "case")), groups[i].id);
		assert_true(json_number_value(json_object_get(one, "of_smallest")) == groups[i].share);
	}
	json_decref(results);
	shown_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_groups__one_collective_over_growing_groups_is_a_table),
		scratch_test(test_ranks__a_terminal_has_those_that_differ_alone),
		scratch_test(test_ranks__each_form_names_who_comes_last),
		scratch_test(test_ranks__one_rank_has_no_table),
		scratch_test(test_ways__a_narrow_terminal_has_sentences),
		scratch_test(test_ways__each_form_has_the_best_of_each_size),
		scratch_test(test_ways__json_has_the_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
