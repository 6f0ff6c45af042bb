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
_Static_assert((int)ROWS <= (int)RING_COUNTERS, "a record holds them all");

/* The counters of one context. */
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

/* Writable, as inject.c's is; zero in a process that counts nothing. */
static struct {
	struct cupti cu;
	struct launch_calls launches;
	struct writer *writer;
	regex_t pattern;
	bool flop, l2;
	uint32_t lock;	 /* a launch at a time, from its begin to its end */
	uint64_t holder; /* 1 + that launch's correlation; 0: none */
	uint64_t matched, skip, left, graphs;
	struct session session[SESSIONS_MAX];
	struct session *open; /* counts the launch that holds the lock */
	void (*refused)(void);
	counters_thread *start_thread;
	size_t sessions;
	uint32_t preparing;
	void *prepared; /* the context */
} counting;

/* Refusals in words that say what to do. */
static void refuse(const char *call, int code, char why[COUNTERS_TEXT])
{
	const char *text = NULL, *advice = "";

	if (counting.cu.result_name(code, &text) || !text)
		text = "an error without a name";
	if (code == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
		advice = ": the driver allows counters to root alone (NVreg_RestrictProfilingToAdminUsers=0 "
			 "changes that)";
	if (code == CUPTI_ERROR_HARDWARE_BUSY)
		advice = ": another program holds them (dcgmi profile --pause, where it is DCGM)";
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

/* The first of metrics (a|b) that the chip knows. */
static void choose(struct session *s, enum row row, const char *metrics, double factor)
{
	while (metrics && *metrics && s->count < CHOSEN_MAX) {
		char *name = s->name[s->count];
		size_t n = strcspn(metrics, "|");

		snprintf(name, sizeof(s->name[0]), "%.*s", (int)n, metrics);
		metrics += n + (metrics[n] == '|');
		for (size_t i = 0; i < s->count; i++)
			if (!strcmp(s->name[i], name))
				return; /* two types that one metric counts */
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

	/* Pipes beside the tensor one: in the core's pass. */
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
	/* Without an image of what is available, which takes 0.12 s: every chip has these metrics. */
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

/* No kernel more is looked at. The end of this launch may not be told then: nobody waits for it any more. */
static void stop_counting(void)
{
	__atomic_store_n(&counting.left, 0, __ATOMIC_RELEASE);
	launch_follow(&counting.launches, false);
}

/* There will be no counters more, for this reason. */
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
	char why[COUNTERS_TEXT] = "no counters: out of memory, or CUPTI knows none of our metrics";
	struct session *s;

	for (size_t i = 0; i < counting.sessions; i++)
		if (counting.session[i].context == context)
			return &counting.session[i];
	if (counting.sessions == SESSIONS_MAX)
		return NULL;
	s = &counting.session[counting.sessions];
	s->context = context;
	/* Not before: the driver loads us inside its own initialisation, where this fails. */
	if (ASK(why, initialize, &CUPTI_PARAMS(initialize, .priv = NULL)) &&
	    launch_device(&counting.launches, context, &s->device) && open_host(s, why) &&
	    make_image(s, why) && make_data(s, why)) {
		counting.sessions++;
		return s;
	}
	give_up(why);
	return NULL;
}

/* Room for one range, from the begin. */
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

/* False: nothing is counted any more. Who held it then may never give it back, since its end is not told. */
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

/* What CUPTI does but once takes 0.2 s: while the program loads its libraries and fills its memory. A launch
 * waits until it is done. */
static void *prepare(void *context)
{
	struct cupti_range_stop stop = CUPTI_PARAMS(range_stop, .profiler = NULL);
	struct session *s;

	if (take_lock()) {
		s = counting.left && !counting.sessions ? session_of(context) : NULL;
		if (s && start(s)) {
			stop.profiler = s->profiler;
			counting.cu.range_stop(&stop); /* of no kernel: what it says does not matter */
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

/* The first context is prepared; others at their first launch that counts. */
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
			continue; /* the hardware did not count it */
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

/* Kernels of NCCL's wait for others: alone they would wait for ever. */
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

/* Of one that was let go without the lock the end may still be told, while another one's is at work. */
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

/* We open a range around each kernel's launch, and a graph's launch names none of its kernels. */
static void on_graph(void)
{
	if (!counting.graphs++)
		writer_note(counting.writer,
			    "no counters of kernels that CUDA graphs launch: only kernels that are launched "
			    "one by "
			    "one are counted. Without --counters the profile has the times of all of them");
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
			snprintf(why, COUNTERS_TEXT,
				 "no counters: this CUPTI has no %s: CUDA 12.6's and newer do",
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
		snprintf(why, COUNTERS_TEXT, "no counters: %.80s is no regular expression", wish->pattern);
		return false;
	}
	if (launch_open(&counting.launches, cupti, on_launch, on_context, on_graph))
		return true;
	snprintf(why, COUNTERS_TEXT,
		 "no counters: CUPTI does not let launches be followed; another profiler may");
	return false;
}
