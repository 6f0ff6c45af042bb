/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a team (team_run.h) in every form: nodes, their clocks, what differs, who is missing. */
#include "test.h"

#include "report/tables/nodes.h"
#include "report_shown.h"
#include "team_run.h"

static void another_driver_on_node_b(const char *dir)
{
	team_write_all(dir);
	for (unsigned r = 1; r < TEAM_RANKS; r++) {
		struct team_run o = team_rank(r);

		o.driver = "570";
		team_write(dir, &o);
	}
}

static void keep_ranks(void *arg, enum verdict verdict, const char *const *cells)
{
	(void)verdict;
	text_addf(arg, "%s;", cells[2]);
}

/* As srun --distribution=cyclic deals them. */
static void test_nodes__ranks_of_a_node_that_others_stand_between(void **state)
{
	struct text ranks = {0};
	struct shown s;
	struct view v;

	another_driver_on_node_b(*state);
	shown_read(&s, *state);
	assert_non_null(strstr(text_str(&s.text[REPORT_MARKDOWN]), "| first node | other node |"));
	s.j.record.node[1].last = 6;
	assert_int_equal(view_build(&v, &s.j.in, NULL), STATUS_OK);
	nodes_each(&v, keep_ranks, &ranks);
	assert_string_equal(text_str(&ranks), "rank 0;2 of ranks 1 to 6;");
	assert_string_equal(nodes_difference_headings(&v)[1], "first node");
	s.j.record.node_count = 3; /* of more there are most */
	assert_string_equal(nodes_difference_headings(&v)[1], "most nodes");
	s.j.record.node_count = 2;
	text_release(&ranks);
	view_release(&v);
	shown_release(&s);
}

/* Ranks of one node: what the lowest did was asked for, what nobody did is one case. */
static void test_nodes__what_another_rank_does_is_for_no_other_target(void **state)
{
	struct text t = {0};
	struct shown s;
	struct view v;

	for (unsigned r = 0; r < TEAM_RANKS; r++) {
		struct team_run o = team_rank(r);

		o.aside = true;
		team_write(*state, &o);
	}
	shown_read(&s, *state);
	assert_int_equal(view_build(&v, &s.j.in, NULL), STATUS_OK);
	view_aside(&t, &v, ". ");
	assert_string_equal(text_str(&t),
			    ". 2 more cases of the suite are for other targets (node-a/cpu, node-b/cpu)");
	text_release(&t);
	view_release(&v);
	shown_release(&s);
}

static void test_nodes__who_was_there_and_what_differs(void **state)
{
	struct text csv = {0};
	json_t *results, *team, *one;
	struct shown s;
	struct view v;

	another_driver_on_node_b(*state);
	shown_read(&s, *state);
	shown_all_say(&s, "node-b");
	shown_all_say(&s, "5.000 ms ahead of rank 0");
	shown_all_say(&s, "ranks 1 to 2");
	shown_all_say(&s, "1.0 µs more at the end");
	shown_all_say(&s, "driver: version");
	shown_all_say(&s, "570: node-b");
	shown_all_say(&s, "another driver version manages clocks, power and links in another way");
	shown_all_say(&s, "node-b · GPU 1");
	shown_all_say(&s, "120 ns, rank 2 (node-b)");
	assert_non_null(strstr(text_str(&s.text[REPORT_CSV]), "\"node-b/gpu1\""));
	shown_valid(&s, &results);
	team = json_object_get(results, "team");
	assert_int_equal(json_array_size(json_object_get(team, "nodes")), 2);
	one = json_array_get(json_object_get(team, "differences"), 0);
	assert_string_equal(json_string_value(json_object_get(one, "fact")), "driver.version");
	assert_string_equal(json_string_value(json_object_get(one, "most")), "580");
	one = json_array_get(json_object_get(results, "cases"), 1);
	for (size_t i = 0; i < json_array_size(json_object_get(results, "cases")); i++) {
		one = json_array_get(json_object_get(results, "cases"), i);
		if (!strcmp(json_string_value(json_object_get(one, "target")), "team"))
			break;
	}
	assert_int_equal(json_array_size(json_object_get(one, "ranks")), 2);
	json_decref(results);
	if (s.j.judgements.verdict != VERDICT_WARN)
		fail_msg("%s: %s", verdict_name(s.j.judgements.verdict), s.j.judgements.headline);
	assert_int_equal(s.j.judgements.exit_code, 0);
	assert_non_null(strstr(s.j.judgements.headline, "nodes differ in 2 facts that hurt"));
	assert_int_equal(view_build(&v, &s.j.in, NULL), STATUS_OK);
	nodes_csv(&csv, &v);
	assert_non_null(
		strstr(text_str(&csv), "\"driver.version\",\"node-b\",\"570\",\"580\",\"another driver"));
	view_release(&v);
	text_release(&csv);
	shown_release(&s);
}

/* 2 GPUs on node-b, 1 on node-a: how many is a fact, and both have the same board. */
static void test_nodes__lists_of_other_lengths(void **state)
{
	const struct judge_difference *d = NULL;
	struct shown s;

	team_write_all(*state);
	shown_read(&s, *state);
	assert_int_equal(s.j.judgements.difference_count, 1);
	d = &s.j.judgements.difference[0];
	assert_string_equal(d->fact, "gpus");
	assert_true(d->how_many && d->hurts);
	assert_string_equal(d->majority, "1");
	assert_string_equal(d->other[0].value, "2");
	assert_int_equal(d->other[0].node, 1);
	shown_all_say(&s, "how many: GPU");
	shown_release(&s);
}

static void test_nodes__a_missing_node_is_told_and_nothing_passes(void **state)
{
	char at[PATH_MAX], path[PATH_MAX + 32];
	json_t *results;
	struct shown s;
	unsigned lost = 0;

	team_write_all(*state);
	for (unsigned r = 1; r < TEAM_RANKS; r++) {
		rank_dir_path(at, sizeof(at), *state, "node-b", r);
		snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, at);
		assert_int_equal(unlink(path), 0);
	}
	shown_read(&s, *state);
	assert_int_equal(s.j.judgements.exit_code, 2);
	assert_non_null(strstr(s.j.judgements.headline,
			       "inconclusive: node node-b is missing (rank 1: its journal was not received)"));
	for (size_t i = 0; i < s.j.judgements.count; i++)
		if (s.j.judgements.of_case[i].cause == CAUSE_TEAM_LOST) {
			assert_int_equal(s.j.judgements.of_case[i].verdict, VERDICT_UNKNOWN);
			lost++;
		}
	assert_int_equal(lost, 3);
	shown_all_say(&s, "missing: rank 1: its journal was not received");
	shown_all_say(&s, "no result from rank");
	shown_valid(&s, &results);
	json_decref(results);
	shown_release(&s);
}

/* The journal of node-b says that its name is something that other formats would take for theirs. */
static void test_nodes__names_are_hidden_and_escaped(void **state)
{
	static const struct judge_site nothing = {NULL, NULL};
	const struct report_style style = {.columns = 200};
	struct text out = {0};
	struct error err = {0};
	struct judged j;

	another_driver_on_node_b(*state);
	assert_int_equal(judged_read(&j, *state, NULL, &nothing, false, &err), STATUS_OK);
	for (int f = REPORT_TEXT; f <= REPORT_CSV; f++) {
		assert_int_equal(report_render(&out, (enum report_format)f, &j.in, &style, &err), STATUS_OK);
		if (strstr(text_str(&out), "node-b") || strstr(text_str(&out), "node\\-b"))
			fail_msg("%s names node-b:\n%s", report_formats[f], text_str(&out));
		text_release(&out);
	}
	judged_release(&j);
}

enum { MANY = 12 };

/* Twelve nodes with a GPU each; every third has another driver, each another kernel. `wrong` elements of
 * nine. */
static void write_of_many(const char *dir, unsigned rank, unsigned wrong)
{
	char to[PATH_MAX], name[16], path[PATH_MAX + 32];
	struct text t = {0}, team = {0};

	text_addf(&team, "'team':{'rank':%u,'size':%d,'node':%u,'nodes':[", rank, MANY, rank);
	for (unsigned i = 0; i < MANY; i++)
		text_addf(&team, "%s{'name':'n%u','ranks':[%u],'offset_ns':0,'error_ns':9,'at':0}",
			  i ? "," : "", i, i);
	text_add(&team, "]}");
	text_addf(
		&t,
		"{'n':0,'t':10,'type':'open','schema':2,'program':'0.1.0','build':'b','seed':7,'node':'x',%s}\n"
		"{'n':1,'t':11,'type':'machine','facts':{'format':1,'driver':{'version':'%s'},'system':{'kernel':'6.%u'},'gpus':"
		"[{'pci':'0000:10:00.0','status':'ok','name':'NVIDIA X'}]}}\n",
		text_str(&team), rank % 3 ? "580" : "570", rank);
	text_addf(
		&t,
		"{'n':2,'t':12,'type':'plan','hash':'h','suite':'tiny','steps':[{'together':false,'cases':[{'case':0,'key':"
		"'gemm engine=x m=1','probe':'gemm','engine':'x','options':{'m':'1'},'kind':'timed','target':'gpu0','gpus':["
		"'0000:10:00.0'],'phases':'headline','require':'measured','work':{'flop':1e9,'limit':'compute.fp32'},'skip':"
		"null}]}]}\n{'n':3,'t':13,'type':'begin','case':0,'attempt':1,'pid':5}\n"
		"{'n':4,'t':14,'type':'result','case':0,'phase':'sustained','values':{'flop_rate':1e12,'window_s':2,'settled':1,"
		"'samples':200,'half_width_share':0.001,'wrong_checked':9,'wrong_total':9,'wrong_count':%u}}\n"
		"{'n':5,'t':15,'type':'end','case':0,'ending':'done','status':'%s','cause':'%s','text':''}\n",
		wrong, wrong ? "mismatch" : "ok", wrong ? "wrong_result" : "");
	text_addf(&t, "{'n':6,'t':16,'type':'close','ending':'done','text':'',%s}\n", text_str(&team));
	for (size_t i = 0; i < t.size; i++)
		t.data[i] = t.data[i] == '\'' ? '"' : t.data[i];
	snprintf(name, sizeof(name), "n%u", rank);
	snprintf(to, sizeof(to), "%s", dir);
	if (rank)
		rank_dir_path(to, sizeof(to), dir, name, rank);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, to);
	assert_int_equal(file_make_dir(to, NULL), STATUS_OK);
	assert_int_equal(file_write(path, t.data, t.size, NULL), STATUS_OK);
	text_release(&t);
	text_release(&team);
}

static bool says(const struct shown *s, enum report_format form, const char *what)
{
	return strstr(text_str(&s->text[form]), what) != NULL;
}

/* Of many nodes a terminal has those that ask for something; the page unfolds; long lists are counted. */
static void test_nodes__of_many_only_what_asks_for_something_is_laid_out(void **state)
{
	char path[PATH_MAX];
	struct shown s;

	for (unsigned r = 0; r < MANY; r++)
		write_of_many(*state, r, 0);
	rank_dir_path(path, sizeof(path), *state, "n5", 5);
	text_copy(path + strlen(path), sizeof(path) - strlen(path), "/" JOURNAL_FILE);
	assert_int_equal(unlink(path), 0);
	shown_read(&s, *state);
	assert_true(says(&s, REPORT_TEXT, "11 of 12 nodes are whole; REPORT.md has a row per node"));
	assert_true(says(&s, REPORT_TEXT, "n5: missing: rank 5: its journal was not received"));
	assert_false(says(&s, REPORT_TEXT, "n4: whole"));
	assert_true(says(&s, REPORT_MARKDOWN, "| n4 | whole | rank 4 | 1 |"));
	assert_true(says(&s, REPORT_TEXT, "n4 · GPU 0 · NVIDIA X · 0000:10:00.0: 1 case: 1 pass"));
	assert_false(says(&s, REPORT_MARKDOWN, "at the end")); /* no clock gained anything */
	assert_true(says(&s, REPORT_MARKDOWN, "570: n0, n3, n6, n9"));
	assert_true(says(&s, REPORT_MARKDOWN, "and 4 more values (nodes.csv has them)"));
	assert_true(says(&s, REPORT_HTML, "<details class=\"group\"><summary><b>n4 · GPU 0"));
	assert_true(says(&s, REPORT_HTML, "<details class=\"group\" open><summary><b>n5 · GPU 0"));
	shown_release(&s);
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

/* Wrong on every node but one: said once for eleven, of each in JSON. Wrong on three: said of each. */
static void test_nodes__the_same_advice_for_many_is_said_once(void **state)
{
	static const unsigned bad[] = {MANY - 1, 3};
	const char *action = cause_action(CAUSE_WRONG_RESULT);
	json_t *results;
	struct shown s;

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned r = 0; r < MANY; r++)
			write_of_many(*state, r, r < bad[i] ? 2 : 0);
		shown_read(&s, *state);
		if (i)
			assert_false(says(&s, REPORT_MARKDOWN, "targets on"));
		else
			shown_all_say(&s, "11 targets on 11 nodes, such as n0/gpu0, n1/gpu0, n2/gpu0");
		for (int f = REPORT_TEXT; f <= REPORT_HTML; f++)
			assert_int_equal(times(text_str(&s.text[f]), action), i ? 3 : 1);
		shown_valid(&s, &results);
		assert_int_equal(json_array_size(json_object_get(results, "what_to_do")), bad[i]);
		json_decref(results);
		shown_release(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_nodes__ranks_of_a_node_that_others_stand_between),
		scratch_test(test_nodes__what_another_rank_does_is_for_no_other_target),
		scratch_test(test_nodes__who_was_there_and_what_differs),
		scratch_test(test_nodes__lists_of_other_lengths),
		scratch_test(test_nodes__a_missing_node_is_told_and_nothing_passes),
		scratch_test(test_nodes__names_are_hidden_and_escaped),
		scratch_test(test_nodes__of_many_only_what_asks_for_something_is_laid_out),
		scratch_test(test_nodes__the_same_advice_for_many_is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
