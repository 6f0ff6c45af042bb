/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `null`: does nothing for a given time, and can fail in every way that a probe can fail. Tests use it:
 * tests of the measuring loop with a fake clock, tests of the supervisor with real processes. One iteration
 * counts 1000 FLOP and 64 bytes read.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <unistd.h>
#include "core/math/random.h"
#include "run/probe.h"

/* clang-format off */
static const char *const points[] = { "none", "supports", "prepare", "enqueue", "verify", "select", "finish", "release", NULL };
/* clang-format on */
enum point { NONE, SUPPORTS, PREPARE, ENQUEUE, VERIFY, SELECT, FINISH, RELEASE };
static const char *const statuses[] = {
#define X(name, text, ...) text,
	STATUS_LIST(X) NULL
#undef X
};
extern const struct probe probe_null;
static const char *const wrong_results[] = {"none", "data", "nan", NULL};
enum wrong_result { WRONG_NONE, WRONG_DATA, WRONG_NAN };

struct null_opts {
	double time, drift, drift_time, scatter, spike, cpu_share, ceiling, hog_at, hog_time;
	uint64_t after, leak, garbage, spike_every;
	uint32_t fail, status, crash, signal, hang, wrong, wrong_variant, variants, slow_from, link, slot,
		culprit, culprit_node;
	double slow_share;
	bool ignore_term;
};

static const struct opt rows[] = {
	OPT_ROW(struct null_opts, time, .name = "time", .preset = "100us", .unit = "ns", .min = 0,
		.max = 1e13, .help = "time of one iteration"),
	OPT_ROW(struct null_opts, drift, .name = "drift", .preset = "0", .min = -1, .max = 10,
		.help = "share by which iterations get longer per second"),
	OPT_ROW(struct null_opts, drift_time, .name = "drift_time", .preset = "1h", .unit = "s", .min = 0,
		.max = 1e6, .help = "time from the first iteration until the drift ends"),
	OPT_ROW(struct null_opts, scatter, .name = "scatter", .preset = "0", .min = 0, .max = 1,
		.help = "random variation of the time of an iteration, as a share, in both directions"),
	OPT_ROW(struct null_opts, spike, .name = "spike", .preset = "0", .unit = "ns", .min = 0, .max = 1e13,
		.help = "extra time of one in every `spike_every` iterations"),
	OPT_ROW(struct null_opts, spike_every, .name = "spike_every", .preset = "1", .min = 1, .max = 1e9,
		.help = "number of iterations per spike"),
	OPT_ROW(struct null_opts, cpu_share, .name = "cpu_share", .preset = "1", .min = 0, .max = 1,
		.help = "reported CPU time, as a share of threads times wall time"),
	OPT_ROW(struct null_opts, ceiling, .name = "ceiling", .preset = "0", .unit = "ns", .min = 0,
		.max = 1e13,
		.help = "ceiling of the case: null itself with this time per iteration; 0: no ceiling"),
	OPT_ROW(struct null_opts, hog_at, .name = "hog_at", .preset = "1h", .unit = "s", .min = 0, .max = 1e9,
		.help = "clock time from which other work takes half of the CPU"),
	OPT_ROW(struct null_opts, hog_time, .name = "hog_time", .preset = "0", .unit = "s", .min = 0,
		.max = 1e9, .help = "how long other work takes half of the CPU"),
	OPT_ROW(struct null_opts, after, .name = "after", .preset = "0",
		.help = "first iteration in which enqueue fails, dies or hangs"),
	OPT_ROW(struct null_opts, fail, .name = "fail", .preset = "none", .choices = points,
		.help = "function that fails"),
	OPT_ROW(struct null_opts, status, .name = "status", .preset = "vendor", .choices = statuses,
		.help = "status with which it fails; lost: the device is lost"),
	OPT_ROW(struct null_opts, crash, .name = "crash", .preset = "none", .choices = points,
		.help = "function in which the process dies of a signal"),
	OPT_ROW(struct null_opts, signal, .name = "signal", .preset = "11", .min = 1, .max = 31,
		.help = "number of that signal"),
	OPT_ROW(struct null_opts, hang, .name = "hang", .preset = "none", .choices = points,
		.help = "function that hangs"),
	OPT_ROW(struct null_opts, ignore_term, .name = "ignore_term", .help = "ignore the signal SIGTERM"),
	OPT_ROW(struct null_opts, wrong, .name = "wrong", .preset = "none", .choices = wrong_results,
		.help = "error that verification reports: wrong data, or a NaN"),
	OPT_ROW(struct null_opts, wrong_variant, .name = "wrong_variant", .preset = "0", .max = 64, .min = 0,
		.help = "first variant for which verification reports the error"),
	OPT_ROW(struct null_opts, variants, .name = "variants", .preset = "0", .max = 64, .min = 0,
		.help = "number of variants; variant v takes 1 / (1 + v/100) of the time"),
	OPT_ROW(struct null_opts, slow_from, .name = "slow_from", .preset = "0", .max = 64, .min = 0,
		.help = "first variant that takes twice the time; 0: none"),
	OPT_ROW(struct null_opts, leak, .name = "leak", .preset = "0", .unit = "B", .min = 0, .max = 1e8,
		.help = "bytes that prepare writes to stdout"),
	OPT_ROW(struct null_opts, garbage, .name = "garbage", .preset = "0", .unit = "B", .min = 0,
		.max = 1e8, .help = "bytes of garbage that prepare writes to the channel"),
	OPT_ROW(struct null_opts, link, .name = "link", .preset = "0", .unit = "B", .min = 0, .max = 4e9,
		.help = "bytes over the host link per iteration"),
	OPT_ROW(struct null_opts, culprit, .name = "culprit", .preset = "1000", .min = 0, .max = 1000,
		.help = "of several GPUs or ranks, the one that hangs, dies, fails, is wrong or slow; 1000: "
			"all of them"),
	OPT_ROW(struct null_opts, culprit_node, .name = "culprit_node", .preset = "1000", .min = 0,
		.max = 1000,
		.help = "node whose launched ranks all do so; 1000: only the rank that culprit names"),
	OPT_ROW(struct null_opts, slow_share, .name = "slow_share", .preset = "0", .min = 0, .max = 10,
		.help = "share by which iterations of the culprit are longer"),
	OPT_ROW(struct null_opts, slot, .name = "slot", .preset = "0",
		.help = "any number; it makes otherwise equal cases different"),
};

static const struct field fields[] = {
	{"null_iterations", "", "number of iterations that ran", FIELD_U64, 0},
};

struct state {
	const struct null_opts *o;
	const struct bench *b;
	uint64_t t0_ns, iterations;
	double spent_ns; /* time that all iterations so far should have taken */
	unsigned variant;
	bool started;
	char name[16];
};

static void spill(int fd, uint64_t bytes, const char *text)
{
	size_t size = strlen(text);

	for (uint64_t done = 0; done < bytes; done += size)
		if (write(fd, text, bytes - done < size ? (size_t)(bytes - done) : size) < 0)
			return;
}

/* Does at this point what the options request: hang, die, or fail. */
static enum status misbehave(const struct null_opts *o, enum point at, struct error *err)
{
	if (o->hang == (uint32_t)at)
		for (;;)
			pause();
	if (o->crash == (uint32_t)at) {
		signal((int)o->signal, SIG_DFL);
		raise((int)o->signal);
	}
	if (o->fail == (uint32_t)at && o->status)
		return error_set_cause(err, (enum status)o->status,
				       o->status == STATUS_LOST ? CAUSE_GPU_LOST : CAUSE_NONE,
				       "null: the options request a failure in %s", points[at]);
	return STATUS_OK;
}

/* True if the options mean this rank. On several GPUs of one process, the rank's own number counts. Launched
 * ranks compare their number among all ranks, so that it stays the same in every subset of them. */
static bool is_culprit(const struct state *s)
{
	const struct team *team = s->b->team;
	const struct target *t = s->b->target;

	if (team && s->o->culprit_node != 1000)
		return team->node == s->o->culprit_node;
	if (!team || s->o->culprit == 1000)
		return true;
	if (team->in_process && t->gpu_count == team->size)
		return t->gpu[team->rank] == s->o->culprit;
	return (team->in_process ? team->rank : team->launched) == s->o->culprit;
}

static enum status act(const struct state *s, enum point at, struct error *err)
{
	return is_culprit(s) ? misbehave(s->o, at, err) : STATUS_OK;
}

/* Tests that values which ranks exchange arrive, and at the right index. */
static enum status test_exchange(const struct state *s, enum status mine, struct error *err)
{
	struct team *t = s->b->team;
	uint64_t seed = t->rank ? 0 : s->b->seed, *all = calloc(t->size, sizeof(*all));
	enum status st = team_agree(t, mine ? mine : all ? STATUS_OK : STATUS_NO_RESOURCE, err);

	if (!st)
		st = team_share(t, &seed, sizeof(seed), err);
	seed += t->rank;
	if (!st)
		st = team_gather(t, &seed, sizeof(seed), all, err);
	for (unsigned r = 0; !st && r < t->size; r++)
		if (all[r] != s->b->seed + r)
			st = error_set(err, STATUS_BUG, "null: rank %u sent %llu instead of %llu", r,
				       (unsigned long long)all[r], (unsigned long long)(s->b->seed + r));
	free(all);
	return st;
}

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct null_opts *o = opts;

	(void)m, (void)t;
	if (o->fail != SUPPORTS)
		return STATUS_OK;
	return misbehave(o, SUPPORTS, err);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct state *s = state;
	enum status st;

	s->o = opts;
	s->b = b;
	if (s->o->ignore_term)
		signal(SIGTERM, SIG_IGN);
	spill(STDOUT_FILENO, s->o->leak, "null leaks a line\n");
	spill(3, s->o->garbage, "{]garbage\x01\n");
	st = act(s, PREPARE, err);
	return b->team ? test_exchange(s, st, err) : st;
}

static double iteration_ns(struct state *s)
{
	const struct null_opts *o = s->o;
	uint64_t now = clock_now_ns(s->b->clock);
	double since_s, ns;

	if (!s->started) {
		s->started = true;
		s->t0_ns = now;
	}
	since_s = fmin((double)(now - s->t0_ns) * 1e-9, o->drift_time);
	ns = o->time * (1 + o->drift * since_s) / (1 + 0.01 * s->variant);
	if (o->slow_from && s->variant >= o->slow_from)
		ns *= 2;
	if (is_culprit(s))
		ns *= 1 + o->slow_share;
	if (o->scatter > 0)
		ns *= 1 + o->scatter * (double)random_f32(s->b->seed, 7, s->iterations);
	return s->iterations % o->spike_every == o->spike_every - 1 ? ns + o->spike : ns;
}

static bool hogged(const struct state *s)
{
	double now_s = (double)clock_now_ns(s->b->clock) * 1e-9;

	return s->o->hog_time > 0 && now_s >= s->o->hog_at && now_s < s->o->hog_at + s->o->hog_time;
}

static enum status enqueue(void *state, uint64_t i, struct error *err)
{
	struct state *s = state;
	double ns;

	if (i >= s->o->after) {
		enum status st = act(s, ENQUEUE, err);

		if (st)
			return st;
	}
	ns = iteration_ns(s);
	s->iterations++;
	s->spent_ns += ns;
	if (ns > 0)
		clock_sleep_ns(s->b->clock, (uint64_t)((hogged(s) ? 2 : 1) * ns + 0.5));
	return STATUS_OK;
}

static uint64_t cpu_time_ns(void *state)
{
	const struct state *s = state;

	return (uint64_t)(s->spent_ns * s->o->cpu_share * s->b->threads);
}

static unsigned variants(void *state)
{
	return ((struct state *)state)->o->variants;
}

static enum status select_variant(void *state, unsigned variant, const char **name, struct error *err)
{
	struct state *s = state;
	enum status st = variant ? act(s, SELECT, err) : STATUS_OK;

	if (st)
		return st;
	s->variant = variant;
	snprintf(s->name, sizeof(s->name), "v%u", variant);
	*name = s->name;
	return STATUS_OK;
}

static void release(void *state)
{
	struct state *s = state;

	if (s->o)
		act(s, RELEASE, NULL);
}

static const struct engine own_engine = {
	.name = "own",
	.libs = "",
	.targets = TARGET_CPU | TARGET_GPU | TARGET_NODE,
	.state_size = sizeof(struct state),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.cpu_time_ns = cpu_time_ns,
	.variants = variants,
	.select = select_variant,
	.release = release,
};

/* Engine with one rank per launched process. */
static const struct engine ranks_engine = {
	.name = "ranks",
	.libs = "",
	.targets = TARGET_NODE | TARGET_TEAM,
	.launched = true,
	.state_size = sizeof(struct state),
	.supports = supports,
	.prepare = prepare,
	.enqueue = enqueue,
	.cpu_time_ns = cpu_time_ns,
	.variants = variants,
	.select = select_variant,
	.release = release,
};

static const struct engine *const engines[] = {&own_engine, &ranks_engine, NULL};

static struct work work(const struct machine *m, const struct target *t, const void *opts)
{
	const struct null_opts *o = opts;

	(void)m, (void)t;
	return (struct work){.flop = 1000, .read_bytes = 64, .link_bytes = o->link, .limit = "mixed"};
}

static bool ceiling(const struct machine *m, const struct target *t, const void *opts, struct ceiling *out)
{
	const struct null_opts *o = opts;
	struct null_opts *own = (struct null_opts *)out->opts;

	_Static_assert(sizeof(*own) <= sizeof(out->opts), "the options do not fit into struct ceiling");
	(void)m, (void)t;
	out->probe = &probe_null;
	out->engine = &own_engine;
	*own = *o;
	own->time = o->ceiling;
	own->ceiling = 0;
	return o->ceiling > 0;
}

static enum status verify(void *state, struct wrong *wrong, struct error *err)
{
	const struct state *s = state;

	*wrong = (struct wrong){.checked = 10, .total = 10};
	if (s->iterations >= s->o->after && s->variant >= s->o->wrong_variant && s->o->wrong != WRONG_NONE &&
	    is_culprit(s)) {
		wrong->count = 1;
		wrong->first_index = 3;
		wrong->expected = 1;
		wrong->found = s->o->wrong == WRONG_NAN ? (double)NAN : 2;
		wrong->nan = s->o->wrong == WRONG_NAN;
		snprintf(wrong->place, sizeof(wrong->place), "element 3");
	}
	return act(s, VERIFY, err);
}

static enum status finish(void *state, struct result *out, struct error *err)
{
	const struct state *s = state;

	result_u64(out, &fields[0], s->iterations);
	return act(s, FINISH, err);
}

const struct probe probe_null = {
	.name = "null",
	.summary = "does nothing for a given time; fails on request (for tests)",
	.hidden = true,
	.kind = PROBE_TIMED,
	.opts = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct null_opts)},
	.fields = fields,
	.field_count = sizeof(fields) / sizeof(fields[0]),
	.engines = engines,
	.work = work,
	.ceiling = ceiling,
	.verify = verify,
	.finish = finish,
};
