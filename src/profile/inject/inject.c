/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/inject/inject.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include "profile/inject/activity.h"
#include "profile/inject/glibc_compat.h"
#include "profile/inject/counters.h"
#include "profile/inject/nvtx.h"

COMPAT(pthread_create);
COMPAT(pthread_sigmask);

enum {
	BUFFER = 2 << 20,
	POOL = 16,
	CLOCK_EVERY_NS = 1000000000,
	EXIT_WAIT_MS = 5000,
	FLUSH_MS_MAX = 60000,
};
enum { UNOPENED, OPENING, OPENED };

/* The library's only writable state. A library that others load has no main function to hold it. It is zero
 * until this process uses it; a child of fork begins with zeroes again. */
static struct {
	uint32_t opened;   /* UNOPENED, OPENING or OPENED */
	uint32_t stopping; /* the process is in exit(): the tick thread does nothing more */
	uint32_t ticking;  /* the tick thread is inside CUPTI */
	uint32_t begun;	   /* CUDA was initialized */
	uint32_t collecting;
	uint64_t flush_ns;
	struct writer writer;
	struct cupti cupti;
	struct activity activity;
	uint32_t pool_lock, pooled;
	uint8_t *pool[POOL];
} state;

static bool hooked; /* exit and fork handlers are installed, for this process and its children */

#define EXPORT __attribute__((visibility("default")))
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjectionNvtx2(nvtx_export *tables);
EXPORT int InitializeInjectionNvtxExtension(struct nvtx_module *module);

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t value = 0;

	if (!text || !*text)
		return otherwise;
	for (; *text >= '0' && *text <= '9' && value < UINT64_MAX / 100; text++)
		value = value * 10 + (uint64_t)(*text - '0');
	return *text ? otherwise : value;
}

static bool has_value(const char *name, const char *value)
{
	const char *text = getenv(name);

	return text && !strcmp(text, value);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};

	nanosleep(&left, NULL);
}

static uint8_t *take_buffer(void)
{
	uint8_t *buffer = NULL;
	void *fresh;

	while (__atomic_exchange_n(&state.pool_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	if (state.pooled)
		buffer = state.pool[--state.pooled];
	__atomic_store_n(&state.pool_lock, 0, __ATOMIC_RELEASE);
	if (buffer)
		return buffer;
	fresh = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return fresh == MAP_FAILED ? NULL : fresh;
}

static void give_buffer(uint8_t *buffer)
{
	bool kept;

	memset(buffer, 0, BUFFER);
	while (__atomic_exchange_n(&state.pool_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	kept = state.pooled < POOL;
	if (kept)
		state.pool[state.pooled++] = buffer;
	__atomic_store_n(&state.pool_lock, 0, __ATOMIC_RELEASE);
	if (!kept)
		munmap(buffer, BUFFER);
}

/* Gives CUPTI a buffer. If there is no memory, CUPTI drops records and counts them. */
static void on_request(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = take_buffer();
	*size = *buffer ? BUFFER : 0;
	*records_max = 0; /* no limit except the size */
}

static void on_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	(void)context, (void)stream;
	if (!buffer)
		return;
	activity_convert(&state.activity, buffer, valid < size ? valid : size);
	give_buffer(buffer);
}

/* Flushes CUPTI regularly, because records must leave it before the process ends, however it ends. CUPTI's
 * own period hands out full buffers only. */
static void *tick(void *arg)
{
	uint64_t clock_ns = 0, now;

	(void)arg;
	for (;;) {
		sleep_ns(state.flush_ns);
		__atomic_store_n(&state.ticking, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&state.stopping, __ATOMIC_SEQ_CST))
			break;
		state.cupti.flush_all(0);
		now = writer_now_ns();
		if (now - clock_ns >= CLOCK_EVERY_NS) {
			activity_clock(&state.activity);
			clock_ns = now;
		}
		__atomic_store_n(&state.ticking, 0, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&state.ticking, 0, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *load_counters(void *arg)
{
	cupti_load_counters(arg);
	return NULL;
}

/* Starts a thread with all signals blocked, so that signals reach the program's own threads. */
static bool start_thread(void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	pthread_t thread;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return !code;
}

static void at_exit(void)
{
	if (!state.writer.open)
		return;
	__atomic_store_n(&state.stopping, 1, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < EXIT_WAIT_MS && __atomic_load_n(&state.ticking, __ATOMIC_SEQ_CST); i++)
		sleep_ns(1000000);
	counters_wait();
	if (state.collecting) {
		state.cupti.flush_all(CUPTI_FLUSH_FORCED);
		activity_clock(&state.activity);
	}
	writer_close(&state.writer);
}

/* The file and the CUPTI belong to the parent. */
static void in_child(void)
{
	writer_forget(&state.writer);
	counters_forget();
	memset(&state, 0, sizeof(state));
}

struct writer *inject_writer(void)
{
	const char *dir = getenv(INJECT_DIR);
	uint32_t expected = UNOPENED;

	if (__atomic_load_n(&state.opened, __ATOMIC_ACQUIRE) == OPENED)
		return &state.writer;
	if (!__atomic_compare_exchange_n(&state.opened, &expected, OPENING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		while (__atomic_load_n(&state.opened, __ATOMIC_ACQUIRE) == OPENING)
			sched_yield();
		return &state.writer;
	}
	if (dir && *dir == '/' && writer_open(&state.writer, dir, number(INJECT_LIMIT, INJECT_LIMIT_DEFAULT)))
		writer_note(&state.writer, "the program did not use CUDA");
	if (!hooked && state.writer.open)
		hooked = !pthread_atfork(NULL, NULL, in_child) && !atexit(at_exit);
	__atomic_store_n(&state.opened, OPENED, __ATOMIC_RELEASE);
	return &state.writer;
}

static int failed(const struct cupti *c, const char *what, int code, char why[CUPTI_TEXT])
{
	const char *text = NULL;

	if (c->error_text(code, &text) || !text)
		text = "unnamed error";
	if (code == CUPTI_MULTIPLE_SUBSCRIBERS)
		text = "another profiler uses CUPTI in this process";
	snprintf(why, CUPTI_TEXT, "%s: %s (%d)", what, text, code);
	return 0;
}

/* Enables records of work on devices, and of calls. Kernel records are required; old versions may refuse the
 * rest. */
static int start_timeline(struct cupti *c, bool late, char why[CUPTI_TEXT])
{
	static const uint32_t device[] = {CUPTI_KIND_DEVICE,  CUPTI_KIND_CONTEXT, CUPTI_KIND_MEMCPY,
					  CUPTI_KIND_MEMCPY2, CUPTI_KIND_MEMSET,  CUPTI_KIND_OVERHEAD};
	int code;

	for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); i++)
		c->enable(device[i]);
	if (has_value(INJECT_GRAPHS, "whole"))
		c->enable(CUPTI_KIND_GRAPH_TRACE);
	code = c->enable(CUPTI_KIND_CONCURRENT_KERNEL);
	if (code)
		return failed(c, "cuptiActivityEnable of kernels", code, why);
	if (!has_value(INJECT_WHAT, INJECT_WHAT_KERNELS))
		activity_enable_calls(&state.activity, late);
	if (state.activity.all_calls) /* records of what was waited for; CUPTI spends time on them at every
					 launch */
		c->enable(CUPTI_KIND_SYNCHRONIZATION);
	return 1;
}

static int start_cupti(struct cupti *c, char why[CUPTI_TEXT])
{
	uint8_t zeroed = 1;
	size_t size = sizeof(zeroed);
	int code;

	if (c->version_number < CUPTI_VERSION_MIN) {
		snprintf(why, CUPTI_TEXT,
			 "CUPTI version %u is too old; version 14 (CUDA 11.1) or newer is required",
			 c->version_number);
		return 0;
	}
	state.activity.cupti = c;
	state.activity.writer = &state.writer;
	state.activity.all_calls = has_value(INJECT_WHAT, INJECT_WHAT_ALL);
	code = c->register_callbacks(on_request, on_complete);
	if (code)
		return failed(c, "cuptiActivityRegisterCallbacks", code, why);
	if (c->set_attribute)
		c->set_attribute(CUPTI_ATTRIBUTE_ZEROED, &size, &zeroed);
	if (c->set_thread_ids) /* the same thread ids as in NVTX records, so that both lie on one track */
		c->set_thread_ids(CUPTI_THREAD_IDS_KERNEL);
	return getenv(INJECT_COUNTERS) ? 1 : start_timeline(c, false, why);
}

/* If counters are refused, a timeline is recorded instead, from the first launch on if the refusal is noticed
 * by then. */
static void on_refusal(void)
{
	char why[CUPTI_TEXT];

	start_timeline(&state.cupti, true, why);
}

/* Counters exclude records of kernels, so a profile with counters has no other records of work on devices. */
static void start_counters(struct cupti *c)
{
	const struct counters_wish wish = {.pattern = getenv(INJECT_COUNTERS),
					   .skip = number(INJECT_COUNTERS_SKIP, 0),
					   .count = number(INJECT_COUNTERS_COUNT, UINT64_MAX),
					   .flop = has_value(INJECT_COUNTERS_FLOP, "1"),
					   .l2 = has_value(INJECT_COUNTERS_L2, "1"),
					   .refused = on_refusal,
					   .start_thread = start_thread};
	char why[COUNTERS_TEXT], none[CUPTI_TEXT];

	c->enable(CUPTI_KIND_DEVICE);
	c->enable(CUPTI_KIND_CONTEXT);
	if (counters_begin(c->handle, &state.writer, &wish, why))
		return;
	writer_note(&state.writer, why);
	start_timeline(c, false, none);
}

static void collect(struct ring_header *h)
{
	char why[CUPTI_TEXT], path[CUPTI_TEXT], note[RING_NOTE];
	uint64_t flush_ms = number(INJECT_FLUSH, INJECT_FLUSH_DEFAULT_MS);

	if (!cupti_open(&state.cupti, start_cupti, path, why)) {
		snprintf(note, sizeof(note), "no CUPTI records: %.200s", why);
		writer_note(&state.writer, note);
		return;
	}
	writer_note(&state.writer, "");
	snprintf(h->library, sizeof(h->library), "%s", path);
	h->cupti_version = state.cupti.version_number;
	state.flush_ns = (flush_ms ? flush_ms < FLUSH_MS_MAX ? flush_ms : FLUSH_MS_MAX : 1) * 1000000u;
	activity_clock(&state.activity);
	state.collecting = 1;
	if (getenv(INJECT_COUNTERS)) {
		start_thread(load_counters, h->library); /* while the program creates its context */
		start_counters(&state.cupti);
	}
	if (!start_thread(tick, NULL))
		writer_note(&state.writer, "no thread could be started, so records leave CUPTI only when its "
					   "buffers are full or the program ends");
}

/* Always returns 1, so that the program goes on. */
int InitializeInjection(void)
{
	struct writer *w = inject_writer();

	if (w->open && !__atomic_exchange_n(&state.begun, 1, __ATOMIC_ACQ_REL))
		collect(w->header);
	return 1;
}

int InitializeInjectionNvtx2(nvtx_export *tables)
{
	return inject_writer()->open ? nvtx_attach(tables) : 0;
}

int InitializeInjectionNvtxExtension(struct nvtx_module *module)
{
	return inject_writer()->open ? nvtx_attach_payload(module) : 0;
}
