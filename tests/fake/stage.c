/* SPDX-License-Identifier: Apache-2.0 */
/* Reading FAKE_CUDA: which call fails, and with what. */
#include "stage.h"
#include <pthread.h>
#include <unistd.h>

enum { COUNTERS = 64 };

/* One lock: several ranks' threads may call. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char words[512], last[512]; /* what applies to this process, and the variable that it comes from */
static struct {
	char name[64];
	uint64_t count;
} counter[COUNTERS];
static int stuck;

static bool on_command_line(const char *word)
{
	char line[4096];
	size_t size, at = 0;
	bool found = false;
	FILE *f = fopen("/proc/self/cmdline", "re");

	size = f ? fread(line, 1, sizeof(line) - 1, f) : 0;
	line[size] = '\0';
	if (f)
		fclose(f);
	for (; at < size && !found; at += strlen(line + at) + 1)
		found = !strcmp(line + at, word);
	return found;
}

/* FAKE_CUDA_IN=WORD: the words are for processes that have WORD on their command line. */
static bool of_this_process(void)
{
	const char *word = getenv("FAKE_CUDA_IN");

	return !word || on_command_line(word);
}

/* The value of the variable; NULL: it is where it was. Each call of the driver asks, so no search of the environment answers. */
static const char *changed(void)
{
	static char **before, **at, *text;
	const size_t name = strlen("FAKE_CUDA=");

	if (at && before == environ && *at == text)
		return NULL;
	before = environ;
	for (at = environ; at && *at && strncmp(*at, "FAKE_CUDA=", name); at++)
		;
	if (!at || !*at) {
		at = NULL;
		return "";
	}
	text = *at;
	return text + name;
}

static void reread(void)
{
	const char *now = changed();

	if (!now || !strcmp(now, last))
		return;
	snprintf(last, sizeof(last), "%s", now);
	snprintf(words, sizeof(words), "%s", of_this_process() ? now : "");
	memset(counter, 0, sizeof(counter));
	stuck = 0;
}

static uint64_t count_up(const char *kind, const char *name)
{
	char full[64];

	snprintf(full, sizeof(full), "%s%s", kind, name);
	for (int i = 0; i < COUNTERS; i++) {
		if (!counter[i].name[0])
			snprintf(counter[i].name, sizeof(counter[i].name), "%s", full);
		if (!strcmp(counter[i].name, full))
			return ++counter[i].count;
	}
	return 0;
}

/* The text after "name=" in the words, or NULL. */
static const char *value_of(const char *name)
{
	size_t length = strlen(name);

	for (const char *p = words; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ',')) {
		if (!strncmp(p, name, length) && p[length] == '=')
			return p + length + 1;
	}
	return NULL;
}

static bool sticks(int code)
{
	return (code >= 700 && code < 800) || code == 214 || code == 226 || code == 999;
}

int stage_code(const char *symbol)
{
	const char *value;
	int code = 0;

	pthread_mutex_lock(&lock);
	reread();
	value = value_of(symbol);
	code = stuck;
	if (value && !stuck) {
		char *end;
		int wanted = (int)strtol(value, &end, 10);
		uint64_t from = *end == '@' ? strtoull(end + 1, NULL, 10) : 1;

		if (count_up("", symbol) >= from)
			code = wanted;
		if (code && sticks(code))
			stuck = code;
	}
	pthread_mutex_unlock(&lock);
	return code;
}

bool stage_due(const char *kind, const char *entry)
{
	const char *value;
	size_t length = strlen(entry);
	bool due = false;

	pthread_mutex_lock(&lock);
	reread();
	value = value_of(kind);
	if (value && !strncmp(value, entry, length) &&
	    (value[length] == 0 || value[length] == ',' || value[length] == '@'))
		due = count_up(kind, entry) >=
		      (value[length] == '@' ? strtoull(value + length + 1, NULL, 10) : 1);
	pthread_mutex_unlock(&lock);
	return due;
}

/* A device's number or '*'; what follows it, or NULL where it is another's. */
static const char *is_device(const char *p, int device)
{
	char *end;

	if (*p == '*')
		return p + 1;
	return strtol(p, &end, 10) == device && end != p ? end : NULL;
}

bool stage_pair(const char *word, int from, int to, double *number)
{
	const char *p;
	bool is = false;

	pthread_mutex_lock(&lock);
	reread();
	for (p = value_of(word); p && *p && *p != ',' && !is; p += *p == '+') {
		const char *at = is_device(p, from);

		at = at && *at == '>' ? is_device(at + 1, to) : NULL;
		is = at;
		if (is && number && *at == ':')
			*number = strtod(at + 1, NULL);
		p += strcspn(p, "+,");
	}
	pthread_mutex_unlock(&lock);
	return is;
}

uint64_t stage_number(const char *word, uint64_t fallback)
{
	const char *value;
	uint64_t n;

	pthread_mutex_lock(&lock);
	reread();
	value = value_of(word);
	n = value ? strtoull(value, NULL, 10) : fallback;
	pthread_mutex_unlock(&lock);
	return n;
}
