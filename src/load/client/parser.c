/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/parser.h"
#include <sys/resource.h>
#include <unistd.h>
#include "core/clock.h"

enum { NICE = 10 };

static void look_behind(struct parser *p, const struct flight *f)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic()) - p->epoch_ns;
	const double behind_s = 1e-9 * ((double)now_ns - (double)f->record.end_ns);

	if (behind_s > p->behind_s)
		p->behind_s = behind_s;
}

static enum status read_answer(const struct parser *p, struct flight *f, struct load_answer_text *text,
			       struct error *err)
{
	const struct load_answer answer = {
		.bytes = f->bytes,
		.size = f->size,
		.stamp = f->stamp,
		.stamps = f->stamps,
		.stream = p->spec->stream,
		.usage = p->spec->usage,
		.completion = p->spec->completion,
	};

	/* of a refused request the body is no answer; of a lost one, the part that came is read */
	return f->record.status == 200 ? load_answer_read(&answer, &f->record, text, err) : STATUS_OK;
}

static void parse(struct parser *p, struct flight *f)
{
	struct load_answer_text text = {0};
	struct load_record record;

	look_behind(p, f);
	p->status = read_answer(p, f, &text, &p->error);
	record = f->record;
	f->record.gap_us = NULL; /* the record's now */
	f->record.gap_count = 0;
	if (!p->status)
		p->status = p->spec->answered(p->spec->arg, f->request, &record, &text, &p->error);
	else
		load_record_release(&record);
	load_answer_text_release(&text);
	if (p->status)
		atomic_store(p->failed, true);
}

void *parser_main(void *arg)
{
	struct parser *p = arg;
	struct flight *list;

	setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* sending comes first */
	while ((list = flight_queue_take(&p->finished, true)) != NULL)
		while (list) {
			struct flight *f = list;

			list = f->next;
			if (!p->status)
				parse(p, f);
			sender_give_back(&p->senders[f->request->session % p->spec->threads], f);
		}
	return NULL;
}
