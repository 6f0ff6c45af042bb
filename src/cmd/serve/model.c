/* SPDX-License-Identifier: Apache-2.0 */
/* What assay serve checks of the model before it starts anything. */
#include "cmd/serve/serve.h"
#include "model/files/weights.h"

/* YaRN stretches the positions of the first training by its factor, whatever config.json states. */
static int64_t positions_of(const struct shape *s)
{
	const int64_t stretched = s->rope.yarn ? (int64_t)(s->rope.factor * (double)s->rope.context) : 0;

	return stretched > s->context ? stretched : s->context;
}

static void warn_of_context(const struct serve_opts *o, const struct shape *s, const struct log *log)
{
	const int64_t positions = positions_of(s);

	if ((int64_t)o->context > positions)
		log_warn(log, LOG_TOPIC_RUN,
			 "--context is %llu, but the model supports %lld positions "
			 "(max_position_embeddings): do not rely on tokens after them",
			 (unsigned long long)o->context, (long long)positions);
}

/* A GPU computes with BF16 weights unless told otherwise, also if the file has 8 bits. */
static void tell_of_e4m3(const struct serve_opts *o, const struct weights *w, const struct log *log)
{
	if (o->device != LOAD_CPU && !o->weights && weights_are_e4m3_of_rows(w))
		log_info(
			log, LOG_TOPIC_RUN,
			"%s has weights of 8 bits (E4M3). A GPU converts them to BF16; with --weights fp8 it "
			"keeps them, in half of the memory",
			o->model);
}

enum status serve_check_model(const struct serve_opts *o, const struct log *log, struct error *err)
{
	struct weights w;
	enum status st = weights_open(&w, o->model, err);

	if (!st) {
		warn_of_context(o, &w.shape, log);
		tell_of_e4m3(o, &w, log);
	}
	weights_release(&w);
	return st;
}
