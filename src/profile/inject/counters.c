/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/inject/counters.h"
#include <dlfcn.h>
#include <regex.h>
#include <sched.h>
#include <time.h>
#include "counter/metrics.h"
#include "profile/inject/glibc_compat.h"
#include "profile/inject/launch.h"
#include "vendor/cupti.h"

COMPAT(dlopen);
COMPAT(dlsym);

enum { CHOSEN_MAX = 32, SESSIONS_MAX = 64, WAIT_MS = 5000 };
enum { UNPREPARED, PREPARING, PREPARED };

#define X(name, ...) ROW_##name,
enum row { COUNTER_METRICS(X) ROWS };
#undef X
_Static_assert((int)ROWS <= (int)RING_COUNTERS, "a record has room for every metric");

/* CUPTI's objects for the counters of one context. */
struct session {
	void *context, *host, *profiler;
	uint8_t *image, *data;
	size_t image_size, data_size, count;
	uint32_t device;
	char name[CHOSEN_MAX][80];
	const char *metric[CHOSEN_MAX];
	uint8_t row[CHOSEN_MAX];
	double factor[CHOSEN_MAX];
};

/* Writable state, for the same reason as in inject.c. All zero in a process that counts nothing. */
static struct {
	struct cupti cu;
	struct launch_calls launches;
	struct writer *writer;
	regex_t pattern;
	bool flop, l2;
	uint32_t lock;	 /* held by one launch, from its begin to its end */
	uint64_t holder; /* 1 + correlation of that launch; 0: none */
	uint64_t matched, skip, left, graphs;
	struct session session[SESSIONS_MAX];
	struct session *open; /* counts the launch that holds the lock */
	void (*refused)(void);
	counters_thread *start_thread;
	size_t sessions;
	uint32_t preparing;
	void *prepared; /* the context */
} counting;

/* Describes a refusal, with what to do about it. */
static void refuse(const char *call, int code, char why[COUNTERS_TEXT])
{
	const char *text = NULL, *advice = "";

	if (counting.cu.result_name(code, &text) || !text)
		text = "unnamed error";
	if (code == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
		advice = "; load the driver with NVreg_RestrictProfilingToAdminUsers=0 to allow counters";
	if (code == CUPTI_ERROR_HARDWARE_BUSY)
		advice = "; another program uses the counters (DCGM: run dcgmi profile --pause)";
	snprintf(why, COUNTERS_TEXT, "no counters: %.60s: %.60s (%d)%s", call, text, code, advice);
}

#define ASK(why, name, params) asked(#name, counting.cu.name(params), why)
static bool asked(const char *call, int code, char why[COUNTERS_TEXT])
{
	if (code)
		refuse(call, code, why);
	return !code;
}

static void *room(size_t size)
{
	return calloc(1, size ? size : 1);
}

/* Chooses the first of the metrics (a|b) that the chip supports. */
static void choose(struct session *s, enum row row, const char *metrics, double factor)
{
	while (metrics && *metrics && s->count < CHOSEN_MAX) {
		char *name = s->name[s->count];
		size_t n = strcspn(metrics, "|");

		snprintf(name, sizeof(s->name[0]), "%.*s", (int)n, metrics);
		metrics += n + (metrics[n] == '|');
		for (size_t i = 0; i < s->count; i++)
			if (!strcmp(s->name[i], name))
				return; /* one metric counts two types */
		if (counting.cu.host_properties(
			    &CUPTI_PARAMS(host_properties, .host = s->host, .metric = name)))
			continue;
		s->metric[s->count] = name;
		s->factor[s->count] = factor;
		s->row[s->count++] = (uint8_t)row;
		return;
	}
}

static void choose_all(struct session *s)
{
#define X(name) name,
	enum set { COUNTER_SETS(X) };
#undef X
	static const struct {
		enum set set;
		const char *metric;
		double factor;
	} rows[ROWS] = {
#define X(name, set, kind, metric, factor, unit, meaning) [ROW_##name] = {set, metric, factor},
		COUNTER_METRICS(X)
#undef X
	};
	static const char *const tensor[] = {
#define X(type, metric) metric,
		COUNTER_TENSOR_TYPES(X)
#undef X
	};

	/* Pipes other than the tensor pipe, in the same pass as the core metrics. */
	for (unsigned i = 0; i < ROWS; i++)
		if (rows[i].set == CORE || rows[i].set == XU || rows[i].set == ISSUE ||
		    (counting.l2 && rows[i].set == CACHE))
			choose(s, (enum row)i, rows[i].metric, rows[i].factor);
	for (size_t i = 0; counting.flop && i < sizeof(tensor) / sizeof(tensor[0]); i++)
		choose(s, ROW_tensor_flop, tensor[i], 1);
}

static bool open_host(struct session *s, char why[COUNTERS_TEXT])
{
	struct cupti_chip chip = CUPTI_PARAMS(chip, .device = s->device);
	struct cupti_host_open open = CUPTI_PARAMS(host_open, .type = CUPTI_PROFILER_TYPE_RANGE_PROFILER);

	if (!ASK(why, chip, &chip))
		return false;
	/* Without an image of the available counters, which would take 0.12 s: every chip has these metrics.
	 */
	open.chip = chip.chip;
	if (!ASK(why, host_open, &open))
		return false;
	s->host = open.host;
	choose_all(s);
	return s->count > 0;
}

static bool make_image(struct session *s, char why[COUNTERS_TEXT])
{
	struct cupti_host_image_size size = CUPTI_PARAMS(host_image_size, .host = s->host);
	struct cupti_host_image image = CUPTI_PARAMS(host_image, .host = s->host);

	if (!ASK(why, host_add,
		 &CUPTI_PARAMS(host_add, .host = s->host, .metrics = s->metric, .count = s->count)) ||
	    !ASK(why, host_image_size, &size))
		return false;
	s->image = image.image = room(size.image_size);
	s->image_size = image.image_size = size.image_size;
	return s->image && ASK(why, host_image, &image);
}

static bool make_data(struct session *s, char why[COUNTERS_TEXT])
{
	struct cupti_range_enable enable = CUPTI_PARAMS(range_enable, .context = s->context);
	struct cupti_range_data_size size = CUPTI_PARAMS(range_data_size, .metrics = s->metric,
							 .count = s->count, .ranges = 1, .nodes = 1);

	if (!ASK(why, range_enable, &enable))
		return false;
	s->profiler = size.profiler = enable.profiler;
	if (!ASK(why, range_data_size, &size))
		return false;
	s->data = room(size.data_size);
	s->data_size = size.data_size;
	return s->data;
}

/* Ends counting. The end of the current launch may not be reported then, so nothing waits for it any more. */
static void stop_counting(void)
{
	__atomic_store_n(&counting.left, 0, __ATOMIC_RELEASE);
	launch_follow(&counting.launches, false);
}

/* Ends counting for this reason. */
static void give_up(const char *why)
{
	stop_counting();
	for (size_t i = 0; i < counting.sessions; i++)
		(void)counting.cu.range_disable(
			&CUPTI_PARAMS(range_disable, .profiler = counting.session[i].profiler));
	counting.sessions = 0;
	writer_note(counting.writer, why);
	counting.refused();
}

static struct session *session_of(void *context)
{
	char why[COUNTERS_TEXT] = "no counters: out of memory, or CUPTI supports none of the metrics";
	struct session *s;

	for (size_t i = 0; i < counting.sessions; i++)
		if (counting.session[i].context == context)
			return &counting.session[i];
	if (counting.sessions == SESSIONS_MAX)
		return NULL;
	s = &counting.session[counting.sessions];
	s->context = context;
	/* Not earlier: the driver loads this library within its own initialization, where this call fails. */
	if (ASK(why, initialize, &CUPTI_PARAMS(initialize, .priv = NULL)) &&
	    launch_device(&counting.launches, context, &s->device) && open_host(s, why) &&
	    make_image(s, why) && make_data(s, why)) {
		counting.sessions++;
		return s;
	}
	give_up(why);
	return NULL;
}

/* Starts a range, with empty data. */
static bool start(struct session *s)
{
	char why[COUNTERS_TEXT];

	if (ASK(why, range_data,
		&CUPTI_PARAMS(range_data, .profiler = s->profiler, .data_size = s->data_size,
			      .data = s->data)) &&
	    ASK(why, range_config,
		&CUPTI_PARAMS(range_config, .profiler = s->profiler, .image = s->image,
			      .image_size = s->image_size, .data = s->data, .data_size = s->data_size,
			      .range = CUPTI_AutoRange, .replay = CUPTI_KernelReplay, .ranges = 1,
			      .levels = 1, .level_min = 1, .level = 1)) &&
	    ASK(why, range_start, &CUPTI_PARAMS(range_start, .profiler = s->profiler)))
		return true;
	give_up(why);
	return false;
}

/* Returns false if counting has ended. A launch that held the lock then may never release it, since its end
 * is not reported. */
static bool take_lock(void)
{
	while (__atomic_exchange_n(&counting.lock, 1, __ATOMIC_ACQUIRE)) {
		if (!__atomic_load_n(&counting.left, __ATOMIC_ACQUIRE))
			return false;
		sched_yield();
	}
	return true;
}

static void drop_lock(void)
{
	__atomic_store_n(&counting.holder, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&counting.lock, 0, __ATOMIC_RELEASE);
}

/* One-time work in CUPTI takes 0.2 s. It runs while the program loads its libraries and fills its memory. A
 * launch waits until it is done. */
static void *prepare(void *context)
{
	struct cupti_range_stop stop = CUPTI_PARAMS(range_stop, .profiler = NULL);
	struct session *s;

	if (take_lock()) {
		s = counting.left && !counting.sessions ? session_of(context) : NULL;
		if (s && start(s)) {
			stop.profiler = s->profiler;
			/* The range contains no kernel, so its result does not matter. */
			counting.cu.range_stop(&stop);
		}
		drop_lock();
	}
	__atomic_store_n(&counting.preparing, PREPARED, __ATOMIC_RELEASE);
	return NULL;
}

void counters_wait(void)
{
	const struct timespec step = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < WAIT_MS; i++) {
		if (__atomic_load_n(&counting.preparing, __ATOMIC_ACQUIRE) != PREPARING)
			return;
		nanosleep(&step, NULL);
	}
}

void counters_forget(void)
{
	counting.preparing = PREPARED;
	counting.lock = 0;
	counting.holder = 0;
	counting.left = 0;
}

/* Prepares the first context. Other contexts are prepared at their first counted launch. */
static void on_context(void *context, bool made)
{
	uint32_t before = UNPREPARED;

	if (!made) {
		if (context == counting.prepared)
			counters_wait();
		return;
	}
	if (!__atomic_compare_exchange_n(&counting.preparing, &before, PREPARING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		return;
	counting.prepared = context;
	if (!counting.start_thread(prepare, context))
		__atomic_store_n(&counting.preparing, PREPARED, __ATOMIC_RELEASE);
}

static void keep(const struct session *s, const double *value, const struct launch *l)
{
	struct ring_counted out = {.head = {.type = RING_COUNTED, .size = sizeof(out)},
				   .at_ns = writer_now_ns(),
				   .device = s->device,
				   .correlation = l->correlation};

	for (size_t i = 0; i < s->count; i++) {
		if (value[i] - value[i] != 0)
			continue; /* the hardware did not count this metric */
		out.has |= 1u << s->row[i];
		out.value[s->row[i]] += value[i] * s->factor[i];
	}
	out.head.name = writer_string(counting.writer, l->kernel);
	writer_add(counting.writer, &out);
}

static void stop(struct session *s, const struct launch *l)
{
	struct cupti_range_info info = CUPTI_PARAMS(range_info, .data = s->data, .data_size = s->data_size);
	double value[CHOSEN_MAX];
	char why[COUNTERS_TEXT];

	if (!ASK(why, range_stop, &CUPTI_PARAMS(range_stop, .profiler = s->profiler)) ||
	    !ASK(why, range_decode, &CUPTI_PARAMS(range_decode, .profiler = s->profiler)) ||
	    !ASK(why, range_info, &info)) {
		give_up(why);
		return;
	}
	if (!info.ranges ||
	    !ASK(why, host_evaluate,
		 &CUPTI_PARAMS(host_evaluate, .host = s->host, .data = s->data, .data_size = s->data_size,
			       .range = 0, .metrics = s->metric, .count = s->count, .values = value)))
		return;
	keep(s, value, l);
	if (!--counting.left)
		stop_counting();
}

/* NCCL's kernels are not counted: they wait for other ranks, so alone they would wait forever. */
static bool is_wanted(const struct launch *l)
{
	if (!counting.left || !l->kernel || !strncmp(l->kernel, "nccl", 4) ||
	    regexec(&counting.pattern, l->kernel, 0, NULL, 0))
		return false;
	return counting.matched++ >= counting.skip && !launch_is_captured(&counting.launches, l);
}

static void begin_launch(const struct launch *l)
{
	struct session *s;

	if (!take_lock())
		return;
	__atomic_store_n(&counting.holder, UINT64_C(1) + l->correlation, __ATOMIC_RELAXED);
	s = is_wanted(l) ? session_of(l->context) : NULL;
	counting.open = s && start(s) ? s : NULL;
}

/* The end of a launch that gave up the lock may be reported while another launch holds it. Such an end is
 * ignored. */
static void end_launch(const struct launch *l)
{
	if (__atomic_load_n(&counting.holder, __ATOMIC_RELAXED) != UINT64_C(1) + l->correlation)
		return;
	if (counting.open)
		stop(counting.open, l);
	counting.open = NULL;
	drop_lock();
}

static void on_launch(const struct launch *l)
{
	if (l->begins)
		begin_launch(l);
	else
		end_launch(l);
}

/* Graphs cannot be counted: ranges are opened around the launch of each kernel, and the launch of a graph
 * does not name its kernels. */
static void on_graph(void)
{
	if (!counting.graphs++)
		writer_note(
			counting.writer,
			"no counters of kernels that CUDA graphs launch: only kernels that are launched "
			"individually are counted. Profile without --counters to get the times of all kernels");
}

static bool bind(void *cupti, char why[COUNTERS_TEXT])
{
	static const struct {
		const char *name;
		size_t offset;
		bool required;
	} symbols[] = {
#define REQUIRED true
#define OPTIONAL false
#define X(need, ret, field, symbol, params) {#symbol, offsetof(struct cupti, field), need},
		CUPTI_PLAIN_FUNCTIONS(X)
#undef X
#define X(need, name, symbol, real, members) {#symbol, offsetof(struct cupti, name), need},
			CUPTI_FUNCTIONS(X)
#undef X
#undef REQUIRED
#undef OPTIONAL
	};

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *found = dlsym(cupti, symbols[i].name);

		memcpy((char *)&counting.cu + symbols[i].offset, &found, sizeof(found));
		if (!found && symbols[i].required) {
			snprintf(
				why, COUNTERS_TEXT,
				"no counters: this CUPTI has no function %s; use the CUPTI of CUDA 12.6 or newer",
				symbols[i].name);
			return false;
		}
	}
	return true;
}

bool counters_begin(void *cupti, struct writer *w, const struct counters_wish *wish, char why[COUNTERS_TEXT])
{
	memset(&counting, 0, sizeof(counting));
	counting.writer = w;
	counting.skip = wish->skip;
	counting.left = wish->count;
	counting.flop = wish->flop;
	counting.l2 = wish->l2;
	counting.refused = wish->refused;
	counting.start_thread = wish->start_thread;
	if (!bind(cupti, why))
		return false;
	if (regcomp(&counting.pattern, wish->pattern, REG_EXTENDED | REG_NOSUB)) {
		snprintf(why, COUNTERS_TEXT, "no counters: %.80s is not a valid regular expression",
			 wish->pattern);
		return false;
	}
	if (launch_open(&counting.launches, cupti, on_launch, on_context, on_graph))
		return true;
	snprintf(why, COUNTERS_TEXT,
		 "no counters: CUPTI refuses callbacks for launches; another profiler may be using them");
	return false;
}
