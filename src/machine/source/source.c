/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/source/source.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/process/process.h"
#include "core/text/text.h"
#include "machine/source/live.h"

enum { TEXT_MAX = 4 << 20, LAYER_BYTES_MAX = 16 << 20, LIBS_MAX = 32 };

struct source {
	bool live;
	const struct log *log;
	const volatile sig_atomic_t *stop;
	json_t *host;	   /* {"text": {path: ..}, "list": .., "link": .., "value": ..} */
	json_t *layers[4]; /* raw answers by enum layer; {"error": ".."} if there is none */
	char label[160];
	const char *const *libs; /* lent; NULL: all */
	/* A helper that was started early, on a thread that lives as long as the helper. source_layer takes
	 * its answer. */
	bool asked_ahead;
	enum layer ahead;
	pthread_t thread;
	json_t *ahead_answer;
	struct error ahead_error; /* why there is no answer, for the log */
};

static const char *const layer_names[] = {"host", "nvml", "cuda", "software"};
/* Time limits of helpers. CUDA needs 0.3 s per GPU, and more for files that come from a slow disk. */
static const unsigned layer_limit_ms[] = {0, 20000, 60000, 60000};

const char *layer_name(enum layer layer)
{
	return layer_names[layer];
}

static enum status source_new(struct source **out, struct error *err)
{
	struct source *s = calloc(1, sizeof(*s));

	if (s)
		s->host = json_pack("{s:{},s:{},s:{},s:{}}", "text", "list", "link", "value");
	if (!s || !s->host) {
		source_close(s);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "machine: out of memory");
	}
	*out = s;
	return STATUS_OK;
}

enum status source_live(struct source **s, const struct log *log, struct error *err)
{
	enum status st = source_new(s, err);

	if (!st) {
		(*s)->live = true;
		(*s)->log = log;
	}
	return st;
}

void source_heed(struct source *s, const volatile sig_atomic_t *stop)
{
	s->stop = stop;
}

bool source_stopped(const struct source *s, struct error *err)
{
	if (!s->stop || !*s->stop)
		return false;
	error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED, "stopped while the machine was read");
	return true;
}

static void take_ahead(struct source *s);

void source_close(struct source *s)
{
	if (!s)
		return;
	take_ahead(s);
	json_decref(s->host);
	for (size_t i = 0; i < 4; i++)
		json_decref(s->layers[i]);
	free(s);
}

bool source_is_live(const struct source *s)
{
	return s->live;
}

const char *source_label(const struct source *s)
{
	return s->label;
}

/* Texts of several lines are lists of lines in the file, so that people can read and edit them. */
static void join_lines(json_t *texts)
{
	const char *path;
	json_t *value;
	void *tmp;

	json_object_foreach_safe(texts, tmp, path, value)
	{
		struct text t = {0};
		size_t i;
		json_t *line;

		if (!json_is_array(value))
			continue;
		json_array_foreach(value, i, line)
		{
			if (i)
				text_add(&t, "\n");
			text_add(&t, json_string_value(line) ? json_string_value(line) : "");
		}
		json_object_set_new(texts, path, json_string(text_str(&t)));
		text_release(&t);
	}
}

/* Takes the four parts of `host` that are objects, and the raw JSON of each layer (lent; NULL: not in the
 * recording). */
static void take_parts(struct source *s, const json_t *host, const json_t *const layers[4])
{
	static const char *const parts[] = {"text", "list", "link", "value"};

	for (size_t i = 0; i < 4; i++) {
		json_t *part = json_object_get(host, parts[i]);

		if (json_is_object(part))
			json_object_set_new(s->host, parts[i], json_deep_copy(part));
	}
	for (size_t i = 1; i < 4; i++)
		s->layers[i] = json_is_object(layers[i]) ? json_deep_copy(layers[i]) : NULL;
	join_lines(json_object_get(s->host, "text"));
}

enum status source_from_json(struct source **out, const json_t *recording, struct error *err)
{
	const json_t *layers[4] = {NULL};
	const char *label;
	enum status st = source_new(out, err);

	if (st)
		return st;
	for (size_t i = 1; i < 4; i++)
		layers[i] = json_object_get(recording, layer_names[i]);
	take_parts(*out, json_object_get(recording, "host"), layers);
	label = json_string_value(json_object_get(json_object_get(recording, "recording"), "label"));
	text_copy((*out)->label, sizeof((*out)->label), label ? label : "");
	return STATUS_OK;
}

static json_t *refusal(const char *why)
{
	return json_pack("{s:s}", "error", why);
}

/* /proc/cpuinfo repeats long lines for each CPU. Only those of the first CPU are saved. */
static void thin_cpuinfo(char *data)
{
	static const char *const repeated[] = {"flags", "bugs", "vmx flags", "Features"};
	char *out = data, *line = data;
	bool first = true;

	while (*line) {
		size_t n = strcspn(line, "\n");
		bool drop = false;

		if (!n)
			first = false;
		for (size_t i = 0; !first && i < sizeof(repeated) / sizeof(repeated[0]); i++)
			drop = drop || (!strncmp(line, repeated[i], strlen(repeated[i])) &&
					strchr("\t :", line[strlen(repeated[i])]));
		n += line[n] == '\n';
		if (!drop) {
			memmove(out, line, n);
			out += n;
		}
		line += n;
	}
	*out = 0;
}

static json_t *read_text(const char *path)
{
	struct error err = {0};
	char *data = NULL;
	size_t size = 0;
	json_t *value;

	errno = 0;
	if (file_read(&data, &size, path, TEXT_MAX, &err)) {
		int errnum = errno;

		return errnum ? live_refusal("", errnum) : refusal(err.text);
	}
	if (!strcmp(path, "/proc/cpuinfo"))
		thin_cpuinfo(data);
	size = strlen(data);
	while (size && (data[size - 1] == '\n' || data[size - 1] == ' '))
		data[--size] = 0;
	value = json_string(data);
	free(data);
	return value ? value : refusal("not UTF-8 text");
}

static json_t *read_list(const char *path)
{
	DIR *dir = opendir(path);
	char **names = NULL;
	size_t count = 0, room = 0;
	struct dirent *e;
	json_t *list;

	if (!dir)
		return live_refusal("", errno);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		if (count == room) {
			char **more = realloc(names, (room = room ? 2 * room : 64) * sizeof(*names));

			if (!more)
				break;
			names = more;
		}
		names[count] = strdup(e->d_name);
		count += names[count] != NULL;
	}
	closedir(dir);
	if (count)
		qsort(names, count, sizeof(*names), text_compare);
	list = json_array();
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(list, json_string(names[i]));
		free(names[i]);
	}
	free(names);
	return list;
}

static json_t *read_link(const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0)
		return live_refusal("", errno);
	target[n] = 0;
	return json_string(target);
}

/* Returns the saved reading. If there is none, a live source reads it and saves it. */
static const json_t *ask(struct source *s, const char *part, const char *what, json_t *(*live)(const char *))
{
	json_t *map = json_object_get(s->host, part), *value = json_object_get(map, what);

	if (!value && s->live) {
		value = live(what);
		if (value)
			json_object_set_new(map, what, value);
	}
	return value;
}

const char *source_text(struct source *s, const char *path)
{
	return json_string_value(ask(s, "text", path, read_text));
}

const json_t *source_list(struct source *s, const char *path)
{
	const json_t *value = ask(s, "list", path, read_list);

	return json_is_array(value) ? value : NULL;
}

static const char *link_text(struct source *s, const char *path)
{
	return json_string_value(ask(s, "link", path, read_link));
}

const json_t *source_value(struct source *s, const char *key)
{
	const json_t *value = ask(s, "value", key, source_live_value);

	return json_object_get(value, "error") ? NULL : value;
}

void source_record_value(struct source *s, const char *key, json_t *value)
{
	if (value && s->live)
		json_object_set_new(json_object_get(s->host, "value"), key, value);
	else
		json_decref(value);
}

const char *source_why(struct source *s, const char *what)
{
	static const char *const parts[] = {"text", "list", "link", "value"};
	const char *why = NULL;

	for (size_t i = 0; !why && i < 4; i++)
		why = json_string_value(
			json_object_get(json_object_get(json_object_get(s->host, parts[i]), what), "error"));
	for (size_t i = 1; !why && i < 4; i++) {
		if (!strcmp(what, layer_names[i]))
			why = json_string_value(json_object_get(s->layers[i], "error"));
	}
	return why ? why : s->live ? "not read" : "not in the recording";
}

const char *source_textf(struct source *s, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return source_text(s, path);
}

const char *source_linkf(struct source *s, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return link_text(s, path);
}

unsigned source_limit_ms(enum layer layer)
{
	const char *text = getenv("ASSAY_FACTS_LIMIT_MS");
	char *end;
	unsigned long ms = text ? strtoul(text, &end, 10) : 0;

	return text && end != text && !*end && ms >= 1 && ms <= 3600000 ? (unsigned)ms
									: layer_limit_ms[layer];
}

/* Runs `assay __facts LAYER` in its own process, so that a library that hangs or crashes affects its own
 * answers only. */
static json_t *ask_helper(const struct source *s, enum layer layer, struct error *err)
{
	const char *argv[LIBS_MAX + 4] = {NULL, "__facts", layer_names[layer]};
	struct process_spec spec = {.argv = argv, .cpu_numa = -1, .stop = s->stop};
	json_error_t e;
	json_t *answer;
	char *out = NULL, line[640];
	size_t size = 0;
	int code = 0;

	for (size_t i = 0; layer == LAYER_SOFTWARE && s->libs && s->libs[i] && i < LIBS_MAX; i++)
		argv[i + 3] = s->libs[i];
	if (process_run(&spec, source_limit_ms(layer), LAYER_BYTES_MAX, &out, &size, &code, err)) {
		free(out);
		answer = refusal(err->text);
		json_object_set_new(answer, "cause", json_string(cause_name(err->cause)));
		return answer;
	}
	answer = json_loadb(out, size, JSON_REJECT_DUPLICATES, &e);
	free(out);
	if (code || !json_is_object(answer)) {
		json_decref(answer);
		snprintf(line, sizeof(line), "the facts helper ended with code %d: %s", code, e.text);
		return refusal(line);
	}
	return answer;
}

static void tell(const struct source *s, enum layer layer, const struct error *err)
{
	if (err->text[0])
		log_debug(s->log, LOG_TOPIC_MACHINE, "facts %s: %s", layer_names[layer], err->text);
}

static void *ahead_main(void *arg)
{
	struct source *s = arg;

	s->ahead_answer = ask_helper(s, s->ahead, &s->ahead_error);
	return NULL;
}

static void take_ahead(struct source *s)
{
	if (!s->asked_ahead)
		return;
	pthread_join(s->thread, NULL);
	s->asked_ahead = false;
	tell(s, s->ahead, &s->ahead_error);
	s->layers[s->ahead] = s->ahead_answer;
}

void source_want_libs(struct source *s, const char *const *libs)
{
	s->libs = libs;
}

void source_start_layer(struct source *s, enum layer layer)
{
	if (!s->live || s->asked_ahead || s->layers[layer] || layer == LAYER_HOST)
		return;
	s->ahead = layer;
	s->asked_ahead = !pthread_create(&s->thread, NULL, ahead_main, s);
}

const json_t *source_layer(struct source *s, enum layer layer)
{
	struct error err = {0};

	if (s->asked_ahead && s->ahead == layer)
		take_ahead(s);
	if (!s->layers[layer] && s->live && layer != LAYER_HOST) {
		s->layers[layer] = ask_helper(s, layer, &err);
		tell(s, layer, &err);
	}
	return json_object_get(s->layers[layer], "error") ? NULL : s->layers[layer];
}

enum cause source_layer_cause(const struct source *s, enum layer layer)
{
	const char *name = json_string_value(json_object_get(s->layers[layer], "cause"));
	enum cause cause = CAUSE_NONE;

	if (json_object_get(s->layers[layer], "error") && (!name || !cause_from_name(name, &cause)))
		cause = CAUSE_VENDOR_CALL;
	return cause;
}

const json_t *source_raw_host(const struct source *s)
{
	return s->host;
}

const json_t *source_raw_layer(const struct source *s, enum layer layer)
{
	return s->layers[layer];
}
