/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's counters above the fake driver, by its counted time. What each metric of counter/metrics.h reads is
 * staged: a share or rate as it is, a sum as so much a second of the device's time. One client holds a
 * device's counters, and every call out of order is refused as the library does. FAKE_CUPTI stages, as words
 * with commas:
 *   SYMBOL=CODE      this function returns CODE
 *   NAME=VALUE       what our metric of that name reads; nan=NAME: it was not counted
 *   unknown=PART     the chip knows no metric with PART in CUPTI's name of it
 *   level=VALUE      the support level of the device (3), and of virtual GPUs
 *   real=1           the device's time is that of the clock, not what the fake driver counts
 *   lost=1           ranges are dropped, samples overflow (cupti_sampling.c)
 *   slow=MS          a range profiler takes so long to start the first time; a process or a context that ends
 *                    meanwhile is told on stderr, and ends with 98
 *   linger=MS        launches are told so long after they were to be told no more (cupti_launch.c)
 *   first=NS         a range before which its pass had no work lasts so much longer
 */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "counter/metrics.h"
#include "cupti_counter.h"

enum { METRICS_MAX = 32 };

struct host {
	int type;
	size_t count;
	bool second_pass;
};

static bool initialized;
static struct session *holder; /* of the counters: one, as of the hardware */

/* The text behind `word=` in FAKE_CUPTI; NULL: not staged. */
const char *fake_staged(const char *word)
{
	const char *text = getenv("FAKE_CUPTI");
	size_t n = strlen(word);

	for (const char *at = text; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (!strncmp(at, word, n) && at[n] == '=')
			return at + n + 1;
	return NULL;
}

static double number(const char *word, double fallback)
{
	const char *text = fake_staged(word);

	return text ? strtod(text, NULL) : fallback;
}

static bool names(const char *word, const char *what)
{
	const char *text = fake_staged(word);
	char part[96];

	if (!text)
		return false;
	snprintf(part, sizeof(part), "%.*s", (int)strcspn(text, ","), text);
	return strstr(what, part) != NULL;
}

/* The driver's own time of the device; 0 where it is not loaded. */
double fake_now_ns(int device)
{
	static double (*now)(int);
	const char *named = getenv("ASSAY_LIB_CUDA");
	void *driver = now ? NULL : dlopen(named ? named : "libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (fake_staged("real")) {
		struct timespec t;

		clock_gettime(CLOCK_MONOTONIC, &t);
		return (double)t.tv_sec * 1e9 + (double)t.tv_nsec + 5e12; /* a clock of its own */
	}
	if (driver) {
		void *found = dlsym(driver, "fake_now");

		memcpy(&now, &found, sizeof(now));
	}
	return now ? now(device) : 0;
}

/* -- what the chip knows -- */

static const struct {
	const char *name, *metric;
	double factor;
	bool sum, second;
} rows[] = {
#define OF_CYCLES false
#define OF_TIME false
#define OF_ACTIVE false
#define OF_L2 false
#define SUM true
#define CORE false
#define CACHE true
#define TENSOR true
#define XU false
#define FMA false
#define FP64 false
#define ISSUE false
#define X(name, set, kind, metric, factor, unit, meaning) {#name, metric, factor, kind, set},
	COUNTER_METRICS(X)
#undef X
#define X(type, metric) {"tensor_flop", metric, 1, true, true},
		COUNTER_TENSOR_TYPES(X)
#undef X
#define X(name, metric, factor, unit, meaning) {#name, metric, factor, false, false},
			COUNTER_SAMPLED(X)
#undef X
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Is `metric` one of those in a|b? */
static bool one_of(const char *metrics, const char *metric)
{
	size_t n = strlen(metric);

	for (const char *at = metrics; at && (at = strstr(at, metric)); at++)
		if ((at == metrics || at[-1] == '|') && (!at[n] || at[n] == '|'))
			return true;
	return false;
}

static int row_of(const char *metric)
{
	for (int i = 0; i < ROWS; i++)
		if (one_of(rows[i].metric, metric) && !names("unknown", metric))
			return i;
	return -1;
}

static double value_of(const char *metric, double ns)
{
	int i = row_of(metric);
	double value = i < 0 ? NAN : number(rows[i].name, 0);

	if (i < 0 || names("nan", rows[i].name))
		return NAN;
	if (!strcmp(rows[i].name, "time_ns"))
		return ns;
	if (!strcmp(rows[i].name, "sm_cycles"))
		return ns * 1e-9 * number("clock_hz", 1.98e9);
	return (rows[i].sum ? value * ns * 1e-9 : value) / rows[i].factor;
}

/* -- the process and the device -- */

int cuptiProfilerInitialize(struct cupti_initialize *p)
{
	STAGED(cuptiProfilerInitialize);
	if (getenv("FAKE_CUDA_BEGINS"))
		return CUPTI_ERROR_UNKNOWN; /* inside cuInit */
	initialized = true;
	return CUPTI_SUCCESS;
}

int cuptiProfilerDeInitialize(struct cupti_deinitialize *p)
{
	STAGED(cuptiProfilerDeInitialize);
	initialized = false;
	return CUPTI_SUCCESS;
}

int cuptiDeviceGetChipName(struct cupti_chip *p)
{
	STAGED(cuptiDeviceGetChipName);
	p->chip = "GH100";
	return CUPTI_SUCCESS;
}

int cuptiProfilerDeviceSupported(struct cupti_supported *p)
{
	int level = (int)number("level", CUPTI_PROFILER_CONFIGURATION_SUPPORTED);

	STAGED(cuptiProfilerDeviceSupported);
	p->architecture = p->sli = p->confidential = p->cmp = p->wsl = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
	p->vgpu = p->all = level;
	return CUPTI_SUCCESS;
}

int fake_availability(uint8_t *image, size_t *size)
{
	if (!initialized)
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (image)
		memset(image, 1, *size);
	*size = 64;
	return CUPTI_SUCCESS;
}

int cuptiProfilerGetCounterAvailability(struct cupti_availability *p)
{
	STAGED(cuptiProfilerGetCounterAvailability);
	return fake_availability(p->image, &p->image_size);
}

int cuptiPmSamplingGetCounterAvailability(struct cupti_pm_availability *p)
{
	STAGED(cuptiPmSamplingGetCounterAvailability);
	return fake_availability(p->image, &p->image_size);
}

/* -- the host's side -- */

int cuptiProfilerHostInitialize(struct cupti_host_open *p)
{
	struct host *h;

	STAGED(cuptiProfilerHostInitialize);
	if (strcmp(p->chip, "GH100") != 0)
		return CUPTI_ERROR_INVALID_CHIP_NAME;
	h = calloc(1, sizeof(*h));
	h->type = p->type;
	p->host = h;
	return CUPTI_SUCCESS;
}

int cuptiProfilerHostDeinitialize(struct cupti_host_close *p)
{
	STAGED(cuptiProfilerHostDeinitialize);
	free(p->host);
	return CUPTI_SUCCESS;
}

int cuptiProfilerHostGetMetricProperties(struct cupti_host_properties *p)
{
	STAGED(cuptiProfilerHostGetMetricProperties);
	return row_of(p->metric) < 0 ? CUPTI_ERROR_INVALID_METRIC_NAME : CUPTI_SUCCESS;
}

int cuptiProfilerHostConfigAddMetrics(struct cupti_host_add *p)
{
	struct host *h = p->host;

	STAGED(cuptiProfilerHostConfigAddMetrics);
	for (size_t i = 0; i < p->count; i++) {
		int row = row_of(p->metrics[i]);

		if (row < 0)
			return CUPTI_ERROR_INVALID_PARAMETER;
		if (names("uncountable", p->metrics[i]))
			return CUPTI_ERROR_UNKNOWN; /* as CUPTI 13 says of links that a device does not have
						     */
		h->second_pass |= rows[row].second;
	}
	h->count += p->count;
	return h->count > METRICS_MAX ? CUPTI_ERROR_OUT_OF_MEMORY : CUPTI_SUCCESS;
}

int cuptiProfilerHostGetConfigImageSize(struct cupti_host_image_size *p)
{
	STAGED(cuptiProfilerHostGetConfigImageSize);
	p->image_size = sizeof(struct image);
	return CUPTI_SUCCESS;
}

int cuptiProfilerHostGetConfigImage(struct cupti_host_image *p)
{
	struct host *h = p->host;
	struct image i = {MAGIC, h->second_pass ? 2 : 1};

	STAGED(cuptiProfilerHostGetConfigImage);
	if (p->image_size != sizeof(i) || !h->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(p->image, &i, sizeof(i));
	return CUPTI_SUCCESS;
}

int cuptiProfilerHostGetNumOfPasses(struct cupti_host_passes *p)
{
	struct image i;

	STAGED(cuptiProfilerHostGetNumOfPasses);
	memcpy(&i, p->image, sizeof(i));
	p->passes = i.passes;
	return i.magic == MAGIC ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

int cuptiProfilerHostEvaluateToGpuValues(struct cupti_host_evaluate *p)
{
	const struct data *d = (const void *)p->data;

	STAGED(cuptiProfilerHostEvaluateToGpuValues);
	if (d->magic != MAGIC || p->range >= d->count)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->count; i++)
		p->values[i] = value_of(p->metrics[i], d->end_ns[p->range] - d->begin_ns[p->range]);
	return CUPTI_SUCCESS;
}

/* -- who holds the counters -- */

int fake_hold(int device, void **out)
{
	if (!initialized)
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (holder)
		return CUPTI_ERROR_HARDWARE_BUSY;
	holder = calloc(1, sizeof(*holder));
	holder->device = device;
	*out = holder;
	return CUPTI_SUCCESS;
}

int fake_let_go(void *session)
{
	if (session != holder || !holder)
		return CUPTI_ERROR_INVALID_PARAMETER;
	free(holder);
	holder = NULL;
	return CUPTI_SUCCESS;
}

int fake_empty(uint8_t *data, size_t size)
{
	if (size != sizeof(struct data))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memset(data, 0, size);
	((struct data *)(void *)data)->magic = MAGIC;
	return CUPTI_SUCCESS;
}

int fake_use(struct session *s, const uint8_t *image, size_t image_size, uint8_t *data)
{
	s->image = (const void *)image;
	s->data = (struct data *)(void *)data;
	return image_size == sizeof(struct image) && s->image->magic == MAGIC ? CUPTI_SUCCESS
									      : CUPTI_ERROR_INVALID_PARAMETER;
}

/* -- ranges -- */

int cuptiRangeProfilerEnable(struct cupti_range_enable *p)
{
	STAGED(cuptiRangeProfilerEnable);
	/* A context is its device's number and 1. */
	return fake_hold((int)(intptr_t)p->context - 1, &p->profiler);
}

int cuptiRangeProfilerDisable(struct cupti_range_disable *p)
{
	STAGED(cuptiRangeProfilerDisable);
	return fake_let_go(p->profiler);
}

int cuptiRangeProfilerGetCounterDataSize(struct cupti_range_data_size *p)
{
	STAGED(cuptiRangeProfilerGetCounterDataSize);
	p->data_size = sizeof(struct data);
	return p->ranges && p->nodes >= p->ranges ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

int cuptiRangeProfilerCounterDataImageInitialize(struct cupti_range_data *p)
{
	STAGED(cuptiRangeProfilerCounterDataImageInitialize);
	return fake_empty(p->data, p->data_size);
}

int cuptiRangeProfilerSetConfig(struct cupti_range_config *p)
{
	struct session *s = p->profiler;
	bool user = p->range == CUPTI_UserRange && p->replay == CUPTI_UserReplay;

	STAGED(cuptiRangeProfilerSetConfig);
	if ((!user && (p->range != CUPTI_AutoRange || p->replay != CUPTI_KernelReplay)) || p->levels != 1 ||
	    p->level_min != 1)
		return CUPTI_ERROR_INVALID_PARAMETER;
	s->kernels = !user;
	return fake_use(p->profiler, p->image, p->image_size, p->data);
}

static pid_t inside; /* a call that takes its time: of this process; 0: none */

static void take_time(void)
{
	static bool warm;
	long ms = (long)number("slow", 0);
	const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	if (!ms || warm)
		return;
	__atomic_store_n(&inside, getpid(), __ATOMIC_SEQ_CST);
	nanosleep(&time, NULL);
	__atomic_store_n(&inside, 0, __ATOMIC_SEQ_CST);
	warm = true;
}

/* As the driver would fall over, but each time. */
void fake_ends_under_us(void)
{
	if (__atomic_load_n(&inside, __ATOMIC_SEQ_CST) != getpid())
		return;
	fprintf(stderr, "fake CUPTI: it goes while counters are prepared\n");
	_exit(98);
}

static void __attribute__((destructor)) unload(void)
{
	fake_ends_under_us();
}

int cuptiRangeProfilerStart(struct cupti_range_start *p)
{
	struct session *s = p->profiler;

	STAGED(cuptiRangeProfilerStart);
	take_time();
	if (!s->data || s->started)
		return CUPTI_ERROR_INVALID_OPERATION;
	s->started = true;
	s->ranges = 0;
	s->start_ns = fake_now_ns(s->device);
	return CUPTI_SUCCESS;
}

int cuptiRangeProfilerPushRange(struct cupti_range_push *p)
{
	struct session *s = p->profiler;

	STAGED(cuptiRangeProfilerPushRange);
	if (!s->started || s->pushed || !p->name || s->ranges >= SAMPLES_MAX)
		return CUPTI_ERROR_INVALID_OPERATION;
	s->pushed = true;
	s->begin_ns = fake_now_ns(s->device);
	if (s->begin_ns <= s->start_ns)
		s->begin_ns -= number("first", 0);
	return CUPTI_SUCCESS;
}

int cuptiRangeProfilerPopRange(struct cupti_range_pop *p)
{
	struct session *s = p->profiler;

	STAGED(cuptiRangeProfilerPopRange);
	if (!s->pushed)
		return CUPTI_ERROR_INVALID_OPERATION;
	s->pushed = false;
	s->data->end_ns[s->ranges++] = fake_now_ns(s->device) - s->begin_ns;
	return CUPTI_SUCCESS;
}

int cuptiRangeProfilerStop(struct cupti_range_stop *p)
{
	struct session *s = p->profiler;

	STAGED(cuptiRangeProfilerStop);
	if (!s->started || s->pushed)
		return CUPTI_ERROR_INVALID_OPERATION;
	s->started = false;
	s->pass = s->kernels ? s->image->passes : s->pass + 1;
	p->pass = s->pass;
	p->all = s->pass >= s->image->passes;
	return CUPTI_SUCCESS;
}

void fake_count_kernel(double ns)
{
	if (holder && holder->kernels && holder->started && holder->ranges < SAMPLES_MAX)
		holder->data->end_ns[holder->ranges++] = ns;
}

int cuptiRangeProfilerDecodeData(struct cupti_range_decode *p)
{
	struct session *s = p->profiler;

	STAGED(cuptiRangeProfilerDecodeData);
	if (s->started || s->pass < s->image->passes)
		return CUPTI_ERROR_INVALID_OPERATION;
	p->dropped = fake_staged("lost") != NULL;
	s->data->count = p->dropped ? 0 : s->ranges;
	return CUPTI_SUCCESS;
}

int cuptiRangeProfilerGetCounterDataInfo(struct cupti_range_info *p)
{
	STAGED(cuptiRangeProfilerGetCounterDataInfo);
	p->ranges = ((const struct data *)(const void *)p->data)->count;
	return CUPTI_SUCCESS;
}
