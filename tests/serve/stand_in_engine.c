/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine without a model, for tests of the front end. It answers each request with tokens of its own choice, one per
 * step, and uses the frames of the real engine. Its socket is descriptor 3.
 * usage: stand_in_engine EPOCH [OPTION=VALUE].. (main lists the options)
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "engine/frame/frame.h"

enum { SEQUENCES = 8192, ANSWER_MOST = 1 << 16 };

struct sequence {
	uint64_t id;
	int32_t *prompt, *answer; /* answer: fixed ids; without them, the prompt is repeated */
	size_t prompt_count, answer_count;
	int64_t at, most;
	bool scored, begun, ends;
	int32_t logprobs, prompt_logprobs, stop;
	bool failing;
};

struct engine {
	struct frame_link *link;
	struct sequence *seq;
	size_t count;
	struct engine_event *events;
	size_t event_count;
	struct engine_facts facts;
	bool drain;
	/* options */
	long step_us, load_ms, context, vocab, sequences, crash_after, hang_after, fail_after, tokens;
	const char *answer_file, *dump;
	FILE *gaps;
	/* noted per step for `gaps` */
	uint64_t sent_ns; /* the last one; 0: there was no sequence since */
	size_t later;	  /* tokens of the step that are not the first ones of their sequences */
};

static struct engine_event *add(struct engine *e, enum engine_event_kind kind, uint64_t id)
{
	struct engine_event *v = &e->events[e->event_count++];

	memset(v, 0, sizeof(*v));
	v->kind = kind;
	v->id = id;
	return v;
}

/* The time since the last step is the gap before each token of this one, except for first tokens. */
static void note_gap(struct engine *e)
{
	const uint64_t now = clock_now_ns(clock_monotonic());

	if (!e->gaps)
		return;
	if (e->sent_ns && e->later)
		fprintf(e->gaps, "%.3f %zu\n", (double)(now - e->sent_ns) * 1e-6, e->later);
	e->later = 0;
	e->sent_ns = e->count ? now : 0;
	if (!e->count) {
		fputs("idle\n", e->gaps);
		fflush(e->gaps);
	}
}

static void flush_step(struct engine *e)
{
	struct error err = {0};

	if (e->facts.running > (int32_t)e->count)
		e->facts.running = (int32_t)e->count;
	if (frame_send_step(e->link, &e->facts, e->events, e->event_count, &err) == STATUS_UNAVAILABLE)
		exit(0);
	e->event_count = 0;
	note_gap(e);
}

static void finish(struct engine *e, size_t i, enum engine_end end, const char *text)
{
	struct sequence *s = &e->seq[i];
	struct engine_event *v = add(e, ENGINE_EVENT_END, s->id);

	v->end = end;
	v->prompt_tokens = (int32_t)s->prompt_count;
	v->cached_tokens = (int32_t)(s->prompt_count / 2);
	v->tokens = (int32_t)s->at;
	snprintf(v->text, sizeof(v->text), "%s", text);
	e->facts.ended++;
	free(s->prompt);
	free(s->answer);
	e->seq[i] = e->seq[--e->count];
}

static void read_answer(struct sequence *s, const char *path)
{
	FILE *f = fopen(path, "r");
	int id;

	if (!f)
		return;
	s->answer = malloc(ANSWER_MOST * sizeof(*s->answer));
	while (s->answer && s->answer_count < ANSWER_MOST && fscanf(f, "%d", &id) == 1)
		s->answer[s->answer_count++] = id;
	fclose(f);
}

static void dump(const struct engine *e, const struct engine_request *r)
{
	FILE *f = e->dump ? fopen(e->dump, "a") : NULL;

	if (!f)
		return;
	fprintf(f,
		"prompt=%zu max=%lld min=%lld temperature=%g top_p=%g top_k=%d min_p=%g repetition=%g presence=%g "
		"frequency=%g seed=%llu stops=%zu biases=%zu logprobs=%d prompt_logprobs=%d priority=%d adapter=%d "
		"salt=%d grammar=%.*s\n",
		r->prompt_count, (long long)r->max_tokens, (long long)r->min_tokens,
		(double)r->sampling.temperature, (double)r->sampling.top_p, r->sampling.top_k,
		(double)r->sampling.min_p, (double)r->sampling.repetition, (double)r->sampling.presence,
		(double)r->sampling.frequency, (unsigned long long)r->sampling.seed, r->stops, r->biases,
		r->logprobs, r->prompt_logprobs, r->priority, r->adapter, r->cache_salt != 0,
		(int)r->grammar_size, r->grammar ? r->grammar : "");
	fclose(f);
}

static void submit(struct engine *e, const struct engine_request *r)
{
	struct sequence *s = &e->seq[e->count];

	dump(e, r);
	if (e->count == SEQUENCES || (long)r->prompt_count >= e->context || e->drain) {
		struct engine_event *v = add(e, ENGINE_EVENT_END, r->id);

		v->end = ENGINE_END_REFUSED;
		snprintf(v->text, sizeof(v->text), "the stand-in has no room");
		return;
	}
	*s = (struct sequence){.id = r->id,
			       .prompt_count = r->prompt_count,
			       .logprobs = r->logprobs,
			       .prompt_logprobs = r->prompt_logprobs,
			       .stop = r->stops ? r->stop[0] : -1};
	s->prompt = malloc(r->prompt_count * sizeof(*s->prompt));
	memcpy(s->prompt, r->prompt, r->prompt_count * sizeof(*s->prompt));
	if (e->answer_file)
		read_answer(s, e->answer_file);
	s->most = s->answer ? (int64_t)s->answer_count : e->tokens ? e->tokens : (int64_t)r->prompt_count;
	s->ends = s->stop >= 0;
	if (!s->ends)
		s->most = r->max_tokens > 0 ? r->max_tokens : s->most;
	if (r->max_tokens > 0 && r->max_tokens <= s->most) {
		s->most = r->max_tokens;
		s->ends = false;
	}
	if (r->max_tokens < 0) { /* only the prompt's log probabilities */
		s->most = 0;
		s->ends = false;
	}
	e->count++;
}

static void cancel(struct engine *e, uint64_t id)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->seq[i].id == id) {
			finish(e, i, ENGINE_END_CANCELLED, "");
			return;
		}
}

static void take_messages(struct engine *e)
{
	struct frame_message m;
	struct error err = {0};
	bool got = true;

	while (got) {
		enum status st = frame_receive(e->link, &m, &got, &err);

		if (st == STATUS_UNAVAILABLE)
			exit(0);
		if (st) {
			fprintf(stderr, "stand-in engine: %s\n", err.text);
			exit(1);
		}
		if (!got)
			return;
		if (m.kind == FRAME_REQUEST)
			submit(e, &m.request);
		else if (m.kind == FRAME_CANCEL)
			cancel(e, m.cancel);
		else if (m.kind == FRAME_DRAIN)
			e->drain = true;
	}
}

static void logprobs(struct engine_event *v, int32_t wanted, int32_t vocab)
{
	v->logprob = wanted >= 0 ? -0.25f : 0;
	v->tops = wanted > 0 ? wanted : 0;
	for (int32_t i = 0; i < v->tops; i++) {
		v->top[i].id = (v->token + i) % vocab;
		v->top[i].logprob = -0.25f - (float)i;
	}
}

static void score_prompt(struct engine *e, struct sequence *s)
{
	for (size_t k = 1; s->prompt_logprobs >= 0 && k < s->prompt_count; k++) {
		struct engine_event *v = add(e, ENGINE_EVENT_PROMPT, s->id);

		v->token = s->prompt[k];
		logprobs(v, s->prompt_logprobs, (int32_t)e->vocab);
	}
	s->scored = true;
	e->facts.prompt_tokens += s->prompt_count;
	e->facts.cached_tokens += s->prompt_count / 2;
}

/* One token of a sequence. True: the sequence goes on. */
static bool advance(struct engine *e, size_t i)
{
	struct sequence *s = &e->seq[i];
	struct engine_event *v;

	if (!s->begun) {
		add(e, ENGINE_EVENT_BEGUN, s->id);
		s->begun = true;
	}
	if (!s->scored)
		score_prompt(e, s);
	if (e->fail_after >= 0 && s->at == e->fail_after) {
		finish(e, i, ENGINE_END_FAILED, "the logits hold NaN");
		return false;
	}
	if (s->at < s->most) {
		v = add(e, ENGINE_EVENT_TOKEN, s->id);
		v->token = s->answer ? s->answer[(size_t)s->at % s->answer_count]
				     : s->prompt[(size_t)s->at % s->prompt_count];
		logprobs(v, s->logprobs, (int32_t)e->vocab);
		s->at++;
		e->later += s->at > 1;
		e->facts.tokens++;
		return true;
	}
	if (s->ends) {
		v = add(e, ENGINE_EVENT_TOKEN, s->id);
		v->token = s->stop;
		logprobs(v, s->logprobs, (int32_t)e->vocab);
		s->at++;
	}
	finish(e, i, s->ends ? ENGINE_END_STOP : ENGINE_END_LENGTH, "");
	return false;
}

static void fault(const struct engine *e)
{
	if (e->crash_after >= 0 && (long)e->facts.tokens >= e->crash_after)
		abort();
	while (e->hang_after >= 0 && (long)e->facts.tokens >= e->hang_after)
		pause();
}

static void step(struct engine *e)
{
	size_t most = (size_t)e->sequences < e->count ? (size_t)e->sequences : e->count;

	for (size_t i = 0; i < most && e->event_count + 4096 < FRAME_EVENTS_MOST;)
		if (advance(e, i))
			i++;
		else if (most > e->count)
			most = e->count;
	e->facts.steps++;
	e->facts.running = (int32_t)most;
	e->facts.waiting = (int32_t)(e->count - most);
	e->facts.pages = 1000;
	e->facts.pages_used = (int32_t)most;
	e->facts.step_s = (double)e->step_us * 1e-6;
	e->facts.busy_s += e->facts.step_s;
}

static void wait_us(const struct engine *e, long us)
{
	struct pollfd p = {.fd = frame_link_fd(e->link), .events = POLLIN | (frame_link_waits(e->link) ? POLLOUT : 0)};
	struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	ppoll(&p, 1, &t, NULL);
}

static void run(struct engine *e)
{
	uint64_t next = 0, beat = 0, now;
	struct error err = {0};

	for (;;) {
		take_messages(e);
		now = clock_now_ns(clock_monotonic());
		if (e->count && now >= next) {
			step(e);
			next = now + (uint64_t)e->step_us * 1000;
		}
		if (e->event_count)
			flush_step(e);
		fault(e);
		if (now - beat > 100000000u) {
			const struct frame_heartbeat b = {.step = e->facts.steps, .expected_ns = 0};

			frame_send_heartbeat(e->link, &b, &err);
			beat = now;
		}
		if (frame_flush(e->link, &err) || (e->drain && !e->count))
			return;
		now = clock_now_ns(clock_monotonic());
		wait_us(e, e->count ? (next > now ? (long)((next - now) / 1000) : 0) : 50000);
	}
}

static void option(struct engine *e, const char *word)
{
	const struct {
		const char *name;
		long *at;
	} numbers[] = {
		{"step_us", &e->step_us},	  {"load_ms", &e->load_ms},	  {"context", &e->context},
		{"vocab", &e->vocab},		  {"sequences", &e->sequences},	  {"crash_after", &e->crash_after},
		{"hang_after", &e->hang_after}, {"fail_after", &e->fail_after}, {"tokens", &e->tokens},
	};
	const char *equals = strchr(word, '=');

	for (size_t i = 0; equals && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strlen(numbers[i].name) == (size_t)(equals - word) &&
		    !strncmp(word, numbers[i].name, (size_t)(equals - word))) {
			*numbers[i].at = strtol(equals + 1, NULL, 10);
			return;
		}
	if (equals && !strncmp(word, "answer=", 7)) { /* a file with token ids */
		e->answer_file = equals + 1;
	} else if (equals && !strncmp(word, "gaps=", 5)) { /* a file that gets "ms tokens" per step, and "idle" after the last one */
		e->gaps = fopen(equals + 1, "w");
	} else if (equals && !strncmp(word, "dump=", 5)) { /* a file that gets a line per request */
		e->dump = equals + 1;
	} else {
		fprintf(stderr, "stand-in engine: no option %s\n", word);
		exit(64);
	}
}

/* The program does not free this at its end. */
static struct engine e;

int main(int argc, char **argv)
{
	struct engine_ready ready = {.device = "stand-in"};
	struct error err = {0};

	e = (struct engine){.step_us = 1000,
			   .context = 4096,
			   .vocab = 900,
			   .sequences = SEQUENCES,
			   .crash_after = -1,
			   .hang_after = -1,
			   .fail_after = -1};
	if (argc < 2)
		return 64;
	for (int i = 2; i < argc; i++)
		option(&e, argv[i]);
	e.seq = calloc(SEQUENCES, sizeof(*e.seq));
	e.events = calloc(2 * FRAME_EVENTS_MOST, sizeof(*e.events));
	if (!e.seq || !e.events || frame_link_create(&e.link, 3, (uint32_t)strtoul(argv[1], NULL, 10), 0, &err))
		return 1;
	usleep((useconds_t)e.load_ms * 1000);
	ready.vocab = e.vocab;
	ready.context = e.context;
	ready.pages = 1000;
	ready.page_tokens = 32;
	ready.sequences = e.sequences;
	frame_send_ready(e.link, &ready, &err);
	run(&e);
	return 0;
}
