/* SPDX-License-Identifier: Apache-2.0 */
/* Words for shells, names of hosts, and what is wrong with a plan. */
#include "scratch.h"
#include "test.h"
#include "core/process/process.h"
#include "launch/script.h"

/* What a shell makes of a quoted word. */
static char *as_shell_reads(const char *quoted)
{
	char command[1024], *out = NULL;
	const char *const argv[] = {"sh", "-c", command, NULL};
	const struct process_spec spec = {.argv = argv, .cpu_numa = -1};
	struct error err = {0};
	int code = 0;

	snprintf(command, sizeof(command), "printf '%%s|' %s", quoted);
	if (process_run(&spec, 20000, 65536, &out, NULL, &code, &err))
		fail_msg("%s", err.text);
	assert_int_equal(code, 0);
	return out;
}

static void test_words__a_shell_reads_back_each_quoted_word(void **state)
{
	static const char *const words[] = {"plain",
					    "",
					    "two words",
					    "it's",
					    "'",
					    "''",
					    "$(touch /tmp/x)",
					    "`id`",
					    "a;b&c|d>e<f",
					    "\\",
					    "\\'",
					    "*",
					    "~",
					    "#no comment",
					    "!history",
					    "\"double\"",
					    "new\nline",
					    "-n",
					    "A=b",
					    "{a,b}",
					    "\xc3\xa9t\xc3\xa9",
					    "gpu[1-2]"};
	char expected[256];

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct text t = {0};
		char *read;

		command_words_quote(&t, words[i]);
		read = as_shell_reads(text_str(&t));
		snprintf(expected, sizeof(expected), "%s|", words[i]);
		assert_string_equal(read, expected);
		free(read);
		text_release(&t);
	}
}

static void test_words__twice_quoted_is_read_back_in_two_steps(void **state)
{
	struct command_words w = {0};
	struct text once = {0}, twice = {0};
	char *read;

	(void)state;
	command_words_add(&w, "a b");
	command_words_addf(&w, "%s", "it's $HOME");
	command_words_join(&once, &w);
	command_words_quote(&twice, text_str(&once));
	read = as_shell_reads(text_str(&twice));
	read[strlen(read) - 1] = '\0';
	assert_string_equal(read, text_str(&once));
	free(read);
	read = as_shell_reads(text_str(&once));
	assert_string_equal(read, "a b|it's $HOME|");
	free(read);
	text_release(&once);
	text_release(&twice);
	command_words_release(&w);
}

static void test_words__more_than_fit_are_told(void **state)
{
	struct command_words w = {0};

	(void)state;
	for (size_t i = 0; i < COMMAND_WORDS_MAX; i++)
		command_words_add(&w, "x");
	assert_false(w.failed);
	assert_null(w.word[COMMAND_WORDS_MAX]);
	command_words_add(&w, "x");
	assert_true(w.failed);
	command_words_release(&w);
}

static void assert_refused(const char *list, const char *says)
{
	struct hosts h = {0};
	struct error err = {0};

	assert_int_equal(hosts_parse(&h, list, "--hosts", &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	hosts_release(&h);
}

static void test_hosts__lists_and_brackets_are_read(void **state)
{
	struct hosts h = {0};
	struct error err = {0};

	(void)state;
	assert_int_equal(hosts_parse(&h, "gpu1,root@gpu2.example.org,::1", "--hosts", &err), STATUS_OK);
	assert_int_equal(h.count, 3);
	assert_string_equal(h.name[1], "root@gpu2.example.org");
	assert_string_equal(hosts_address(h.name[1]), "gpu2.example.org");
	assert_string_equal(hosts_address(h.name[2]), "::1");
	hosts_release(&h);
	assert_int_equal(hosts_parse(&h, "gpu[08-10],login", "--hosts", &err), STATUS_OK);
	assert_int_equal(h.count, 4);
	assert_string_equal(h.name[2], "gpu10");
	hosts_release(&h);
}

static void test_hosts__hostile_text_is_refused(void **state)
{
	char longer[400];

	(void)state;
	assert_refused("", "names no host");
	assert_refused("a,,b", "empty host name");
	assert_refused("a,", "empty host name");
	assert_refused("-oProxyCommand=id", "characters that no host name has");
	assert_refused("-a", "is not written as HOST");
	assert_refused("user@-a", "is not written as HOST");
	assert_refused("@a", "is not written as HOST");
	assert_refused("user@", "is not written as HOST");
	assert_refused("a;id", "characters that no host name has");
	assert_refused("a b", "characters that no host name has");
	assert_refused("$(id)", "characters that no host name has");
	assert_refused("a\nb", "characters that no host name has");
	assert_refused("\xc3\xa9", "characters that no host name has");
	assert_refused("a[1-2", "node list");
	assert_refused("a,b,a", "host a is listed twice");
	assert_refused("a,root@A", "host A is listed twice");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_refused(longer, "too long for a host name");
}

static void write_file(char path[512], const char *folder, const char *text)
{
	FILE *f;

	snprintf(path, 512, "%s/hosts", folder);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_hosts__a_file_has_comments_and_lines(void **state)
{
	struct hosts h = {0};
	struct error err = {0};
	char path[512], place[600];

	write_file(path, *state, "# the rack\ngpu1   # first\n\n  gpu[2-3]\r\n");
	assert_int_equal(hosts_read(&h, path, &err), STATUS_OK);
	assert_int_equal(h.count, 3);
	assert_string_equal(h.name[0], "gpu1");
	assert_string_equal(h.name[2], "gpu3");
	hosts_release(&h);

	write_file(path, *state, "gpu1\ngpu2 slots=8\n");
	assert_int_equal(hosts_read(&h, path, &err), STATUS_BAD_INPUT);
	snprintf(place, sizeof(place), "%s:2: host \"gpu2 slots=8\"", path);
	assert_non_null(strstr(err.text, place));
	hosts_release(&h);
	error_clear(&err);

	write_file(path, *state, "# nobody\n");
	assert_int_equal(hosts_read(&h, path, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "names no host"));
	hosts_release(&h);
}

static struct launch_plan whole(void)
{
	static const char *const words[] = {"check", "quick"};

	return (struct launch_plan){.how = LAUNCH_SLURM,
				    .program = "/opt/assay",
				    .build = "0123456789abcdef",
				    .words = {words, 2},
				    .nodes = 2,
				    .ranks = 8,
				    .gpus = 8};
}

static void assert_wrong(const struct launch_plan *p, const char *says)
{
	struct error err = {0};

	assert_int_equal(launch_check(p, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, says))
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

static void test_check__times_of_slurm(void **state)
{
	static const char *const right[] = {"30", "1:30", "1:30:00", "1-12", "1-12:30", "1-12:30:15"};
	static const char *const wrong[] = {"",	  "30m",       "1:",  ":30",  "1:2:3:4", "-1",
					    "1-", "1-2:3:4:5", "1.5", "30 #", "1:300"};
	struct launch_plan p = whole();

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		p.time = right[i];
		assert_int_equal(launch_check(&p, NULL), STATUS_OK);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		p.time = wrong[i];
		assert_wrong(&p, "is not a time that Slurm accepts");
	}
}

static void test_check__texts_that_would_leave_their_line(void **state)
{
	static const char *const line[] = {"check", "a\nb"}, *const env[] = {"A=1", NULL},
				 *const no_env[] = {"A", NULL}, *const digit[] = {"1A=b", NULL},
				 *const ours[] = {"ASSAY_RANK=1", NULL},
				 *const library[] = {"ASSAY_LIB_NCCL=/x", NULL};
	struct launch_plan p = whole();

	(void)state;
	p.words = (struct opt_words){line, 2};
	assert_wrong(&p, "word 2 after -- contains control characters");
	p = whole();
	p.partition = "gpu --wrap=id";
	assert_wrong(&p, "--partition \"gpu --wrap=id\" is not one word");
	p = whole();
	p.sbatch = "--x\nid";
	assert_wrong(&p, "--sbatch contains control characters");
	p = whole();
	p.master = "";
	assert_wrong(&p, "--master is empty");
	p.master = ":29500";
	assert_wrong(&p, "--master \":29500\" has no host name");
	p.master = "gpu1:99999";
	assert_wrong(&p, "the port of --master");
	p.master = "[::1";
	assert_wrong(&p, "is not written as [ADDRESS]:PORT");
	p = whole();
	p.env = (struct opt_words){no_env, 1};
	assert_wrong(&p, "is not written as NAME=value");
	p.env = (struct opt_words){digit, 1};
	assert_wrong(&p, "is not written as NAME=value");
	p.env = (struct opt_words){ours, 1};
	assert_wrong(&p, "--env ASSAY_RANK: assay launch sets this variable itself");
	p.env = (struct opt_words){env, 1};
	assert_int_equal(launch_check(&p, NULL), STATUS_OK);
	p.env = (struct opt_words){library, 1};
	assert_int_equal(launch_check(&p, NULL), STATUS_OK);
}

static void test_check__shapes(void **state)
{
	struct launch_plan p = whole();

	(void)state;
	p.ranks = 0;
	assert_wrong(&p, "0 ranks per node");
	p = whole();
	assert_int_equal(hosts_parse(&p.hosts, "a,b,c", "--hosts", NULL), STATUS_OK);
	assert_wrong(&p, "--nodes is 2, but there are 3 hosts");
	hosts_release(&p.hosts);
	p = whole();
	p.nodes = 65536;
	assert_wrong(&p, "ranks in all");
}

/* What ssh hands to the host's shell is one word, and the shell there makes of it the words that were meant.
 */
static void test_script__the_hosts_shell_gets_each_word(void **state)
{
	static const char *const words[] = {"check", "--site", "it's mine; id"}, *const env[] = {"A=1",
												 "B=$HOME"};
	struct launch_plan p = whole();
	struct command_words w = {0};
	char *read;

	(void)state;
	p.how = LAUNCH_SSH;
	p.derive = true;
	p.words = (struct opt_words){words, 3};
	p.env = (struct opt_words){env, 2};
	assert_int_equal(hosts_parse(&p.hosts, "gpu1,root@gpu2", "--hosts", NULL), STATUS_OK);
	script_ssh(&w, &p, 1, true);
	assert_false(w.failed);
	assert_string_equal(w.word[w.count - 3], "--");
	assert_string_equal(w.word[w.count - 2], "root@gpu2");
	read = as_shell_reads(w.word[w.count - 1]);
	assert_string_equal(
		read,
		"/opt/assay|__ranks|--first|8|--count|8|--size|16|--master|gpu1|--build|0123456789abcdef|"
		"--secret-stdin|--lifeline|--env|A=1 B=$HOME|--tell|--|check|--site|it's mine; id|");
	free(read);
	command_words_release(&w);
	hosts_release(&p.hosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words__a_shell_reads_back_each_quoted_word),
		cmocka_unit_test(test_words__twice_quoted_is_read_back_in_two_steps),
		cmocka_unit_test(test_words__more_than_fit_are_told),
		cmocka_unit_test(test_hosts__lists_and_brackets_are_read),
		cmocka_unit_test(test_hosts__hostile_text_is_refused),
		scratch_test(test_hosts__a_file_has_comments_and_lines),
		cmocka_unit_test(test_check__times_of_slurm),
		cmocka_unit_test(test_check__texts_that_would_leave_their_line),
		cmocka_unit_test(test_check__shapes),
		cmocka_unit_test(test_script__the_hosts_shell_gets_each_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
