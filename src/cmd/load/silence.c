/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/load/silence.h"

static const char silent[] = "silent", ended[] = "ended", never[] = "no answer";

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) * 1e-9;
}

static void add(struct load_silence *s, uint64_t from_ns, uint64_t to_ns, const char *cause)
{
	if (!s->list)
		s->list = json_array();
	json_array_append_new(s->list, json_pack("{s:f, s:f, s:s}", "from_s", seconds(s->begun_ns, from_ns),
						 "seconds", seconds(from_ns, to_ns), "cause", cause));
}

void load_silence_begin(struct load_silence *s, uint64_t now_ns)
{
	*s = (struct load_silence){.begun_ns = now_ns};
}

bool load_silence_heard(struct load_silence *s, uint64_t now_ns)
{
	const bool was = s->open;

	if (was)
		add(s, s->heard_ns, now_ns, s->open);
	s->open = NULL;
	s->heard_ns = now_ns;
	return was;
}

bool load_silence_noticed(struct load_silence *s, uint64_t now_ns)
{
	if (!s->heard_ns || s->open || seconds(s->heard_ns, now_ns) < LOAD_SILENCE_S)
		return false;
	s->open = silent;
	return true;
}

void load_silence_ended(struct load_silence *s)
{
	if (s->heard_ns && !s->open)
		s->open = ended;
}

void load_silence_close(struct load_silence *s, uint64_t now_ns)
{
	if (!s->heard_ns)
		add(s, s->begun_ns, now_ns, never);
	else if (s->open)
		add(s, s->heard_ns, now_ns, s->open);
	s->open = NULL;
}

void load_silence_release(struct load_silence *s)
{
	json_decref(s->list);
	s->list = NULL;
}
