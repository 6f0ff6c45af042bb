/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of a machine, as processes: `watch_read __watch node` plays assay. Every row of the catalogue is
 * read from a machine of fakes; then drivers that hang, crash, lose a GPU or are missing.
 */
#include "watch_machine.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <zstd.h>
#include "core/clock.h"
#include "core/process/process.h"
#include "watch/feed.h"
#include "watch/read/out.h"
#include "watch/read/reader.h"
#include "watch/record.h"

enum { PATIENCE_S = 60 };

static volatile sig_atomic_t stop;

static void on_term(int signal)
{
	(void)signal;
	stop = 1;
}

/* What src/cmd/internal/watch.c does; the log and the limits come from the environment. */
static int play(int argc, char **argv)
{
	static int (*const parts[])(const struct reader_spec *) = {reader_node,	 reader_gpu,  reader_host,
								   reader_ports, reader_runs, reader_names};
	static const char *const names[] = {"node", "gpu", "host", "ports", "runs", "names"};
	struct reader_spec spec = {.interval = 1,
				   .slow = 5,
				   .sys = "/sys",
				   .proc = "/proc",
				   .kmsg = "/dev/null",
				   .skip = "none",
				   .stop = &stop};
	const struct sigaction action = {.sa_handler = on_term};

	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (getenv("TEST_KMSG"))
		spec.kmsg = getenv("TEST_KMSG");
	if (getenv("TEST_LIMIT"))
		spec.limit = strtod(getenv("TEST_LIMIT"), NULL);
	for (int i = 3; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--lifeline"))
			spec.lifeline = true;
		else if (!strcmp(argv[i], "--interval"))
			spec.interval = strtod(value, NULL);
		else if (!strcmp(argv[i], "--slow"))
			spec.slow = strtod(value, NULL);
		else if (!strcmp(argv[i], "--sys"))
			spec.sys = value;
		else if (!strcmp(argv[i], "--proc"))
			spec.proc = value;
		else if (!strcmp(argv[i], "--runs"))
			spec.runs = value;
		else if (!strcmp(argv[i], "--skip"))
			spec.skip = value;
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strcmp(argv[2], names[i]))
			return parts[i](&spec);
	return 64;
}

struct bed {
	const char *root;
	char sys[PATH_MAX], proc[PATH_MAX], runs[PATH_MAX], kmsg[PATH_MAX];
	struct watch_feed *feed;
};

static void bed_start(struct bed *b, const char *root, double interval)
{
	struct watch_feed_spec spec = {.interval = interval, .slow = 2 * interval};
	struct error err = {0};

	b->root = root;
	snprintf(b->sys, sizeof(b->sys), "%s/sys", root);
	snprintf(b->proc, sizeof(b->proc), "%s/proc", root);
	snprintf(b->runs, sizeof(b->runs), "%s/runs", root);
	snprintf(b->kmsg, sizeof(b->kmsg), "%s/kmsg", root);
	setenv("TEST_KMSG", b->kmsg, 1);
	spec.sys = b->sys;
	spec.proc = b->proc;
	spec.runs = b->runs;
	if (watch_feed_start(&b->feed, &spec, &err))
		fail_msg("%s", err.text);
}

static void clear_stage(void)
{
	static const char *const names[] = {"FAKE_NVML_HANG",	 "FAKE_NVML_CRASH", "FAKE_NVML_LOST",
					    "FAKE_NVML_AFTER",	 "FAKE_NVML_UNTIL", "FAKE_NVML_BEFORE",
					    "FAKE_NVML_COUNTED", "FAKE_NVML_RATE",  "FAKE_NVML_RET",
					    "FAKE_NVML_XID",	 "TEST_LIMIT",	    "FAKE_NVML_INIT",
					    "FAKE_NVML_VALUE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
}

static void bed_stop(struct bed *b)
{
	watch_feed_close(b->feed);
	clear_stage();
}

static const struct watch_state *state_of(const struct bed *b)
{
	return watch_feed_state(b->feed);
}

/* The first entity of a scope whose label has this value. */
static const struct watch_entity *find(const struct watch_state *s, enum metric_scope scope,
				       const char *label, const char *value)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const char *have = watch_label(&s->entity[i], label);

		if (s->entity[i].scope == scope && have && !strcmp(have, value))
			return &s->entity[i];
	}
	return NULL;
}

static const struct watch_entity *gpu(const struct bed *b, unsigned i)
{
	return find(state_of(b), METRIC_SCOPE_GPU, "pci_bus_id", i ? "0000:2b:00.0" : "0000:1b:00.0");
}

/* A label of the process with this number; NULL: there is none yet. */
static const char *process_label(const struct bed *b, const char *pid, const char *label)
{
	const struct watch_entity *e = find(state_of(b), METRIC_SCOPE_PROCESS, "pid", pid);

	return e ? watch_label(e, label) : NULL;
}

static double value_of(const struct watch_entity *e, enum catalogue row)
{
	const struct watch_value *v = e ? watch_get(e, row) : NULL;

	return v ? v->value : -1e300;
}

#define WAIT(bed, condition)                                                                                 \
	do {                                                                                                 \
		uint64_t patience_ns = clock_now_ns(clock_monotonic()) + PATIENCE_S * 1000000000ull;         \
		while (!(condition) && clock_now_ns(clock_monotonic()) < patience_ns)                        \
			turn(bed);                                                                           \
		if (!(condition))                                                                            \
			give_up(bed, #condition);                                                            \
	} while (0)

static void turn(struct bed *b)
{
	struct pollfd p = {.fd = watch_feed_fd(b->feed), .events = POLLIN};

	poll(&p, 1, 20);
	watch_feed_poll(b->feed);
}

static void give_up(struct bed *b, const char *condition)
{
	struct text all = {0};

	watch_state_write(state_of(b), &all);
	print_message("%s\n%s\n", text_str(&all), watch_feed_why(b->feed) ? watch_feed_why(b->feed) : "");
	fail_msg("waited in vain for %s", condition);
}

/* Whether some entity has had a value of every row so far. */
static bool saw_all(const struct bed *b, bool *seen)
{
	const struct watch_state *s = state_of(b);
	bool all = true;

	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		enum metric_scope scope = catalogue_row((enum catalogue)c)->scope;

		for (uint32_t i = 0; i < s->count; i++)
			seen[c] |= watch_get(&s->entity[i], (enum catalogue)c) != NULL;
		all &= seen[c] || scope == METRIC_SCOPE_SOURCE || scope == METRIC_SCOPE_EXPORTER;
	}
	return all;
}

/*
 * Records all lines from now on. A source's reason may last for one reading only. A test that looks at the
 * state now and then can miss it, so it looks at the lines.
 */
static struct watch_recorder *bed_record(struct bed *b)
{
	struct watch_recorder *r = NULL;
	struct error err = {0};
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/recorded", b->root);
	if (watch_recorder_open(&r, path, 1, &err))
		fail_msg("%s", err.text);
	watch_feed_record(b->feed, r, 0);
	return r;
}

/* Ends the recording. Appends its lines, at most 16 MB. */
static void bed_recorded(struct bed *b, struct watch_recorder *r, struct text *out)
{
	enum { RECORDED_MOST = 16 << 20 };
	char path[PATH_MAX + 16], *packed, block[1 << 16];
	ZSTD_DStream *stream = ZSTD_createDStream();
	struct error err = {0};
	ZSTD_inBuffer in = {0};
	size_t size;

	watch_feed_record(b->feed, NULL, 0);
	assert_int_equal(watch_recorder_close(r, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/recorded", b->root);
	assert_int_equal(file_read(&packed, &size, path, RECORDED_MOST, &err), STATUS_OK);
	in = (ZSTD_inBuffer){.src = packed, .size = size};
	assert_non_null(stream);
	for (bool more = true; more && out->size < RECORDED_MOST;) {
		ZSTD_outBuffer room = {.dst = block, .size = sizeof(block)};

		assert_false(ZSTD_isError(ZSTD_decompressStream(stream, &room, &in)));
		text_add_bytes(out, block, room.pos);
		more = in.pos < in.size || room.pos == room.size;
	}
	ZSTD_freeDStream(stream);
	free(packed);
}

/* The rest of the first line with these words, behind them; fails if there is none. Owner: caller. */
static char *recorded_after(const struct text *lines, const char *words)
{
	const char *at = strstr(text_str(lines), words);
	char *rest;

	if (!at)
		fail_msg("no line has \"%s\"", words);
	rest = strndup(at + strlen(words), strcspn(at + strlen(words), "\n"));
	assert_non_null(rest);
	return rest;
}

static void change(const struct bed *b)
{
	static unsigned n;
	char path[PATH_MAX];
	FILE *f;

	n++;
	machine_file(b->root, "proc/stat", "cpu  %u 0 100 %u 0 0 0 0\ncpu0 1\ncpu1 1\nbtime 1700000000\n",
		     100 + n, 800 + n);
	snprintf(path, sizeof(path), "%s/runs/2026-11-28-serve/requests.jsonl", b->root);
	f = fopen(path, "a");
	assert_true(f && fputs("{\"first_token_s\":0.25}\n", f) >= 0 && !fclose(f));
}

/* Values with their units. */
static void check_gpus(struct bed *b)
{
	const struct watch_state *s = state_of(b);
	const struct watch_entity *e;

	assert_true(value_of(gpu(b, 0), CATALOGUE_GPU_POWER) == 69);
	assert_true(value_of(gpu(b, 0), CATALOGUE_GPU_SM_CLOCK) == 345e6);
	assert_true(value_of(gpu(b, 0), CATALOGUE_GPU_MEMORY) == 81559.0 * 1048576);
	assert_true(value_of(gpu(b, 0), CATALOGUE_GPU_HELD_IDLE) == 1);
	assert_true(value_of(gpu(b, 0), CATALOGUE_GPU_HELD_POWER) == 0);
	assert_true(value_of(gpu(b, 0), CATALOGUE_GPU_NVLINK_REPLAY) == 4);
	assert_string_equal(watch_why(gpu(b, 1), CATALOGUE_GPU_NVLINK_REPLAY), "the GPU has no NVLinks");
	assert_string_equal(watch_label(gpu(b, 0), "device"), "nvidia0");
	assert_string_equal(watch_label(gpu(b, 0), "modelName"), "NVIDIA H100 80GB HBM3");
	assert_string_equal(watch_label(gpu(b, 1), "UUID"), "GPU-two");
	e = find(s, METRIC_SCOPE_XID, "xid", "79");
	assert_true(value_of(e, CATALOGUE_XID_COUNT) == 2);
	assert_string_equal(watch_label(e, "since"), "boot");
	assert_null(find(s, METRIC_SCOPE_XID, "xid", "13"));
	assert_true(value_of(find(s, METRIC_SCOPE_NVLINK, "nvlink", "1"), CATALOGUE_NVLINK_RX) ==
		    2000 * 1024);
	e = find(s, METRIC_SCOPE_GPU_INSTANCE, "GPU_I_ID", "7");
	assert_string_equal(watch_label(e, "GPU_I_PROFILE"), "1g.10gb");
	assert_true(value_of(e, CATALOGUE_INSTANCE_MEMORY) == 10.0 * (1 << 30));
	assert_true(fabs(value_of(gpu(b, 0), CATALOGUE_GPU_TENSOR_ACTIVE) - 0.8) < 1e-9);
	assert_true(fabs(value_of(e, CATALOGUE_INSTANCE_TENSOR_ACTIVE) - 0.4) < 1e-9);
}

static void check_processes(struct bed *b)
{
	const struct watch_state *s;
	const struct watch_entity *e;

	WAIT(b, process_label(b, "4242", "command"));
	WAIT(b, process_label(b, "4243", "comm"));
	s = state_of(b);
	e = find(s, METRIC_SCOPE_PROCESS, "pid", "4242");
	assert_string_equal(watch_label(e, "comm"), "python3");
	assert_string_equal(watch_label(e, "container"), "0123456789ab");
	assert_string_equal(watch_label(e, "hpc_job"), "77");
	assert_string_equal(watch_label(gpu(b, 0), "hpc_job"), "77");
	assert_string_equal(watch_label(gpu(b, 0), "container"), "0123456789ab");
	assert_non_null(watch_label(e, "user"));
	assert_true(value_of(e, CATALOGUE_PROCESS_SM) == 0.4);
	e = find(s, METRIC_SCOPE_PROCESS, "pid", "4243");
	assert_string_equal(watch_why(e, CATALOGUE_PROCESS_SM), "the driver has no sample of this process");
}

static void check_host(struct bed *b)
{
	const struct watch_state *s = state_of(b);
	const struct watch_entity *e;

	e = find(s, METRIC_SCOPE_PORT, "device", "mlx5_0");
	assert_true(value_of(e, CATALOGUE_PORT_TX) == 400 && value_of(e, CATALOGUE_PORT_RATE) == 50e9);
	assert_true(value_of(find(s, METRIC_SCOPE_PORT_ERROR, "error", "symbol_error"),
			     CATALOGUE_PORT_ERRORS) == 300);
	e = find(s, METRIC_SCOPE_INTERFACE, "interface", "eth0");
	assert_true(value_of(e, CATALOGUE_INTERFACE_TX) == 2000 &&
		    value_of(e, CATALOGUE_INTERFACE_ERRORS) == 10);
	assert_null(find(s, METRIC_SCOPE_INTERFACE, "interface", "veth1"));
	assert_null(find(s, METRIC_SCOPE_INTERFACE, "interface", "lo"));
	e = find(s, METRIC_SCOPE_DISK, "disk", "nvme0n1");
	assert_true(value_of(e, CATALOGUE_DISK_WRITTEN) == 4000 * 512 &&
		    value_of(e, CATALOGUE_DISK_BUSY) == 0.5);
	assert_int_equal(s->of_scope[METRIC_SCOPE_DISK], 1);
}

static void check_runs(struct bed *b)
{
	const struct watch_state *s = state_of(b);
	const struct watch_entity *e;

	e = find(s, METRIC_SCOPE_RUN, "kind", "train");
	assert_string_equal(watch_label(e, "model"), "SmolLM2");
	assert_true(value_of(e, CATALOGUE_RUN_STEPS) == 200 && value_of(e, CATALOGUE_RUN_LOSS) == 2.5);
	assert_true(value_of(e, CATALOGUE_RUN_PART_FORWARD) == 0.125 &&
		    value_of(e, CATALOGUE_RUN_PART_BACKWARD) == 0.25 &&
		    value_of(e, CATALOGUE_RUN_PART_OPTIMIZER) == 0.0625 &&
		    value_of(e, CATALOGUE_RUN_PART_WAIT) == 0.03125);
	e = find(s, METRIC_SCOPE_RUN, "kind", "serve");
	assert_true(value_of(e, CATALOGUE_RUN_CACHE) == 0.25);
	e = find(s, METRIC_SCOPE_CHECK, "suite", "quick");
	assert_true(value_of(e, CATALOGUE_CHECK_WARN) == 1 && value_of(e, CATALOGUE_CHECK_PASS) == 0);
}

static void test_every_row_is_read(void **state)
{
	bool seen[CATALOGUE_COUNT] = {false};
	struct bed b;
	const struct watch_state *s;
	uint64_t end_ns = clock_now_ns(clock_monotonic()) + PATIENCE_S * 1000000000ull;

	machine_make(*state);
	setenv("FAKE_NVML_RATE", "data_tx=1000", 1);
	bed_start(&b, *state, 0.1);
	while (!saw_all(&b, seen) && clock_now_ns(clock_monotonic()) < end_ns) {
		change(&b);
		turn(&b);
	}
	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		enum metric_scope scope = catalogue_row((enum catalogue)c)->scope;

		if (!seen[c] && scope != METRIC_SCOPE_SOURCE && scope != METRIC_SCOPE_EXPORTER)
			print_message("not read: %s %s\n", catalogue_row((enum catalogue)c)->name,
				      catalogue_row((enum catalogue)c)->fixed);
	}
	assert_true(saw_all(&b, seen));
	s = state_of(&b);
	assert_string_equal(s->boot, "b-1");
	check_gpus(&b);
	check_processes(&b);
	check_host(&b);
	check_runs(&b);
	s = state_of(&b);
	/* every label is declared */
	for (uint32_t i = 0; i < s->count; i++)
		for (unsigned k = 0; s->entity[i].scope < METRIC_SCOPE_COUNT && k < s->entity[i].label_count;
		     k++)
			assert_true(metric_scope_has(s->entity[i].scope, s->entity[i].label[k].name, false));
	/* a run that ends is gone */
	machine_file(*state, "proc/locks", "2: FLOCK  ADVISORY  WRITE 501 08:02:131 0 EOF\n");
	WAIT(&b, !find(state_of(&b), METRIC_SCOPE_RUN, "kind", "serve"));
	assert_non_null(find(state_of(&b), METRIC_SCOPE_RUN, "kind", "train"));
	bed_stop(&b);
}

/* A GPU cannot have more instances than the limit; whatever a driver lists beyond it is not read. */
static void test_as_many_instances_as_a_gpu_can_have(void **state)
{
	json_t *file, *instances;
	char path[PATH_MAX];
	uint64_t readings;
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/nvml.json", (char *)*state);
	file = json_load_file(path, 0, NULL);
	instances = json_object_get(json_array_get(json_object_get(file, "gpus"), 1), "mig");
	assert_int_equal(json_array_size(instances), 1);
	for (int i = 1; i <= METRIC_GPU_INSTANCES_MOST; i++) {
		json_t *one = json_deep_copy(json_array_get(instances, 0));

		json_object_set_new(json_object_get(one, "calls"), "mig_instance",
				    json_pack("[i,i]", 0, 7 + i));
		json_array_append_new(instances, one);
	}
	assert_int_equal(json_dump_file(file, path, 0), 0);
	json_decref(file);
	bed_start(&b, *state, 0.1);
	WAIT(&b, state_of(&b)->of_scope[METRIC_SCOPE_GPU_INSTANCE] >= METRIC_GPU_INSTANCES_MOST);
	readings = state_of(&b)->readings + 20;
	WAIT(&b, state_of(&b)->readings >= readings);
	assert_int_equal(state_of(&b)->of_scope[METRIC_SCOPE_GPU_INSTANCE], METRIC_GPU_INSTANCES_MOST);
	assert_non_null(find(state_of(&b), METRIC_SCOPE_GPU_INSTANCE, "GPU_I_ID", "13"));
	bed_stop(&b);
}

/* The first reader of GPUs hangs in a call. The others go on. The second one leaves that GPU out. */
static void test_a_driver_that_hangs(void **state)
{
	char counted[PATH_MAX], *reason;
	struct watch_recorder *recorder;
	struct text lines = {0};
	uint64_t readings;
	struct bed b;
	uint32_t id;

	machine_make(*state);
	snprintf(counted, sizeof(counted), "%s/counted", (char *)*state);
	setenv("FAKE_NVML_COUNTED", counted, 1);
	setenv("FAKE_NVML_UNTIL", "1", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	setenv("FAKE_NVML_HANG", "power", 1);
	setenv("TEST_LIMIT", "1", 1);
	bed_start(&b, *state, 0.1);
	recorder = bed_record(&b);
	WAIT(&b, value_of(gpu(&b, 1), CATALOGUE_GPU_POWER) == 69);
	id = gpu(&b, 1)->id;
	/* one of them is left out; the other one has values again, under its number */
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) + value_of(gpu(&b, 1), CATALOGUE_GPU_UP) == 1);
	assert_non_null(value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 0 ? gpu(&b, 0)->why : gpu(&b, 1)->why);
	assert_int_equal(gpu(&b, 1)->id, id);
	WAIT(&b, value_of(gpu(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 0), CATALOGUE_GPU_POWER) == 69);
	assert_null(state_of(&b)->source[WATCH_SOURCE_gpu].why);
	readings = state_of(&b)->source[WATCH_SOURCE_host].heard_ns;
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_host].heard_ns > readings);
	bed_recorded(&b, recorder, &lines);
	reason = recorded_after(&lines, "\"why\":\"NVML did not answer for ");
	assert_non_null(strstr(reason, " at GPU 0000:"));
	free(reason);
	text_release(&lines);
	bed_stop(&b);
}

static void test_a_driver_that_crashes(void **state)
{
	char counted[PATH_MAX], *reason;
	struct watch_recorder *recorder;
	struct text lines = {0};
	struct stat begun = {0};
	struct bed b;

	machine_make(*state);
	snprintf(counted, sizeof(counted), "%s/counted", (char *)*state);
	setenv("FAKE_NVML_COUNTED", counted, 1);
	setenv("FAKE_NVML_UNTIL", "1", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	setenv("FAKE_NVML_CRASH", "temperature", 1);
	bed_start(&b, *state, 0.1);
	recorder = bed_record(&b);
	WAIT(&b, !stat(counted, &begun) && begun.st_size >= 2); /* the second reader has begun */
	WAIT(&b, !state_of(&b)->source[WATCH_SOURCE_gpu].why);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	WAIT(&b, find(state_of(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	bed_recorded(&b, recorder, &lines);
	reason = recorded_after(&lines, "{\"s\":0,\"why\":\"");
	assert_true(strlen(reason) > 10);
	free(reason);
	text_release(&lines);
	bed_stop(&b);
}

static void test_a_lost_gpu(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_LOST", "0", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	WAIT(&b, find(state_of(&b), METRIC_SCOPE_NVLINK, "nvlink", "0"));
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 0);
	assert_string_equal(gpu(&b, 0)->why, "GPU is lost");
	for (int c = 0; c < CATALOGUE_COUNT; c++)
		if (c != CATALOGUE_GPU_UP && c != CATALOGUE_GPU_XID_LAST)
			assert_null(watch_get(gpu(&b, 0), (enum catalogue)c));
	assert_null(find(state_of(&b), METRIC_SCOPE_NVLINK, "nvlink", "0"));
	assert_null(find(state_of(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	assert_true(value_of(gpu(&b, 1), CATALOGUE_GPU_UP) == 1);
	bed_stop(&b);
}

static void test_a_lost_gpu_returns(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_LOST", "0", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	setenv("FAKE_NVML_BEFORE", "3", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 0);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	assert_null(gpu(&b, 0)->why);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	WAIT(&b, find(state_of(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	bed_stop(&b);
}

/* Sends a signal to the reader of one source of this machine. */
static void signal_reader(const struct bed *b, const char *name, int number)
{
	struct dirent *entry;
	DIR *all = opendir("/proc");
	bool sent = false;

	while (all && (entry = readdir(all))) {
		char path[300], line[4096];
		FILE *f;
		size_t n;

		snprintf(path, sizeof(path), "/proc/%.200s/cmdline", entry->d_name);
		f = fopen(path, "r");
		n = f ? fread(line, 1, sizeof(line) - 1, f) : 0;
		if (f)
			fclose(f);
		for (size_t i = 0; i < n; i++)
			line[i] = line[i] ? line[i] : ' ';
		line[n] = '\0';
		snprintf(path, sizeof(path), " __watch %s ", name);
		if (strstr(line, path) && strstr(line, b->sys))
			sent |= !kill((pid_t)strtol(entry->d_name, NULL, 10), number);
	}
	if (all)
		closedir(all);
	assert_true(sent);
}

static void test_a_source_that_does_not_answer(void **state)
{
	struct watch_recorder *recorder;
	struct text lines = {0};
	uint64_t heard;
	struct bed b;

	machine_make(*state);
	setenv("TEST_LIMIT", "1", 1);
	bed_start(&b, *state, 0.1);
	recorder = bed_record(&b);
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_host].heard_ns && gpu(&b, 0));
	signal_reader(&b, "host", SIGSTOP);
	heard = clock_now_ns(clock_monotonic()) + 500000000; /* what was read before the stop is older */
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_host].heard_ns > heard);
	WAIT(&b, !state_of(&b)->source[WATCH_SOURCE_host].why);
	bed_recorded(&b, recorder, &lines);
	free(recorded_after(&lines, "\"why\":\"host did not answer for "));
	text_release(&lines);
	WAIT(&b, value_of(find(state_of(&b), METRIC_SCOPE_CPU, "model", "A processor"), CATALOGUE_CPU_LOAD) ==
			 1.5);
	bed_stop(&b);
}

/* The command line of one process cannot be read: the next process gets its names all the same. */
static void test_a_process_that_is_stuck(void **state)
{
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/proc/4243/cmdline", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0); /* 4243 has more memory and is asked for first */
	bed_start(&b, *state, 0.1);
	WAIT(&b, process_label(&b, "4243", "comm"));
	WAIT(&b, process_label(&b, "4242", "command"));
	assert_null(process_label(&b, "4243", "command"));
	bed_stop(&b);
}

static bool gpu_has_job(struct bed *b, unsigned number, const char *job)
{
	const struct watch_entity *e = gpu(b, number);
	const char *has = e ? watch_label(e, "hpc_job") : NULL;

	return e && (job ? has && !strcmp(has, job) : !has);
}

/* Where Slurm makes no cgroups, its job stands in the environment of the process. */
static void test_a_job_of_the_environment(void **state)
{
	static const char words[] = "HOME=/x\0SLURM_JOB_ID=88\0XSLURM_JOB_ID=5";
	char path[PATH_MAX];
	struct bed b;
	FILE *f;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/proc/4243/environ", (char *)*state);
	f = fopen(path, "w");
	assert_true(f && fwrite(words, 1, sizeof(words), f) == sizeof(words) && !fclose(f));
	bed_start(&b, *state, 0.1);
	WAIT(&b, process_label(&b, "4243", "hpc_job") && process_label(&b, "4242", "hpc_job"));
	assert_string_equal(process_label(&b, "4243", "hpc_job"), "88");
	assert_string_equal(process_label(&b, "4242", "hpc_job"), "77"); /* its cgroup's */
	WAIT(&b, gpu_has_job(&b, 0, NULL));				 /* two jobs share it */
	bed_stop(&b);
}

/* A prolog's files say more than processes: a GPU has its job before a process is there. */
static void test_jobs_of_files(void **state)
{
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	machine_file(*state, "jobs/0", "17\n18\n");
	machine_file(*state, "jobs/1", "a \"job\"\n");
	machine_file(*state, "jobs/other", "20\n");
	snprintf(path, sizeof(path), "%s/jobs/7", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0); /* nothing is ever read of it */
	snprintf(path, sizeof(path), "%s/jobs", (char *)*state);
	setenv("DCGM_HPC_JOB_MAPPING_DIR", path, 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, gpu_has_job(&b, 0, "17,18"));
	WAIT(&b, gpu_has_job(&b, 1, "a,\"job\""));
	snprintf(path, sizeof(path), "%s/jobs/0", (char *)*state);
	assert_int_equal(unlink(path), 0); /* the epilog: what its processes say holds again */
	WAIT(&b, gpu_has_job(&b, 0, "77"));
	snprintf(path, sizeof(path), "%s/jobs/1", (char *)*state);
	assert_int_equal(unlink(path), 0);
	WAIT(&b, gpu_has_job(&b, 1, NULL));
	bed_stop(&b);
	unsetenv("DCGM_HPC_JOB_MAPPING_DIR");
}

static void test_no_nvml(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("ASSAY_LIB_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_gpu].why && gpu(&b, 0) && gpu(&b, 0)->why);
	WAIT(&b, value_of(find(state_of(&b), METRIC_SCOPE_CPU, "model", "A processor"), CATALOGUE_CPU_LOAD) ==
			 1.5);
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_gpu].heard_ns);
	assert_non_null(state_of(&b)->source[WATCH_SOURCE_gpu].why);
	assert_null(watch_get(gpu(&b, 0), CATALOGUE_GPU_UP));
	bed_stop(&b);
}

static void test_the_driver_is_not_loaded(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_INIT", "9", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_gpu].why);
	assert_string_equal(state_of(&b)->source[WATCH_SOURCE_gpu].why, "the driver is not loaded");
	bed_stop(&b);
}

/* In an inner PID namespace, a process number of NVML means another process: it gets no name. */
static void test_a_container(void **state)
{
	uint64_t until;
	struct bed b;

	machine_make(*state);
	machine_link(*state, "proc/self/ns/pid", "pid:[4026532000]");
	bed_start(&b, *state, 0.1);
	WAIT(&b, find(state_of(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	until = state_of(&b)->readings + 20;
	WAIT(&b, state_of(&b)->readings >= until);
	assert_null(process_label(&b, "4242", "comm"));
	bed_stop(&b);
}

static void test_no_gpu(void **state)
{
	struct bed b;

	machine_host(*state);
	setenv("ASSAY_LIB_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(find(state_of(&b), METRIC_SCOPE_CPU, "model", "A processor"),
			  CATALOGUE_CPU_COUNT) == 2);
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_gpu].heard_ns);
	assert_int_equal(state_of(&b)->of_scope[METRIC_SCOPE_GPU], 0);
	bed_stop(&b);
}

/* Without files of the kernel, NVML's own list counts. */
static void test_gpus_that_only_nvml_lists(void **state)
{
	struct bed b;
	char path[PATH_MAX];

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/sys/bus", (char *)*state);
	file_remove_tree(path);
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(gpu(&b, 1), CATALOGUE_GPU_UP) == 1);
	bed_stop(&b);
}

static void test_a_suspended_gpu_is_not_touched(void **state)
{
	struct bed b;

	machine_make(*state);
	machine_file(*state, "sys/bus/pci/devices/0000:2b:00.0/power/runtime_status", "suspended\n");
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	WAIT(&b, gpu(&b, 1)->heard_ns[METRIC_FAST]);
	assert_string_equal(watch_label(gpu(&b, 1), "power_state"), "suspended");
	assert_null(watch_label(gpu(&b, 1), "UUID"));
	assert_null(watch_get(gpu(&b, 1), CATALOGUE_GPU_UP));
	machine_file(*state, "sys/bus/pci/devices/0000:2b:00.0/power/runtime_status", "active\n");
	WAIT(&b, value_of(gpu(&b, 1), CATALOGUE_GPU_POWER) == 69);
	assert_null(watch_label(gpu(&b, 1), "power_state"));
	machine_file(*state, "sys/bus/pci/devices/0000:2b:00.0/power/runtime_status", "suspended\n");
	WAIT(&b, !watch_get(gpu(&b, 1), CATALOGUE_GPU_POWER));
	bed_stop(&b);
}

static void test_an_earlier_reader_is_stuck(void **state)
{
	struct bed b;

	machine_make(*state);
	machine_file(*state, "proc/77/stat", "77 (" READER_GPU_NAME ") D 1 77\n");
	bed_start(&b, *state, 0.1);
	WAIT(&b, state_of(&b)->source[WATCH_SOURCE_gpu].why);
	assert_string_equal(state_of(&b)->source[WATCH_SOURCE_gpu].why,
			    "an earlier reader (process 77) is stuck in the driver");
	assert_non_null(gpu(&b, 0)); /* listed without the driver */
	machine_file(*state, "proc/77/stat", "77 (" READER_GPU_NAME ") S 1 77\n");
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	assert_null(state_of(&b)->source[WATCH_SOURCE_gpu].why);
	bed_stop(&b);
}

static void test_xids_without_a_kernel_log(void **state)
{
	const struct watch_entity *e;
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/kmsg", (char *)*state);
	unlink(path);
	setenv("FAKE_NVML_XID", "94@0.5", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, find(state_of(&b), METRIC_SCOPE_XID, "xid", "94"));
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_XID_LAST) == 94);
	e = find(state_of(&b), METRIC_SCOPE_XID, "xid", "94");
	assert_true(value_of(e, CATALOGUE_XID_COUNT) == 1);
	assert_string_equal(watch_label(e, "since"), "reader");
	bed_stop(&b);
}

/* A kernel log whose first records are gone counts from the start of the reader. */
static void test_xids_of_a_log_that_has_turned_over(void **state)
{
	char path[PATH_MAX];
	struct bed b;
	FILE *f;

	machine_make(*state);
	machine_file(*state, "kmsg", "4,900,5,-;NVRM: Xid (PCI:0000:1b:00): 79, old\n");
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	assert_null(find(state_of(&b), METRIC_SCOPE_XID, "xid", "79"));
	snprintf(path, sizeof(path), "%s/kmsg", (char *)*state);
	f = fopen(path, "a");
	assert_true(f && fputs("4,901,6,-;NVRM: Xid (PCI:0000:1b:00): 48, new\n", f) >= 0 && !fclose(f));
	WAIT(&b, find(state_of(&b), METRIC_SCOPE_XID, "xid", "48"));
	assert_string_equal(watch_label(find(state_of(&b), METRIC_SCOPE_XID, "xid", "48"), "since"),
			    "reader");
	bed_stop(&b);
}

/* NVML's answers outside of what exists: absent with a reason, and the rest goes on. */
static void test_readings_that_are_refused(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_RET", "power=4,clock_sm=3,gpm_support=3,reasons=3,reasons_old=3", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_TEMPERATURE) == 30);
	assert_null(watch_get(gpu(&b, 0), CATALOGUE_GPU_POWER));
	assert_string_equal(watch_why(gpu(&b, 0), CATALOGUE_GPU_POWER), "permission denied");
	assert_string_equal(watch_why(gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE),
			    "this device or driver has no GPM");
	assert_non_null(watch_why(gpu(&b, 0), CATALOGUE_GPU_HELD_POWER));
	assert_non_null(watch_why(gpu(&b, 0), CATALOGUE_GPU_SAMPLED_SYNC));
	bed_stop(&b);
}

static const char *energy_why(struct bed *b)
{
	const struct watch_entity *e = find(state_of(b), METRIC_SCOPE_CPU, "model", "A processor");

	return e && !watch_get(e, CATALOGUE_CPU_ENERGY) ? watch_why(e, CATALOGUE_CPU_ENERGY) : NULL;
}

/* A machine without energy counters is told apart from counters that this user may not read. */
static void test_energy_counters(void **state)
{
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/sys/class/powercap/intel-rapl:0/energy_uj", (char *)*state);
	assert_int_equal(unlink(path), 0); /* root may read every file, so there is none */
	bed_start(&b, *state, 0.1);
	WAIT(&b, energy_why(&b));
	assert_string_equal(energy_why(&b), "this user may not read the energy counters (RAPL); root may");
	bed_stop(&b);
	machine_file(*state, "sys/class/powercap/intel-rapl:0/name", "psys\n");
	bed_start(&b, *state, 0.1);
	WAIT(&b, energy_why(&b));
	assert_string_equal(energy_why(&b), "the machine has no energy counters (RAPL)");
	bed_stop(&b);
}

static void test_dcgm_has_the_counters(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_RET", "gpm_sample=19", 1);
	setenv("FAKE_NVML_AFTER", "1", 1);
	setenv("FAKE_NVML_BEFORE", "2.5", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE) >= 0);
	WAIT(&b, !watch_get(gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE));
	assert_string_equal(watch_why(gpu(&b, 0), CATALOGUE_GPU_TENSOR_ACTIVE),
			    "another program, such as DCGM, uses the counters of the GPU");
	assert_true(value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE) >= 0);
	bed_stop(&b);
}

/* Memory of an instance stays when its shares are refused, and they are absent with the reason. */
static void test_instances_without_gpm(void **state)
{
	const struct watch_entity *e;
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_RET", "gpm_instance_sample=3", 1);
	bed_start(&b, *state, 0.1);
	WAIT(&b, (e = find(state_of(&b), METRIC_SCOPE_GPU_INSTANCE, "GPU_I_ID", "7")) &&
			 watch_why(e, CATALOGUE_INSTANCE_SM_ACTIVE));
	assert_string_equal(watch_why(e, CATALOGUE_INSTANCE_SM_ACTIVE), "not supported by this device or driver");
	assert_null(watch_get(e, CATALOGUE_INSTANCE_DRAM_ACTIVE));
	assert_true(value_of(e, CATALOGUE_INSTANCE_MEMORY_USED) > 0);
	assert_true(value_of(gpu(&b, 1), CATALOGUE_GPU_UP) == 1);
	bed_stop(&b);
}

/* A reader of the stream that sleeps gets a copy of the state, not old lines. */
static void test_a_slow_reader(void **state)
{
	struct bed b;
	uint64_t end_ns;

	machine_make(*state);
	setenv("FAKE_NVML_RATE", "power=100000,temperature=20,clock_sm=500,memory_v2=100000000", 1);
	bed_start(&b, *state, 0.05);
	WAIT(&b, value_of(gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	fcntl(watch_feed_fd(b.feed), F_SETPIPE_SZ, 4096);
	end_ns = state_of(&b)->now_ns + 12000000000ull;
	clock_sleep_ns(clock_monotonic(), 12000000000ull);
	WAIT(&b, state_of(&b)->now_ns >= end_ns);
	assert_null(watch_feed_why(b.feed));
	WAIT(&b, watch_age(state_of(&b), gpu(&b, 0), clock_now_ns(clock_monotonic())) < 1);
	bed_stop(&b);
}

/* The node ends when its stdin does. */
static void test_the_lifeline(void **state)
{
	const char *argv[] = {NULL, "__watch", "node", "--lifeline", NULL};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), code = -1;
	struct process_spec spec = {.argv = argv, .input = &null, .cpu_numa = -1};
	struct error err = {0};
	char *out = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(process_run(&spec, PATIENCE_S * 1000, 1 << 20, &out, &size, &code, &err), STATUS_OK);
	assert_int_equal(code, 0);
	free(out);
	close(null);
}

static void test_out(void **unused)
{
	struct watch_out o;
	uint32_t e;

	(void)unused;
	out_init(&o, -1);
	e = out_entity(&o, METRIC_SCOPE_GPU, OUT_NONE, "pci_bus_id", "a\"b\n", "gpu", NULL, NULL);
	assert_string_equal(text_str(&o.text),
			    "{\"e\":0,\"s\":0,\"scope\":\"gpu\",\"labels\":{\"pci_bus_id\":\"a\\\"b \"}}\n");
	text_release(&o.text);
	out_set(&o, e, CATALOGUE_GPU_POWER, 69.04);
	out_set(&o, e, CATALOGUE_GPU_UTILIZATION, 0.123);
	out_set(&o, e, CATALOGUE_GPU_TEMPERATURE, (double)NAN);
	out_end(&o, e, 5, false);
	assert_non_null(strstr(text_str(&o.text), ",69}") || strstr(text_str(&o.text), ",69]"));
	assert_non_null(strstr(text_str(&o.text), ",0.12,"));
	text_release(&o.text);
	/* the same after rounding: nothing; not read: absent, once */
	out_set(&o, e, CATALOGUE_GPU_POWER, 69.01);
	out_end(&o, e, 6, false);
	assert_non_null(strstr(text_str(&o.text), "null"));
	assert_null(strstr(text_str(&o.text), "69"));
	text_release(&o.text);
	out_set(&o, e, CATALOGUE_GPU_POWER, 69.01);
	out_end(&o, e, 7, false);
	assert_string_equal(text_str(&o.text), "{\"t\":7,\"s\":0,\"end\":0}\n");
	text_release(&o.text);
	out_absent(&o, e, CATALOGUE_GPU_POWER, "why");
	out_end(&o, e, 8, false);
	assert_non_null(strstr(text_str(&o.text), "\"x\":{\"0\":["));
	text_release(&o.text);
	out_absent(&o, e, CATALOGUE_GPU_POWER, "why");
	out_end(&o, OUT_NONE, 9, true);
	assert_string_equal(text_str(&o.text), "{\"t\":9,\"s\":0,\"end\":true,\"slow\":true}\n");
	text_release(&o.text);
	out_gone(&o, e);
	out_set(&o, e, CATALOGUE_GPU_POWER, 1);
	out_end(&o, OUT_NONE, 10, false);
	assert_string_equal(text_str(&o.text), "{\"gone\":0}\n{\"t\":10,\"s\":0,\"end\":true}\n");
	out_release(&o);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_out),
		scratch_test(test_every_row_is_read),
		scratch_test(test_as_many_instances_as_a_gpu_can_have),
		scratch_test(test_a_driver_that_hangs),
		scratch_test(test_a_driver_that_crashes),
		scratch_test(test_a_lost_gpu),
		scratch_test(test_a_lost_gpu_returns),
		scratch_test(test_a_source_that_does_not_answer),
		scratch_test(test_a_process_that_is_stuck),
		scratch_test(test_a_job_of_the_environment),
		scratch_test(test_jobs_of_files),
		scratch_test(test_no_nvml),
		scratch_test(test_the_driver_is_not_loaded),
		scratch_test(test_a_container),
		scratch_test(test_no_gpu),
		scratch_test(test_gpus_that_only_nvml_lists),
		scratch_test(test_a_suspended_gpu_is_not_touched),
		scratch_test(test_an_earlier_reader_is_stuck),
		scratch_test(test_xids_without_a_kernel_log),
		scratch_test(test_xids_of_a_log_that_has_turned_over),
		scratch_test(test_readings_that_are_refused),
		scratch_test(test_energy_counters),
		scratch_test(test_dcgm_has_the_counters),
		scratch_test(test_instances_without_gpm),
		scratch_test(test_a_slow_reader),
		cmocka_unit_test(test_the_lifeline),
	};

	if (argc > 2 && !strcmp(argv[1], "__watch"))
		return play(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	if (getenv("TEST_FILTER"))
		cmocka_set_test_filter(getenv("TEST_FILTER"));
	return cmocka_run_group_tests_name("watch_read", tests, NULL, NULL);
}
