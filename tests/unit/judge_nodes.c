/* SPDX-License-Identifier: Apache-2.0 */
/* Siblings span nodes: five nodes of a GPU each did the same, and one is slower. */
#include "test.h"

#include "cmd/shared/judged.h"
#include "team_run.h"

enum { NODES = 5 };

static void add_nodes(struct text *t)
{
	for (unsigned n = 0; n < NODES; n++)
		text_addf(t, "%s{'name':'n%u','ranks':[%u],'offset_ns':0,'error_ns':0,'at':0}", n ? "," : "", n, n);
}

static void write_node(const char *dir, unsigned rank, double rate)
{
	char to[PATH_MAX], path[PATH_MAX + 32], name[8];
	struct text t = {0};

	text_addf(&t, "{'n':0,'t':1,'type':'open','schema':2,'program':'0.1.0','build':'b','seed':7,'team':{'rank':%u,'size':%d,"
		      "'node':%u,'nodes':[",
		  rank, NODES, rank);
	add_nodes(&t);
	text_add(&t, "]}}\n{'n':1,'t':2,'type':'machine','facts':{'format':1,'gpus':[{'pci':'0000:10:00.0','status':'ok','name':"
		     "'NVIDIA X','facts':{'cc':90}}]}}\n{'n':2,'t':3,'type':'plan','hash':'h','suite':'s','steps':[{'together':"
		     "false,'cases':[{'case':0,'key':'gemm engine=x m=1','probe':'gemm','engine':'x','options':{'m':'1'},'kind':"
		     "'timed','target':'gpu0','gpus':['0000:10:00.0'],'phases':'headline','require':'measured','work':{'flop':1e9,"
		     "'limit':'compute.fp32'},'skip':null}]}]}\n{'n':3,'t':4,'type':'begin','case':0,'attempt':1,'pid':5}\n");
	text_addf(&t, "{'n':4,'t':9,'type':'result','case':0,'phase':'sustained','values':{'flop_rate':%g,'window_s':2,'settled':1,"
		      "'samples':200,'half_width_share':0.001,'wrong_checked':9,'wrong_total':9,'wrong_count':0}}\n",
		  rate);
	text_add(&t, "{'n':5,'t':10,'type':'end','case':0,'ending':'done','status':'ok','cause':'','text':''}\n"
		     "{'n':6,'t':11,'type':'close','ending':'done','text':''}\n");
	for (size_t i = 0; i < t.size; i++)
		if (t.data[i] == '\'')
			t.data[i] = '"';
	snprintf(name, sizeof(name), "n%u", rank);
	if (rank)
		rank_dir_path(to, sizeof(to), dir, name, rank);
	else
		snprintf(to, sizeof(to), "%s", dir);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, to);
	assert_int_equal(file_make_dir(to, NULL), STATUS_OK);
	assert_int_equal(file_write(path, t.data, t.size, NULL), STATUS_OK);
	text_release(&t);
}

static void read_it(struct judged *j, const char *dir)
{
	static const struct judge_site nothing = {NULL, NULL};
	struct error err = {0};

	if (judged_read(j, dir, NULL, &nothing, true, &err))
		fail_msg("%s", err.text);
	assert_int_equal(j->record.case_count, NODES);
}

static void test_nodes__a_slow_gpu_among_those_of_other_nodes(void **state)
{
	struct judged j;

	for (unsigned n = 0; n < NODES; n++)
		write_node(*state, n, n == 3 ? 0.9e12 : 1e12 + 1e9 * n);
	read_it(&j, *state);
	for (unsigned n = 0; n < NODES; n++) {
		const struct judgement *one = &j.judgements.of_case[n];

		assert_int_equal(one->judged_by, JUDGED_SIBLINGS);
		assert_int_equal(one->verdict, n == 3 ? VERDICT_FAIL : VERDICT_PASS);
	}
	assert_int_equal(j.judgements.of_case[3].cause, CAUSE_SIBLING_OUTLIER);
	assert_non_null(strstr(j.judgements.of_case[3].reason, "n3/gpu0 (0000:10:00.0): -10."));
	assert_int_equal(j.judgements.exit_code, 1);
	judged_release(&j);
}

static void test_nodes__alike_they_pass(void **state)
{
	struct judged j;

	for (unsigned n = 0; n < NODES; n++)
		write_node(*state, n, 1e12 + 1e9 * n);
	read_it(&j, *state);
	assert_int_equal(j.judgements.exit_code, 0);
	assert_int_equal(j.judgements.verdict, VERDICT_PASS);
	assert_int_equal(j.judgements.difference_count, 0);
	judged_release(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_nodes__a_slow_gpu_among_those_of_other_nodes),
		scratch_test(test_nodes__alike_they_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
