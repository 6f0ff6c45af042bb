/* SPDX-License-Identifier: Apache-2.0 */
/* The file of answers, and the switches that alter them. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include "nvml_fake.h"

static json_t *file;
double fake_began;

double fake_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The text after "KEY=" in a comma-separated list, or NULL. */
const char *fake_listed(const char *variable, const char *key)
{
	const char *p = getenv(variable);
	size_t n = strlen(key);

	while (p && *p) {
		if (!strncmp(p, key, n) && p[n] == '=')
			return p + n + 1;
		p = strchr(p, ',');
		p = p ? p + 1 : NULL;
	}
	return NULL;
}

static bool is(const char *variable, const char *key)
{
	const char *v = getenv(variable);

	return v && !strcmp(v, key);
}

/* One of the words of this process's command line. */
static bool in_process(const char *word)
{
	char line[4096];
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	line[size > 0 ? size : 0] = '\0';
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(line + at) + 1)
		if (!strcmp(line + at, word))
			return true;
	return false;
}

static bool of_this_process(void)
{
	const char *word = getenv("FAKE_NVML_IN");
	static int known; /* 1: no, 2: yes */

	if (!known)
		known = 1 + (!word || in_process(word));
	return known == 2;
}

/* How many of those processes have begun, this one included: a byte each in a file. */
static unsigned long processes_begun(void)
{
	static unsigned long number;
	const char *path = getenv("FAKE_NVML_COUNTED");
	int fd;

	if (number || !path || !of_this_process())
		return number;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd >= 0 && write(fd, ".", 1) == 1)
		number = (unsigned long)lseek(fd, 0, SEEK_CUR);
	if (fd >= 0)
		close(fd);
	return number;
}

bool fake_active(void)
{
	const char *after = getenv("FAKE_NVML_AFTER"), *from = getenv("FAKE_NVML_FROM");
	const char *until = getenv("FAKE_NVML_UNTIL"), *before = getenv("FAKE_NVML_BEFORE");

	if (!of_this_process() || (from && processes_begun() < strtoul(from, NULL, 10)) ||
	    (until && processes_begun() > strtoul(until, NULL, 10)))
		return false;
	if (before && fake_now() - fake_began >= strtod(before, NULL))
		return false;
	return !after || fake_now() - fake_began >= strtod(after, NULL);
}

static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fake_stage(const char *key)
{
	const char *busy = fake_listed("FAKE_NVML_BUSY", key);

	for (double end = busy ? cpu_now() + 1e-3 * strtod(busy, NULL) : 0; busy && cpu_now() < end;)
		;
	if (fake_active() && is("FAKE_NVML_HANG", key)) {
		for (;;)
			pause();
	}
	if (fake_active() && is("FAKE_NVML_CRASH", key))
		raise(SIGSEGV);
}

const json_t *fake_file(void)
{
	const char *path = getenv("FAKE_NVML_FILE");
	json_error_t e;

	if (!file) {
		file = json_load_file(path ? path : FAKE_NVML_DEFAULT, 0, &e);
		if (!file) {
			fprintf(stderr, "fake nvml: %s:%d: %s\n", path ? path : FAKE_NVML_DEFAULT, e.line,
				e.text);
			abort();
		}
	}
	return file;
}

const json_t *fake_device(nvmlDevice_t d)
{
	const json_t *gpus = json_object_get(fake_file(), "gpus");
	unsigned instance = d && d->index >= 64 ? d->index - 64 : 0;

	if (d && d->index >= 64)
		return json_array_get(json_object_get(json_array_get(gpus, instance / FAKE_INSTANCES), "mig"),
				      instance % FAKE_INSTANCES);
	return d ? json_array_get(gpus, d->index) : NULL;
}

/* FAKE_NVML_HANG_ON names another device. */
static bool fake_elsewhere(nvmlDevice_t d)
{
	const char *on = getenv("FAKE_NVML_HANG_ON");

	return on && (!d || strtoul(on, NULL, 10) != d->index);
}

/* The code of one answer [code, value?]; the value, lent, in *value. Absent: not supported. */
nvmlReturn_t fake_answer(nvmlDevice_t d, const json_t *map, const char *key, const json_t **value)
{
	const json_t *a = json_object_get(map, key);
	const char *lost = getenv("FAKE_NVML_LOST"), *ret;

	*value = NULL;
	if (!fake_elsewhere(d))
		fake_stage(key);
	if (d && lost && fake_active() && strtoul(lost, NULL, 10) == d->index &&
	    (!getenv("FAKE_NVML_LOST_NAMED") || strcmp(key, "pci") != 0))
		return NVML_ERROR_GPU_IS_LOST;
	ret = fake_active() ? fake_listed("FAKE_NVML_RET", key) : NULL;
	if (ret)
		return (nvmlReturn_t)strtol(ret, NULL, 10);
	if (!json_is_array(a))
		return fake_active() && fake_listed("FAKE_NVML_VALUE", key) ? NVML_SUCCESS
									    : NVML_ERROR_NOT_SUPPORTED;
	*value = json_array_get(a, 1);
	return (nvmlReturn_t)json_integer_value(json_array_get(a, 0));
}

static double field_value(nvmlDevice_t d, const char *key)
{
	const json_t *a = json_object_get(json_object_get(fake_device(d), "fields"), key);

	return json_number_value(json_array_get(a, 1));
}

/* The number of an answer, with the switches that alter it. */
double fake_number(nvmlDevice_t d, const char *key, double value)
{
	const char *fixed = fake_active() ? fake_listed("FAKE_NVML_VALUE", key) : NULL;
	const char *rate = fake_listed("FAKE_NVML_RATE", key);
	double t = fake_now() - fake_began;

	if (fixed)
		value = strtod(fixed, NULL);
	if (!strcmp(key, "energy") || !strcmp(key, "energy_total")) {
		t = floor(10 * t) / 10;
		if (!rate)
			value += t * field_value(d, "power_instant");
	}
	return rate ? value + t * strtod(rate, NULL) : value;
}

nvmlReturn_t fake_get_number(nvmlDevice_t d, const char *key, double *out)
{
	const json_t *value;
	nvmlReturn_t ret = fake_answer(d, json_object_get(fake_device(d), "calls"), key, &value);

	if (!ret)
		*out = fake_number(d, key, json_number_value(value));
	return ret;
}

nvmlReturn_t fake_get_uint(nvmlDevice_t d, const char *key, unsigned *out)
{
	double value;
	nvmlReturn_t ret = fake_get_number(d, key, &value);

	if (!ret)
		*out = (unsigned)value;
	return ret;
}

nvmlReturn_t fake_get_u64(nvmlDevice_t d, const char *key, unsigned long long *out)
{
	double value;
	nvmlReturn_t ret = fake_get_number(d, key, &value);

	if (!ret)
		*out = fake_u64(value);
	return ret;
}

nvmlReturn_t fake_copy_text(const json_t *value, char *out, unsigned size)
{
	const char *text = json_string_value(value);

	if (!text || strlen(text) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

nvmlReturn_t fake_get_text(nvmlDevice_t d, const char *key, char *out, unsigned size)
{
	const json_t *value;
	nvmlReturn_t ret = fake_answer(d, json_object_get(fake_device(d), "calls"), key, &value);

	return ret ? ret : fake_copy_text(value, out, size);
}

/* `count` numbers of a list answer; a number alone (FAKE_NVML_VALUE) stands for the first. */
nvmlReturn_t fake_get_list(nvmlDevice_t d, const char *key, double *out, size_t count)
{
	const json_t *value;
	nvmlReturn_t ret = fake_answer(d, json_object_get(fake_device(d), "calls"), key, &value);

	for (size_t i = 0; !ret && i < count; i++)
		out[i] = json_number_value(json_array_get(value, i));
	if (!ret)
		out[0] = fake_number(d, key, out[0]);
	return ret;
}
