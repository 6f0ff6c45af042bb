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

enum status serve_check_model(const struct serve_opts *o, const struct log *log, struct error *err)
{
	struct weights w;
	enum status st = weights_open(&w, o->model, err);

	if (!st)
		warn_of_context(o, &w.shape, log);
	weights_release(&w);
	return st;
}
