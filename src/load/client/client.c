/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/client.h"
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "core/clock.h"
#include "load/client/parser.h"

struct client {
	const struct load_client_spec *spec;
	struct sender *senders;
	pthread_t *threads;
	unsigned started;
	atomic_bool failed;
	struct parser parser;
};

static enum status no_thread(int errnum, struct error *err)
{
	return error_errno(err, errnum, "a thread of the HTTP client");
}

static double process_cpu_s(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static enum status make_senders(struct client *c, const struct load_plan *plan, uint64_t epoch_ns,
				uint64_t begin_ns, struct error *err)
{
	const unsigned count = c->spec->threads; /* at most `connections` */
	enum status st = STATUS_OK;

	c->senders = calloc(count, sizeof(*c->senders));
	c->threads = calloc(count, sizeof(*c->threads));
	if (!c->senders || !c->threads)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %u sender threads", count);
	for (unsigned i = 0; i < count; i++)
		c->senders[i] = (struct sender){.wake = -1, .poll = -1, .timer = -1};
	for (unsigned i = 0; i < count && !st; i++) {
		struct sender *s = &c->senders[i];

		s->spec = c->spec;
		s->plan = plan;
		s->finished = &c->parser.finished;
		s->failed = &c->failed;
		s->epoch_ns = epoch_ns;
		s->begin_ns = begin_ns;
		s->number = i;
		s->connections = (c->spec->connections + count - 1 - i) / count;
		st = sender_create(s, err);
	}
	return st;
}

/* The senders run until all is sent and answered; then the parser, until all is read. */
static enum status run_threads(struct client *c, struct error *err)
{
	pthread_t parser;
	int errnum = pthread_create(&parser, NULL, parser_main, &c->parser);

	if (errnum)
		return no_thread(errnum, err);
	for (; c->started < c->spec->threads && !errnum; c->started += !errnum)
		errnum = pthread_create(&c->threads[c->started], NULL, sender_main, &c->senders[c->started]);
	for (unsigned i = 0; i < c->started; i++)
		pthread_join(c->threads[i], NULL);
	flight_queue_close(&c->parser.finished);
	pthread_join(parser, NULL);
	return errnum ? no_thread(errnum, err) : STATUS_OK;
}

/* The first error of a thread. */
static enum status collect(const struct client *c, struct load_client_result *r, struct error *err)
{
	struct load_times late = {0};
	enum status st = c->parser.status;

	if (st)
		*err = c->parser.error;
	for (unsigned i = 0; i < c->spec->threads; i++) {
		const struct sender *s = &c->senders[i];

		if (s->status && !st) {
			st = s->status;
			*err = s->error;
		}
		load_times_merge(&late, &s->late);
		r->dropped += s->dropped;
		r->open_most += s->open.most;
		r->use.waited_for_connection += s->waited;
		if (s->cpu_share > r->use.cpu_share)
			r->use.cpu_share = s->cpu_share;
	}
	if (late.count) {
		r->use.receive_late_p50_s = load_times_quantile(&late, 0.5);
		r->use.receive_late_p99_s = load_times_quantile(&late, 0.99);
	}
	r->use.parse_behind_s = c->parser.behind_s;
	return st;
}

enum status load_client_run(const struct load_client_spec *spec, const struct load_plan *plan,
			    uint64_t epoch_ns, uint64_t begin_ns, struct load_client_result *result,
			    struct error *err)
{
	struct client c = {.spec = spec,
			   .parser = {.spec = spec, .finished = FLIGHT_QUEUE_NEW, .epoch_ns = epoch_ns}};
	const double cpu_s = process_cpu_s(), from_s = clock_now_s();
	enum status st = make_senders(&c, plan, epoch_ns, begin_ns, err);

	*result = (struct load_client_result){0};
	c.parser.senders = c.senders;
	c.parser.failed = &c.failed;
	if (!st)
		st = run_threads(&c, err);
	if (!st)
		st = collect(&c, result, err);
	result->use.cpus = (process_cpu_s() - cpu_s) / (clock_now_s() - from_s + 1e-9);
	for (unsigned i = 0; c.senders && i < spec->threads; i++)
		sender_release(&c.senders[i]);
	free(c.senders);
	free(c.threads);
	return st;
}
