/* SPDX-License-Identifier: Apache-2.0 */
#include "run_bed.h"
#include <fcntl.h>

volatile sig_atomic_t run_bed_stop;

/* A line of a GPU that is as hot as it may be, or calm. */
static int gpu_line(char *line, size_t size, const char *pci, bool hot, uint64_t now)
{
	return snprintf(line, size,
			"{\"source\":\"gpu:%s\",\"signal\":\"temperature_c\",\"kind\":\"gauge\",\"at\":[%llu]"
			",\"v\":[%d]}\n",
			pci, (unsigned long long)now, hot ? 88 : 40);
}

/* A sampler as the environment wants it: good, silent, dying, one that writes garbage, "hot:PCI" of that
 * GPU, or "once:FILE", which dies if it can make that file, and is good if the file is there. */
static int sampler(void)
{
	const char *how = getenv("ASSAY_TEST_SAMPLER");
	const struct clock *clock = clock_monotonic();

	signal(SIGTERM, SIG_DFL);
	if (how && !strcmp(how, "die"))
		return 3;
	if (how && !strncmp(how, "once:", 5) && open(how + 5, O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0)
		return 3;
	for (uint64_t n = 0;; n++) {
		char line[400];
		uint64_t now = clock_now_ns(clock);
		int size;

		if (!how || !strcmp(how, "silent")) {
			pause();
			continue;
		}
		if (!strcmp(how, "garbage"))
			size = snprintf(line, sizeof(line), "{]garbage %llu\n{\"source\":7}\n",
					(unsigned long long)n);
		else if (!strncmp(how, "hot:", 4))
			size = gpu_line(line, sizeof(line), how + 4, n > 40, now);
		else
			size = snprintf(line, sizeof(line),
					"{\"source\":\"host\",\"signal\":\"power_w\",\"kind\":\"gauge\","
					"\"at\":[%llu],\"v\":[250]}\n"
					"{\"source\":\"host\",\"signal\":\"energy_j\",\"kind\":\"counter\","
					"\"at\":[%llu],\"v\":[%llu]}\n",
					(unsigned long long)now, (unsigned long long)now,
					(unsigned long long)(n / 2));
		if (write(3, line, (size_t)size) != size)
			return 0;
		clock_sleep_ns(clock, 5000000);
	}
}

/* The helper that reads counters: what the environment says, word for word; "": NVML is not there. */
static int facts(int argc, char **argv)
{
	const char *answer = getenv(argc > 2 && !strcmp(argv[2], "alive") ? "ASSAY_TEST_ALIVE" : "ASSAY_TEST_HEALTH");

	if (answer && !strcmp(answer, "hang"))
		for (;;)
			pause();
	return puts(answer && *answer ? answer : "{\"cause\":\"library_missing\",\"why\":\"no NVML\"}") < 0;
}

bool run_bed_child(int argc, char **argv, int *code)
{
	if (argc < 2 || strncmp(argv[1], "__", 2))
		return false;
	if (!strcmp(argv[1], "__facts")) {
		*code = facts(argc, argv);
		return true;
	}
	*code = strcmp(argv[1], "__worker") ? sampler() : worker_main(probe_list);
	return true;
}

static void keep_warning(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	struct run_bed *b = arg;
	size_t used = strlen(b->warnings);

	(void)topic;
	if (level >= LOG_WARN)
		snprintf(b->warnings + used, sizeof(b->warnings) - used, "%s\n", line);
}

static void read_machine(struct run_bed *b, bool gpus)
{
	const char *dir = gpus ? SOURCE_DIR "/tests/replay/derived-h100-sxm-8"
			       : SOURCE_DIR "/tests/replay/cpu-vm-2core";
	struct machine *recorded = NULL;
	json_t *facts;

	assert_int_equal(machine_read(&recorded, LAYER_SOFTWARE, dir, NULL, &b->err), STATUS_OK);
	facts = json_deep_copy(machine_json(recorded));
	json_object_set_new(facts, "live", json_true());
	assert_int_equal(machine_from_json(&b->machine, facts, &b->err), STATUS_OK);
	json_decref(facts);
	machine_free(recorded);
}

void run_bed_plan(struct run_bed *b, const char *dir, bool gpus, const char *cases)
{
	static const char *const command[] = {"assay", "test", NULL};
	const struct plan_options wishes = {.beside = true};
	struct text t = {0};
	struct suite *s = NULL;

	*b = (struct run_bed){.log = {.sink = keep_warning}};
	b->log.arg = b;
	b->o = (struct run_options){.dir = dir,
				    .command = command,
				    .seed = 5,
				    .stop = &run_bed_stop,
				    .log = &b->log,
				    .clock = clock_monotonic()};
	run_bed_stop = 0;
	read_machine(b, gpus);
	text_addf(&t, "name: tiny\ncases:\n%s", cases);
	if (suite_parse(&s, "tiny.yaml", t.data, t.size, &b->err) ||
	    plan_build(&b->plan, s, b->machine, probe_list, &wishes, &b->err))
		fail_msg("%s", b->err.text);
	suite_free(s);
	text_release(&t);
}

enum status run_bed_run(struct run_bed *b)
{
	enum status st = run_plan(&b->plan, b->machine, probe_list, &b->o, &b->summary, &b->err);

	if (!st)
		assert_int_equal(record_read(&b->record, b->o.dir, &b->err), STATUS_OK);
	return st;
}

void run_bed_release(struct run_bed *b)
{
	record_release(&b->record);
	plan_release(&b->plan);
	machine_free(b->machine);
}

static void stop_at(void *arg, size_t done, size_t total, const char *what, double seconds_left)
{
	const char *colon = strrchr(what, ':');

	(void)done, (void)total, (void)seconds_left;
	if (colon && !strcmp(colon + 2, (const char *)arg))
		run_bed_stop = 1;
}

void run_bed_stop_in(struct run_bed *bed, const char *phase)
{
	bed->o.progress = (struct run_progress){stop_at, (void *)(uintptr_t)phase};
}

void run_bed_expect(const struct run_bed *b, size_t id, enum ending ending, enum status status,
		    enum cause cause)
{
	const struct record_case *c = &b->record.cases[id];

	if (c->ending != ending || c->status != status || c->cause != cause)
		fail_msg("case %zu: %s %s %s (%s) instead of %s %s %s", id, ending_name(c->ending),
			 status_name(c->status), cause_name(c->cause), c->text, ending_name(ending),
			 status_name(status), cause_name(cause));
}

struct isolate_run {
	unsigned id, attempts;
	int pid;
};

static int look(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	struct isolate_run *h = arg;

	(void)t_ns;
	if (type == JOURNAL_BEGIN && json_integer_value(json_object_get(body, "case")) == (json_int_t)h->id) {
		h->attempts++;
		h->pid = (int)json_integer_value(json_object_get(body, "pid"));
	}
	return 0;
}

int run_bed_pid(const char *dir, unsigned id, unsigned *attempts)
{
	struct isolate_run h = {.id = id};
	struct error err = {0};
	uint64_t cut;

	assert_int_equal(journal_read(dir, look, &h, &cut, &err), STATUS_OK);
	if (attempts)
		*attempts = h.attempts;
	return h.pid;
}
