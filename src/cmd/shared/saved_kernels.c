/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/saved_kernels.h"
#include <jansson.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/file/file.h"
#include "core/process/process.h"
#include "core/text/text.h"

enum { CPUINFO_MOST = 16 << 20 };
#define GAIN_MOST 1000.0

struct keeping {
	struct user_cache cache;
	const struct log *log;
	char *id;
};

/* The CPU's model name, for example "AMD EPYC 9654 96-Core Processor". */
static void cpu_name(char *out, size_t size)
{
	static const char row[] = "model name";
	char *text = NULL, *at = NULL;

	*out = '\0';
	if (!file_read(&text, NULL, "/proc/cpuinfo", CPUINFO_MOST, NULL))
		at = strstr(text, row);
	at = at ? strchr(at, ':') : NULL;
	if (at) {
		at[strcspn(at, "\n")] = '\0';
		text_copy(out, size, at + 1 + strspn(at + 1, " \t"));
	}
	free(text);
}

static int usable_cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
}

/* Makes the cache key, one line. NULL if the library's file cannot be identified. The caller frees it with
 * free(). */
static char *key_of(const char *library, const char *chosen)
{
	char cpu[128], build[PROCESS_BUILD], *text;
	struct stat about;
	json_t *j;

	if (!*library || stat(library, &about))
		return NULL;
	cpu_name(cpu, sizeof(cpu));
	process_build(build);
	j = json_pack("{s:s, s:i, s:s, s:I, s:I, s:s, s:s}", "cpu", cpu, "cpus", usable_cpus(), "library",
		      library, "bytes", (json_int_t)about.st_size, "changed",
		      (json_int_t)about.st_mtim.tv_sec, "chosen", chosen, "build", build);
	text = j ? json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(j);
	return text;
}

static bool take(const char *body, char name[32], double *gain)
{
	json_t *j = json_loads(body, JSON_REJECT_DUPLICATES, NULL);
	const char *kernels = json_string_value(json_object_get(j, "kernels"));
	const json_t *value = json_object_get(j, "gain");
	const bool good = kernels && strlen(kernels) < 32 && json_is_number(value) &&
			  isfinite(json_number_value(value)) &&
			  json_number_value(value) >= CPU_KERNELS_GAIN &&
			  json_number_value(value) <= GAIN_MOST;

	if (good) {
		text_copy(name, 32, kernels);
		*gain = json_number_value(value);
	}
	json_decref(j);
	return good;
}

static bool find(void *arg, const char *library, const char *chosen, char name[32], double *gain)
{
	struct keeping *k = arg;
	char *key = key_of(library, chosen), *body = NULL;
	struct error why = {0};
	bool found = false;

	if (!key)
		return false;
	if (!user_cache_read(&k->cache, key, &body, &why) && body) {
		found = take(body, name, gain);
		if (!found)
			error_set(&why, STATUS_BAD_INPUT, "%s: the saved kernel name is not valid",
				  k->cache.dir);
	}
	if (why.status)
		log_warn(k->log, LOG_TOPIC_RUN, "%s; timing OpenBLAS kernels again", why.text);
	if (found)
		user_cache_id(k->id, key);
	free(body);
	free(key);
	return found;
}

static void keep(void *arg, const char *library, const char *chosen, const char *name, double gain)
{
	struct keeping *k = arg;
	char *key = key_of(library, chosen);
	json_t *j = json_pack("{s:s, s:f}", "kernels", name, "gain", gain);
	char *body = j ? json_dumps(j, JSON_COMPACT) : NULL;
	struct error why = {0};

	if (key && body && user_cache_write(&k->cache, key, body, &why))
		log_info(k->log, LOG_TOPIC_RUN, "cannot save the tuning choice for other runs: %s", why.text);
	free(body);
	free(key);
	json_decref(j);
}

void saved_kernels_settle(struct cpu_kernels *out, char id[USER_CACHE_ID], const char *kept, bool cache,
			  const struct log *log, const volatile sig_atomic_t *stop)
{
	struct keeping k = {.log = log, .id = id};
	const struct cpu_kernels_memory memory = {.find = find, .keep = keep, .arg = &k};

	*id = '\0';
	cache = cache && !user_cache_open(&k.cache, "kernels", NULL);
	cpu_kernels_settle(out, kept, cache ? &memory : NULL, stop);
	if (!out->cached)
		*id = '\0';
}
