/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/flight.h"
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"

enum { BYTES_KEPT = 1 << 20, ROOM_FIRST = 65536, STAMPS_FIRST = 512, RESEND_NS = 100000000 };

/* Doubles a list until it has room for `count` items. */
static bool reserve(void **list, size_t *room, size_t count, size_t item, size_t first)
{
	size_t wanted = *room ? *room : first;
	void *more;

	while (wanted < count)
		wanted *= 2;
	if (wanted == *room)
		return true;
	more = realloc(*list, wanted * item);
	if (!more)
		return false;
	*list = more;
	*room = wanted;
	return true;
}

/* The time is read before anything else is done with the bytes. */
static size_t take_body(char *data, size_t size, size_t count, void *arg)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());
	struct flight *f = arg;
	void *bytes = f->bytes, *stamp = f->stamp;

	size *= count;
	if (f->size + size > FLIGHT_ANSWER_MOST || f->stamps == FLIGHT_STAMPS_MOST ||
	    !reserve(&bytes, &f->room, f->size + size, 1, ROOM_FIRST))
		f->too_large = true;
	f->bytes = bytes;
	if (!f->too_large && !reserve(&stamp, &f->stamp_room, f->stamps + 1, sizeof(*f->stamp), STAMPS_FIRST))
		f->too_large = true;
	f->stamp = stamp;
	if (f->too_large)
		return 0;
	memcpy(f->bytes + f->size, data, size);
	f->size += size;
	f->stamp[f->stamps++] = (struct load_stamp){now_ns - f->epoch_ns, f->size};
	return size;
}

static size_t take_header(char *data, size_t size, size_t count, void *arg)
{
	struct flight *f = arg;

	(void)data;
	if (f->record.first_byte_ns == LOAD_NEVER)
		f->record.first_byte_ns = clock_now_ns(clock_monotonic()) - f->epoch_ns;
	return size * count;
}

/*
 * Immediately before the first byte is written. curl sends a request again by itself if a reused connection
 * is lost before the answer begins. Then it comes here a second time. The transfer is given up, because
 * flight_may_resend decides about it.
 */
static int before_sending(void *arg, char *ip, char *own_ip, int port, int own_port)
{
	struct flight *f = arg;

	(void)ip, (void)own_ip, (void)port, (void)own_port;
	if (f->record.sent_ns != LOAD_NEVER && !f->resending)
		return CURL_PREREQFUNC_ABORT;
	if (!f->resending)
		f->record.sent_ns = clock_now_ns(clock_monotonic()) - f->epoch_ns;
	f->resending = false;
	return CURL_PREREQFUNC_OK;
}

bool flight_may_resend(const struct http *h, const struct flight *f, CURLcode code, uint64_t now_ns)
{
	const struct load_record *r = &f->record;
	long connections = 0;

	if (r->flags & LOAD_FLAG_RESENT || r->sent_ns == LOAD_NEVER || r->first_byte_ns != LOAD_NEVER ||
	    now_ns - r->sent_ns > RESEND_NS)
		return false;
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return true;
	h->curl.easy_getinfo(f->easy, CURLINFO_NUM_CONNECTS, &connections);
	return !connections &&
	       (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING);
}

void flight_resend(const struct http *h, struct flight *f)
{
	f->record.flags |= LOAD_FLAG_RESENT;
	f->resending = true;
	h->curl.easy_setopt(f->easy, CURLOPT_FRESH_CONNECT, 1L);
}

struct flight *flight_create(const struct http *h, const char *path, uint64_t epoch_ns)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->epoch_ns = epoch_ns;
	f->easy = http_handle(h, path, true);
	if (!f->easy) {
		free(f);
		return NULL;
	}
	/* flight_list_limit has the limits. Those of libcurl cost two searches of all transfers a read. */
	h->curl.easy_setopt(f->easy, CURLOPT_TIMEOUT_MS, 0L);
	h->curl.easy_setopt(f->easy, CURLOPT_CONNECTTIMEOUT_MS, 0L);
	h->curl.easy_setopt(f->easy, CURLOPT_WRITEFUNCTION, take_body);
	h->curl.easy_setopt(f->easy, CURLOPT_WRITEDATA, f);
	h->curl.easy_setopt(f->easy, CURLOPT_HEADERFUNCTION, take_header);
	h->curl.easy_setopt(f->easy, CURLOPT_HEADERDATA, f);
	h->curl.easy_setopt(f->easy, CURLOPT_PREREQFUNCTION, before_sending);
	h->curl.easy_setopt(f->easy, CURLOPT_PREREQDATA, f);
	h->curl.easy_setopt(f->easy, CURLOPT_PRIVATE, f);
	return f;
}

void flight_destroy(const struct http *h, struct flight *f)
{
	if (!f)
		return;
	h->curl.easy_cleanup(f->easy);
	load_record_release(&f->record);
	text_release(&f->body);
	free(f->bytes);
	free(f->stamp);
	free(f);
}

static void drop_large_buffers(struct flight *f)
{
	if (f->room <= BYTES_KEPT)
		return;
	free(f->bytes);
	free(f->stamp);
	f->bytes = NULL;
	f->stamp = NULL;
	f->room = f->stamp_room = 0;
}

void flight_begin(struct flight *f, const struct load_request *r)
{
	load_record_release(&f->record);
	f->request = r;
	f->record = (struct load_record){
		.session = r->session,
		.turn = r->turn,
		.handed_ns = LOAD_NEVER,
		.sent_ns = LOAD_NEVER,
		.connected_ns = LOAD_NEVER,
		.first_byte_ns = LOAD_NEVER,
		.first_token_ns = LOAD_NEVER,
		.last_token_ns = LOAD_NEVER,
		.end_ns = LOAD_NEVER,
		.prompt_asked = r->prompt_tokens,
		.output_asked = r->output_tokens,
		.prompt_usage = LOAD_UNKNOWN,
		.output_usage = LOAD_UNKNOWN,
		.cached = LOAD_UNKNOWN,
		.output_counted = LOAD_UNKNOWN,
	};
	f->body.size = 0;
	f->size = f->stamps = 0;
	f->too_large = f->resending = false;
	drop_large_buffers(f);
}

/* curl counts from the moment at which it began the transfer; a connection that was used before has no times
 * of its own. */
static void set_connected(const struct http *h, struct flight *f)
{
	curl_off_t connect_us = 0, secure_us = 0;
	long connections = 0;

	h->curl.easy_getinfo(f->easy, CURLINFO_NUM_CONNECTS, &connections);
	h->curl.easy_getinfo(f->easy, CURLINFO_CONNECT_TIME_T, &connect_us);
	h->curl.easy_getinfo(f->easy, CURLINFO_APPCONNECT_TIME_T, &secure_us);
	if (connections == 0)
		f->record.connected_ns = f->record.handed_ns;
	else if (connect_us > 0)
		f->record.connected_ns =
			f->record.handed_ns + 1000u * (uint64_t)(secure_us > 0 ? secure_us : connect_us);
}

void flight_end(const struct http *h, struct flight *f, CURLcode code, uint64_t now_ns)
{
	long status = 0, errnum = 0;

	if (f->record.flags & LOAD_FLAG_RESENT)
		h->curl.easy_setopt(f->easy, CURLOPT_FRESH_CONNECT, 0L);
	h->curl.easy_getinfo(f->easy, CURLINFO_RESPONSE_CODE, &status);
	f->record.status = (uint32_t)status;
	f->record.error = http_error(h, f->easy, code);
	h->curl.easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &errnum);
	f->used_up = errnum != 0 || f->record.flags & LOAD_FLAG_RESENT;
	f->record.end_ns = f->stamps && code == CURLE_OK ? f->stamp[f->stamps - 1].at_ns : now_ns;
	set_connected(h, f);
}

void flight_list_add(struct flight_list *l, struct flight *f, uint64_t now_ns)
{
	f->begun_ns = now_ns;
	f->before = NULL;
	f->next = l->first;
	if (l->first)
		l->first->before = f;
	else
		l->last = f;
	l->first = f;
	if (!l->unsent)
		l->unsent = f;
	if (++l->count > l->most)
		l->most = l->count;
}

void flight_list_remove(struct flight_list *l, struct flight *f)
{
	if (l->unsent == f)
		l->unsent = f->before;
	if (f->before)
		f->before->next = f->next;
	else
		l->first = f->next;
	if (f->next)
		f->next->before = f->before;
	else
		l->last = f->before;
	l->count--;
}

static uint64_t limit_of(const struct flight *f, unsigned limit_ms)
{
	return f && limit_ms ? f->begun_ns + 1000000ull * limit_ms : UINT64_MAX;
}

struct flight *flight_list_limit(struct flight_list *l, const struct http_options *o, uint64_t *end_ns)
{
	uint64_t connect_ns, request_ns;

	while (l->unsent && l->unsent->record.sent_ns != LOAD_NEVER && !l->unsent->resending)
		l->unsent = l->unsent->before;
	connect_ns = limit_of(l->unsent, o->connect_ms);
	request_ns = limit_of(l->last, o->request_ms);
	*end_ns = connect_ns < request_ns ? connect_ns : request_ns;
	return connect_ns < request_ns ? l->unsent : l->last;
}

void flight_queue_add(struct flight_queue *q, struct flight *f)
{
	f->next = NULL;
	pthread_mutex_lock(&q->lock);
	if (q->last)
		q->last->next = f;
	else
		q->first = f;
	q->last = f;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

struct flight *flight_queue_take(struct flight_queue *q, bool wait)
{
	struct flight *all;

	pthread_mutex_lock(&q->lock);
	while (wait && !q->first && !q->closed)
		pthread_cond_wait(&q->filled, &q->lock);
	all = q->first;
	q->first = q->last = NULL;
	pthread_mutex_unlock(&q->lock);
	return all;
}

void flight_queue_close(struct flight_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}
