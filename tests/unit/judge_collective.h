/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of H200s as a run would have left them, for tests of the judge. */
#ifndef TESTS_JUDGE_COLLECTIVE_H
#define TESTS_JUDGE_COLLECTIVE_H
#include "judge_bed.h"

static inline int begin_h200(void **state)
{
	(void)state;
	world_begin(&w, 8, true);
	for (unsigned i = 0; i < 8; i++) {
		world_fact(&w.gpu[i], GPU_FACT_nvlink_active, 18);
		world_fact(&w.gpu[i], GPU_FACT_nvlink_count, 18);
		world_fact(&w.gpu[i], GPU_FACT_nvlink_rate_gbps, 26.5625);
	}
	return 0;
}

/* An all-reduce of bf16 by `ranks` ranks, of which the first `gpus` GPUs are this node's; nvls below 0: not
 * told. */
static inline struct record_case *all_reduce_of(const char *kind, unsigned gpus, unsigned ranks,
						const char *size, double gbs, int nvls)
{
	char target[64], options[192];
	struct record_case *c;

	snprintf(target, sizeof(target), "%s", kind);
	for (unsigned r = 0; r < gpus; r++)
		snprintf(target + strlen(target), sizeof(target) - strlen(target), " gpu%u", r);
	snprintf(options, sizeof(options),
		 "op=allreduce reduce=sum type=bf16 size=%s place=out buffers=plain launch=stream "
		 "algorithm=auto "
		 "protocol=auto ctas=0 root=0 search=first",
		 size);
	c = world_case(&w, "collective", target, "collective.allreduce", options);
	c->engine = "nccl";
	c->work_link = 1e9;
	world_set(c, "sustained", "link_rate", gbs * 1e9);
	world_set(c, "sustained", "half_width_share", 0.001);
	world_set(c, "sustained", "settled", 1);
	world_set(c, "sustained", "ranks", ranks);
	if (nvls >= 0) {
		world_text(c, "once", "algorithm", nvls ? "nvls" : "ring");
		world_text(c, "once", "protocol", "simple");
		world_set(c, "once", "nvls", nvls);
	}
	world_verified(c);
	return c;
}

/* Of one node. */
static inline struct record_case *all_reduce(unsigned ranks, const char *size, double gbs, int nvls)
{
	return all_reduce_of("node", ranks, ranks, size, gbs, nvls);
}

static inline const struct judgement *judged(struct record_case *c)
{
	world_judge(&w);
	return world_of(&w, c);
}

/* Another operation by as many GPUs; NCCL tells its choice of what reduces or gathers. */
static inline struct record_case *other_op(const char *op, unsigned ranks, const char *size, double gbs,
					   int nvls)
{
	struct record_case *c = all_reduce(ranks, size, gbs, nvls);
	char limit[32], key[400];

	snprintf(limit, sizeof(limit), "collective.%s", op);
	snprintf(key, sizeof(key), "%s of %u %s", c->key, ranks, op);
	json_object_set_new((json_t *)c->plan, "key", json_string(key));
	c->key = json_string_value(json_object_get(c->plan, "key"));
	json_object_set_new((json_t *)c->plan, "limit", json_string(limit));
	c->limit = json_string_value(json_object_get(c->plan, "limit"));
	json_object_set_new(json_object_get(c->plan, "options"), "op", json_string(op));
	return c;
}
#endif
