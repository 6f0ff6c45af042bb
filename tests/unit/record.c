/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/record/record.h"
#include "core/file/file.h"
#include "core/text/text.h"
#include "journal/journal.h"
#include "scratch.h"

/* A run of three cases (one skipped) as lines; %s is put before the end of case 0. */
static const char *const lines[] = {
	"{'n':0,'t':1000,'type':'open','schema':1,'seed':7}",
	"{'n':1,'t':1010,'type':'machine','facts':{'cpu':{}}}",
	"{'n':2,'t':1020,'type':'plan','hash':'ab','suite':'tiny','steps':[{'together':false,'cases':["
	"{'case':0,'key':'gemm engine=x "
	"m=1','probe':'gemm','engine':'x','options':{'m':'1'},'kind':'timed','target':'cpu',"
	"'phases':'headline','require':'measured','limit_ms':10,'group':'g','work':{'flop':2e9,'read_bytes':"
	"8,'limit':"
	"'compute.fp32'},'skip':null},"
	"{'case':1,'key':'ecc','probe':'ecc','engine':'','options':{},'kind':'reading','target':'gpu0','"
	"require':'judged',"
	"'skip':{'status':'unavailable','cause':'driver_missing','reason':'no driver'}}]},"
	"{'together':true,'cases':[{'case':2,'key':'gemm engine=x "
	"m=2','probe':'gemm','target':'cpu','require':'nothing'}]}]}",
	"{'n':3,'t':1030,'type':'begin','case':0,'attempt':1,'pid':5}",
	"{'n':4,'t':1040,'type':'phase','case':0,'phase':'burst','t0':1031,'t1':1039}",
	"{'n':5,'t':1041,'type':'samples','case':0,'phase':'burst','batch':10,'ns':[1.5,2.5]}",
	"{'n':6,'t':1042,'type':'samples','case':0,'phase':'burst','batch':10,'ns':[3.5]}",
	"{'n':7,'t':1043,'type':'result','case':0,'phase':'burst','values':{'time_ns_mean':2.5,'variant':'v',"
	"'bits':'0x44'}}",
	"{'n':8,'t':1044,'type':'telemetry','source':'host','signal':'e','kind':'counter','at':[1031,1035,"
	"1033],'v':[1,null,2]}",
	"{'n':9,'t':1045,'type':'result','case':0,'phase':'burst','values':{'power_w':300}}",
	"{'n':10,'t':1046,'type':'telemetry','source':'host','from':1036,'signals':{'e':{'kind':'counter',"
	"'after':[0,2],'v':[3,4]},'f':{'kind':'bits','after':[1],'v':[8]}}}",
	"{'n':11,'t':1046,'type':'end','case':0,'ending':'done','status':'ok','cause':'','text':'well'}",
	"{'n':12,'t':1050,'type':'close','ending':'done','text':''}",
};
enum { LINES = sizeof(lines) / sizeof(lines[0]) };

static void write_lines(const char *dir, unsigned count, const char *more)
{
	struct text t = {0};
	struct error err = {0};
	char path[PATH_MAX];

	for (unsigned i = 0; i < count; i++)
		text_addf(&t, "%s\n", lines[i]);
	text_add(&t, more);
	for (size_t i = 0; i < t.size; i++)
		if (t.data[i] == '\'')
			t.data[i] = '"';
	assert_true(snprintf(path, sizeof(path), "%s/%s", dir, JOURNAL_FILE) < PATH_MAX);
	assert_int_equal(file_write(path, t.data, t.size, &err), STATUS_OK);
	text_release(&t);
}

static void test_record__a_whole_run_is_there(void **state)
{
	struct record r;
	struct error err = {0};
	const struct record_phase *p;
	const struct series *s;
	double v;

	write_lines(*state, LINES, "");
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	assert_int_equal(r.case_count, 3);
	assert_true(r.closed && r.close_ending == ENDING_DONE && !r.cut_bytes);
	assert_non_null(json_object_get(r.machine, "cpu"));
	assert_string_equal(r.cases[0].key, "gemm engine=x m=1");
	assert_string_equal(r.cases[0].limit, "compute.fp32");
	assert_int_equal(r.cases[0].require, REQUIRE_MEASURED);
	assert_true(r.cases[0].work_flop == 2e9 && r.cases[0].work_read == 8 && r.cases[0].work_link == 0);
	assert_true(r.cases[0].ended && r.cases[0].ending == ENDING_DONE && r.cases[0].status == STATUS_OK);
	assert_string_equal(record_option(&r.cases[0], "m"), "1");
	assert_null(record_option(&r.cases[0], "n"));
	p = record_phase(&r.cases[0], "burst");
	assert_non_null(p);
	assert_int_equal(p->ns_count, 3);
	assert_true(p->ns[2] == 3.5 && p->batch == 10 && p->has_window && p->t0_ns == 1031);
	assert_true(record_number(p, "time_ns_mean", &v) && v == 2.5);
	assert_true(record_number(p, "power_w", &v) && v == 300); /* joined */
	assert_true(record_number(p, "bits", &v) && v == 0x44);
	assert_false(record_number(p, "variant", &v));
	assert_string_equal(record_text(p, "variant"), "v");
	assert_null(record_phase(&r.cases[0], "sustained"));
	assert_false(record_number(NULL, "power_w", &v));
	s = record_series(&r, "host", "e");
	assert_non_null(s);
	assert_int_equal(s->kind, SIGNAL_COUNTER);
	assert_int_equal(s->count, 4); /* null is not read; a block goes on where a line of schema 1 ended */
	assert_true(s->t_ns[3] == 1038 && s->value[3] == 4);
	assert_int_equal(record_series(&r, "host", "f")->kind, SIGNAL_BITS);
	record_release(&r);
	assert_null(r.cases);
}

static void test_record__what_did_not_run_is_told_apart(void **state)
{
	struct record r;
	struct error err = {0};

	write_lines(*state, 8, "{'n':8,'t':1");
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	assert_int_equal(r.cut_bytes, 12);
	assert_int_equal(r.cut_line, 9);
	assert_false(r.closed);
	assert_true(r.cases[0].begun && !r.cases[0].ended && r.cases[0].ending == ENDING_CUT);
	assert_true(r.cases[1].skipped && r.cases[1].skip_status == STATUS_UNAVAILABLE);
	assert_int_equal(r.cases[1].skip_cause, CAUSE_DRIVER_MISSING);
	assert_string_equal(r.cases[1].skip_reason, "no driver");
	assert_true(r.cases[1].reading);
	assert_true(r.cases[2].together && r.cases[2].step == 1 && r.cases[2].ending == ENDING_NOT_RUN);
	record_release(&r);
}

static void test_record__a_second_attempt_counts_alone(void **state)
{
	struct record r;
	struct error err = {0};

	write_lines(*state, 8,
		    "{'n':8,'t':1100,'type':'open','schema':2}\n{'n':9,'t':1110,'type':'begin','case':0,'"
		    "attempt':2}\n");
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	assert_int_equal(r.cases[0].phase_count, 0);
	assert_int_equal(r.cases[0].ending, ENDING_CUT);
	assert_int_equal(json_integer_value(json_object_get(r.open, "seed")), 7);
	record_release(&r);
}

static void test_record__a_clock_that_began_anew_goes_on_behind(void **state)
{
	struct record r;
	struct error err = {0};
	const struct record_phase *p;

	write_lines(*state, 8,
		    "{'n':8,'t':10,'type':'open','schema':2}\n{'n':9,'t':20,'type':'begin','case':0}\n"
		    "{'n':10,'t':40,'type':'phase','case':0,'phase':'burst','t0':30,'t1':40}\n");
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	p = record_phase(&r.cases[0], "burst");
	assert_int_equal(p->t0_ns, 1043 + 1000000000u + 20);
	assert_int_equal(r.t_last_ns, 1043 + 1000000000u + 30);
	record_release(&r);
}

/* By the ids of the boot, whatever the clocks say; by the clocks where an old journal has no ids. */
static void test_record__a_reboot_is_told_with_its_case(void **state)
{
	static const struct {
		const char *lines;
		enum record_reboot reboot;
	} rows[] = {
		{"{'n':8,'t':1100,'type':'open','schema':3,'boot':'a'}\n", REBOOT_NONE},
		{"{'n':8,'t':10,'type':'open','schema':3}\n", REBOOT_WITHIN},
		{"{'n':8,'t':1100,'type':'open','schema':3,'boot':'a'}\n"
		 "{'n':9,'t':1110,'type':'open','schema':3,'boot':'b'}\n{'n':10,'t':1120,'type':'begin','case':0}\n",
		 REBOOT_WITHIN},
		{"{'n':8,'t':1100,'type':'open','schema':3,'boot':'a'}\n"
		 "{'n':9,'t':1110,'type':'end','case':0,'ending':'done','status':'ok'}\n"
		 "{'n':10,'t':1120,'type':'open','schema':3,'boot':'b'}\n",
		 REBOOT_BEHIND},
		{"{'n':8,'t':1100,'type':'open','schema':3,'boot':'a'}\n"
		 "{'n':9,'t':1110,'type':'open','schema':3,'boot':'a'}\n",
		 REBOOT_NONE},
	};
	struct error err = {0};
	struct record r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_lines(*state, 8, rows[i].lines);
		assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
		if (r.cases[0].reboot != rows[i].reboot)
			fail_msg("row %zu: %d", i, (int)r.cases[0].reboot);
		record_release(&r);
	}
}

/* Counters of a health line that a later one tells otherwise. */
static void test_record__readings_of_counters_are_held_against_each_other(void **state)
{
	struct error err = {0};
	struct record r;

	write_lines(*state, 8,
		    "{'n':8,'t':1100,'type':'health','gpus':{'0000:1b:00.0':{'t_ns':1090,'counters':{'pcie_replays':2}}}}\n"
		    "{'n':9,'t':1200,'type':'health','gpus':{'0000:1b:00.0':{'t_ns':1190,'counters':{'pcie_replays':5}}}}\n");
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	assert_int_equal(r.cut_bytes, 0);
	assert_int_equal(r.health.change_count, 1);
	assert_string_equal(r.health.change[0].pci, "0000:1b:00.0");
	assert_true(r.health.change[0].t0_ns == 1090 && r.health.change[0].t1_ns == 1190);
	record_release(&r);
}

static void test_record__more_cases_join_the_plan(void **state)
{
	struct record r;
	struct error err = {0};

	write_lines(*state, 4,
		    "{'n':4,'t':1100,'type':'extend','steps':[{'cases':[{'case':3,'key':'late'},{'case':9},{}"
		    "]}]}\n");
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	assert_int_equal(r.case_count, 4);
	assert_string_equal(r.cases[3].key, "late");
	assert_int_equal(r.cases[3].step, 2);
	record_release(&r);
}

static void test_record__wrong_forms_are_passed_over(void **state)
{
	static const char *const odd[] = {
		"'type':'begin'",
		"'type':'begin','case':'x'",
		"'type':'begin','case':77",
		"'type':'end','case':-1",
		"'type':'phase','case':0,'phase':7",
		"'type':'phase','case':0,'phase':'a name that is far too long'",
		"'type':'phase','case':0,'phase':'burst','t0':9,'t1':1",
		"'type':'samples','case':0,'phase':'burst','ns':{}",
		"'type':'samples','case':0,'phase':'burst','ns':['x',null]",
		"'type':'result','case':0,'phase':'burst','values':[]",
		"'type':'telemetry'",
		"'type':'telemetry','source':'a','signal':'b','at':[1],'v':['x']",
		"'type':'telemetry','source':'a','signal':'b','at':[-1],'v':[2]",
		"'type':'telemetry','source':'a','from':1,'signals':{'b':{'after':[-1],'v':[2]}}",
		"'type':'telemetry','source':'a','from':1,'signals':7",
		"'type':'plan'",
		"'type':'extend','steps':7",
		"'type':'end','case':0,'ending':'nonsense','status':5",
		"'type':'close'",
		"'type':'machine','facts':3",
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct record r;
		struct error err = {0};
		char line[256];

		snprintf(line, sizeof(line), "{'n':4,'t':1100,%s}\n", odd[i]);
		write_lines(*state, 4, line);
		assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
		assert_int_equal(r.case_count, 3);
		record_release(&r);
		snprintf(line, sizeof(line), "{'n':0,'t':1100,%s}\n",
			 odd[i]); /* and with nothing before it */
		write_lines(*state, 0, line);
		assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
		record_release(&r);
	}
}

static void test_record__an_end_of_unknown_words_is_no_success(void **state)
{
	struct record r;
	struct error err = {0};

	write_lines(*state, 4,
		    "{'n':4,'t':1100,'type':'end','case':0,'ending':'nonsense','status':'fine'}\n");
	assert_int_equal(record_read(&r, *state, &err), STATUS_OK);
	assert_int_equal(r.cases[0].ending, ENDING_CUT);
	assert_int_equal(r.cases[0].status, STATUS_BUG);
	record_release(&r);
}

static void test_record__an_unknown_schema_is_refused(void **state)
{
	static const char *const odd[][2] = {
		{",'schema':4", "schema 4;"},
		{",'schema':99", "schema 99;"},
		{",'schema':0", "schema 0;"},
		{",'schema':-1", "schema -1;"},
		{",'schema':2.5", "schema 2.5;"},
		{",'schema':'x'", "schema \"x\";"},
		{",'schema':null", "schema null;"},
		{",'schema':true", "schema true;"},
		{"", "schema (none);"},
	};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (unsigned behind = 0; behind <= 8;
		     behind += 8) { /* in the first line, and of a resumed run */
			struct error err = {0};
			struct record r;
			char line[128];

			snprintf(line, sizeof(line), "{'n':%u,'t':1100,'type':'open'%s}\n", behind,
				 odd[i][0]);
			write_lines(*state, behind, line);
			assert_int_equal(record_read(&r, *state, &err), STATUS_BAD_INPUT);
			assert_non_null(strstr(err.text, odd[i][1]));
			assert_non_null(strstr(err.text, JOURNAL_FILE ": written in schema "));
			assert_non_null(strstr(err.text, "reads 1 to 3: use the version that wrote it"));
			assert_null(r.cases);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_record__a_whole_run_is_there),
		scratch_test(test_record__what_did_not_run_is_told_apart),
		scratch_test(test_record__a_second_attempt_counts_alone),
		scratch_test(test_record__a_clock_that_began_anew_goes_on_behind),
		scratch_test(test_record__more_cases_join_the_plan),
		scratch_test(test_record__wrong_forms_are_passed_over),
		scratch_test(test_record__an_end_of_unknown_words_is_no_success),
		scratch_test(test_record__a_reboot_is_told_with_its_case),
		scratch_test(test_record__readings_of_counters_are_held_against_each_other),
		scratch_test(test_record__an_unknown_schema_is_refused),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
