/* SPDX-License-Identifier: Apache-2.0 */
#include "load/run/reporter.h"
#include <errno.h>
#include <time.h>
#include "core/clock.h"
#include "load/scrape/scrape.h"

enum { MISSED_MOST = 30 }; /* one after the other */

static double rate(double now, double before, double seconds)
{
	return seconds > 0 && now > before ? (now - before) / seconds : 0;
}

static double number(const json_t *line, const char *name)
{
	return json_number_value(json_object_get(line, name));
}

/* One line "alive": what has ended so far, and the rates since the line before. */
static void tell_alive(struct reporter *r)
{
	struct load_stages *s = r->stages;
	json_t *line = live_line(&s->live);
	const double now_s = clock_now_s(), since_s = now_s - r->told_s;
	const double ended = number(line, "ended"), tokens = number(line, "output_tokens");

	if (!line)
		return;
	json_object_set_new(line, "requests_per_s", json_real(rate(ended, r->told_ended, since_s)));
	json_object_set_new(line, "tokens_per_s", json_real(rate(tokens, r->told_tokens, since_s)));
	r->told_s = now_s;
	r->told_ended = ended;
	r->told_tokens = tokens;
	s->spec->emit(s->spec->arg, "alive", line, NULL);
}

/* One line "server": the readings of its metrics. A server without metrics is asked once only. */
static void tell_server(struct reporter *r)
{
	struct load_stages *s = r->stages;
	struct text body = {0};
	struct error why = {0};
	long status;
	json_t *line;

	if (!*r->metrics || r->lost)
		return;
	if (http_get(s->http, r->metrics, &status, &body, &why) || status != 200) {
		/* an overloaded server may miss some */
		r->lost = status == 404 || status == 401 || status == 403 || ++r->missed == MISSED_MOST;
		if (!r->lost)
			;
		else if (*why.text)
			log_warn(s->spec->log, LOG_TOPIC_RUN, "no metrics of the server: %s", why.text);
		else
			log_warn(s->spec->log, LOG_TOPIC_RUN, "no metrics of the server: status %ld of %s",
				 status, r->metrics);
	} else {
		r->missed = 0;
		line = scrape_read(text_str(&body), body.size);
		if (line)
			s->spec->emit(s->spec->arg, "server", line, NULL);
	}
	text_release(&body);
}

/* Waits a second. False: the end was asked for. */
static bool wait_second(struct reporter *r)
{
	struct timespec until;
	bool goes_on;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	pthread_mutex_lock(&r->lock);
	if (!r->end)
		pthread_cond_timedwait(&r->ended, &r->lock, &until);
	goes_on = !r->end;
	pthread_mutex_unlock(&r->lock);
	return goes_on;
}

static void *report(void *arg)
{
	struct reporter *r = arg;

	do {
		tell_alive(r);
		tell_server(r);
	} while (wait_second(r));
	return NULL;
}

enum status reporter_start(struct reporter *r, struct load_stages *stages, const char *metrics,
			   struct error *err)
{
	pthread_condattr_t monotonic;
	int errnum;

	*r = (struct reporter){.stages = stages, .metrics = metrics, .told_s = clock_now_s()};
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC); /* the wall clock may be set meanwhile */
	pthread_cond_init(&r->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	errnum = pthread_create(&r->thread, NULL, report, r);
	r->running = !errnum;
	return errnum ? error_errno(err, errnum, "a thread of the client process") : STATUS_OK;
}

void reporter_stop(struct reporter *r)
{
	if (!r->running)
		return;
	pthread_mutex_lock(&r->lock);
	r->end = true;
	pthread_cond_signal(&r->ended);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->ended);
	pthread_mutex_destroy(&r->lock);
	r->running = false;
}
