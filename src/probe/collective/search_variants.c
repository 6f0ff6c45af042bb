/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variants of a search: NCCL's own choice, its algorithms with the protocols that can be useful at this size,
 * numbers of CTAs, and buffers known to NCCL. Options that the user set are not varied.
 */
#include <stdio.h>
#include "core/text/text.h"
#include "probe/collective/collective.h"

static struct collective_way *add(struct collective_state *s, const char *name)
{
	struct collective_way *w = &s->way[s->ways];

	if (s->ways == COLLECTIVE_WAYS)
		return NULL;
	*w = s->way[0];
	s->ways++;
	text_copy(w->name, sizeof(w->name), name);
	return w;
}

static void add_algorithms(struct collective_state *s)
{
	/* far above the sizes at which NCCL itself stops using them */
	enum { LL_TO = 1 << 20, LL128_TO = 256 << 20 };
	static const char *const algorithms[] = {"ring", "tree"}, *const protocols[] = {"simple", "ll128",
											"ll"};
	static const uint64_t up_to[] = {UINT64_MAX, LL128_TO, LL_TO};

	for (unsigned a = 0; a < 2; a++) {
		if (a && s->opts.op != COLLECTIVE_ALL_REDUCE) /* only allreduce has tree algorithms */
			continue;
		for (unsigned p = 0; p < 3; p++) {
			struct collective_way *w;
			char name[64];

			if (s->shape.bytes > up_to[p])
				continue;
			snprintf(name, sizeof(name), "%s %s", algorithms[a], protocols[p]);
			w = add(s, name);
			if (!w)
				return;
			text_copy(w->spec.algorithm, sizeof(w->spec.algorithm), algorithms[a]);
			text_copy(w->spec.protocol, sizeof(w->spec.protocol), protocols[p]);
		}
	}
}

static void add_ctas(struct collective_state *s)
{
	static const unsigned ctas[] = {16, 24, 32};

	for (unsigned i = 0; i < 3; i++) {
		struct collective_way *w;
		char name[64];

		snprintf(name, sizeof(name), "%u CTAs", ctas[i]);
		w = add(s, name);
		if (w)
			w->spec.ctas = ctas[i];
	}
}

static void add_buffers(struct collective_state *s)
{
	struct collective_way *w = s->nccl->alloc && s->nccl->reg ? add(s, "registered buffers") : NULL;

	if (w)
		w->buffers = COLLECTIVE_REGISTERED;
	w = s->nccl->alloc && s->nccl->window ? add(s, "windows") : NULL;
	if (w)
		w->buffers = COLLECTIVE_WINDOW;
}

void collective_ways(struct collective_state *s)
{
	const struct collective_opts *o = &s->opts;
	struct collective_way *w = &s->way[0];
	bool free_way = !o->algorithm && !o->protocol,
	     moves = o->op == COLLECTIVE_ALL_TO_ALL || o->op == COLLECTIVE_SEND_RECV;

	*w = (struct collective_way){.buffers = o->buffers};
	w->spec.ctas = o->ctas;
	text_copy(w->spec.algorithm, sizeof(w->spec.algorithm), collective_algorithm(o->algorithm));
	text_copy(w->spec.protocol, sizeof(w->spec.protocol), collective_protocol(o->protocol));
	text_copy(w->name, sizeof(w->name), free_way && !o->ctas ? "NCCL's choice" : "as asked");
	s->ways = 1;
	if (o->search != COLLECTIVE_TOP)
		return;
	if (o->buffers == COLLECTIVE_PLAIN)
		add_buffers(s);
	if (!o->ctas)
		add_ctas(s);
	if (free_way && !moves)
		add_algorithms(s);
}
