/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/request_summary.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/math/stats.h"
#include "core/json/member.h"
#include "serve/fields.h"

enum { SAMPLES_MOST = 1 << 20 }; /* of one kind of time; beyond it, every second one is dropped */

/* Times of one kind. Only every `every`-th one is kept. */
struct times {
	double *value;
	size_t count, room, every, seen;
};

struct summary {
#define X(name, unit, better, help) double name;
	SERVE_FIELDS(X)
#undef X
	double cached;
	struct times ttft, tpot, e2e;
};

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
			       "no memory to summarize the request log");
}

static void thin(struct times *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->count; i += 2)
		t->value[kept++] = t->value[i];
	t->count = kept;
	t->every *= 2;
}

static bool add_time(struct times *t, double value)
{
	if (!t->every)
		t->every = 1;
	if (t->seen++ % t->every)
		return true;
	if (t->count == SAMPLES_MOST)
		thin(t);
	if (t->count == t->room) {
		const size_t room = t->room ? 2 * t->room : 1024;
		double *more = realloc(t->value, room * sizeof(*more));

		if (!more)
			return false;
		t->value = more;
		t->room = room;
	}
	t->value[t->count++] = value;
	return true;
}

static double number(const json_t *line, const char *name)
{
	return json_number_value(json_object_get(line, name));
}

static bool generates(const char *endpoint)
{
	return strcmp(endpoint, "/tokenize") != 0 && strcmp(endpoint, "/detokenize") != 0;
}

/* Counts how the request ended. True: it was answered completely. */
static bool add_end(struct summary *s, const json_t *line)
{
	const char *end = json_member_text(line, "end");
	const int status = (int)json_integer_value(json_object_get(line, "status"));
	const bool left = !strcmp(end, "left"), limited = !left && status == 429;
	const bool refused = !left && !limited && status >= 400 && status < 500;
	/* a stream that failed had begun with status 200 */
	const bool failed = !left && (status >= 500 || (status < 400 && !strcmp(end, "failed")));

	s->left += left;
	s->limited += limited;
	s->failed += failed;
	s->refused += refused;
	return !left && !limited && !failed && !refused;
}

/* Only complete answers have times: the others end at a time of the client's choice. */
static bool add_times(struct summary *s, const json_t *line)
{
	const double first = number(line, "first_token_s"), total = number(line, "total_s");
	const double tokens = number(line, "tokens");
	bool added = !json_object_get(line, "total_s") || add_time(&s->e2e, total);

	if (!json_object_get(line, "first_token_s"))
		return added;
	added = add_time(&s->ttft, first) && added;
	if (number(line, "choices") == 1 && tokens > 1)
		added = add_time(&s->tpot, (total - first) / (tokens - 1)) && added;
	return added;
}

static bool add_line(struct summary *s, const json_t *line)
{
	if (!generates(json_member_text(line, "endpoint")))
		return true;
	s->requests++;
	s->retried += number(line, "retries") > 0;
	s->prompt_tokens += number(line, "prompt_tokens");
	s->cached += number(line, "cached_tokens");
	s->tokens += number(line, "tokens");
	if (!add_end(s, line))
		return true;
	s->answered++;
	return add_times(s, line);
}

static enum status read_lines(struct summary *s, FILE *f, struct error *err)
{
	char *text = NULL;
	size_t room = 0;
	ssize_t size;
	bool added = true;

	for (size_t i = 0; added && i < REQUEST_SUMMARY_LINES && (size = getline(&text, &room, f)) > 0; i++) {
		json_t *line = json_loadb(text, (size_t)size, 0, NULL);

		added = !json_is_object(line) || add_line(s, line);
		json_decref(line);
	}
	free(text);
	return added ? STATUS_OK : no_memory(err);
}

/* The median, and percentiles whose distribution-free 95 % interval can end within the sample. */
static bool is_known(double share, size_t count)
{
	return share <= 0.5 || pow(share, (double)count) <= 0.025;
}

/* Times to names "NAME_p50_s" and so on. */
static void set_times(json_t *out, const char *name, const struct times *t)
{
	static const struct {
		const char *word;
		double share;
	} parts[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}};
	char key[32];

	if (!t->count)
		return;
	stats_sort(t->value, t->count);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!is_known(parts[i].share, t->count))
			continue;
		snprintf(key, sizeof(key), "%s_%s_s", name, parts[i].word);
		json_object_set_new(out, key,
				    json_real(stats_percentile(t->value, t->count, parts[i].share)));
	}
	snprintf(key, sizeof(key), "%s_samples", name);
	json_object_set_new(out, key, json_real((double)t->seen));
}

static json_t *write_summary(const struct summary *s)
{
	json_t *out = json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "requests", s->requests,
				"answered", s->answered, "refused", s->refused, "limited", s->limited,
				"failed", s->failed, "left", s->left, "retried", s->retried, "prompt_tokens",
				s->prompt_tokens, "tokens", s->tokens);

	if (out && s->prompt_tokens > 0)
		json_object_set_new(out, "cache_hit_share", json_real(s->cached / s->prompt_tokens));
	set_times(out, "ttft", &s->ttft);
	set_times(out, "tpot", &s->tpot);
	set_times(out, "e2e", &s->e2e);
	return out;
}

/* A device or a pipe, where the log may be written to, can block its reader or never end. */
static enum status open_log(FILE **out, const char *path, uint64_t begin, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat is;
	enum status st;

	*out = NULL;
	if (fd < 0 || fstat(fd, &is))
		goto refused;
	if (!S_ISREG(is.st_mode)) {
		close(fd);
		return error_set(err, STATUS_UNSUPPORTED,
				 "no figures of the requests: the request log %s is not a regular file",
				 path);
	}
	*out = fdopen(fd, "r");
	if (*out && !fseeko(*out, (off_t)begin, SEEK_SET))
		return STATUS_OK;
refused:
	st = error_errno(err, errno, "cannot read the request log %s", path);
	if (*out)
		fclose(*out);
	else if (fd >= 0)
		close(fd);
	*out = NULL;
	return st;
}

enum status request_summary_read(json_t **out, const char *path, uint64_t begin, struct error *err)
{
	struct summary s = {0};
	FILE *f;
	enum status st = open_log(&f, path, begin, err);

	*out = NULL;
	if (!st)
		st = read_lines(&s, f, err);
	if (!st && !(*out = write_summary(&s)))
		st = no_memory(err);
	if (f)
		fclose(f);
	free(s.ttft.value);
	free(s.tpot.value);
	free(s.e2e.value);
	return st;
}
