/* SPDX-License-Identifier: Apache-2.0 */
/* Attention plans over the fake driver and the fake cuDNN, which runs the graphs that it is given, held
 * against the definition. */
#ifndef TESTS_SDPA_BED_H
#define TESTS_SDPA_BED_H
#include "test.h"
#include <math.h>
#include "../gpu/ref_attention.h"
#include "../gpu/ref_number.h"
#include "core/math/random.h"
#include "fake_gpu.h"
#include "gpu/sdpa/sdpa.h"

struct fixture {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct sdpa *sdpa;
};

static inline int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	*state = f;
	return !f || !fake_gpu_open(&f->device, &f->stream) || sdpa_open(&f->sdpa, f->device, NULL, 0, NULL);
}

static inline int tear_down(void **state)
{
	struct fixture *f = *state;

	unsetenv("FAKE_CUDNN");
	unsetenv("FAKE_CUDA");
	sdpa_close(&f->sdpa);
	fake_gpu_close(&f->device, &f->stream);
	free(f);
	return 0;
}

static inline struct attention_problem small(enum attention_type type, enum attention_mask mask)
{
	return (struct attention_problem){
		.type = type,
		.out_type = type,
		.batch = 2,
		.heads = 2,
		.kv_heads = 1,
		.q_len = 9,
		.kv_len = 12,
		.head_dim = 16,
		.mask = mask,
		.window_left = 3,
		.window_right = 1,
		.want_lse = true,
	};
}

enum { Q, K, V, O, D_O, D_Q, D_K, D_V, TENSORS };

struct life {
	const struct fixture *f;
	const struct attention_problem *p;
	void *host[TENSORS];
	gpu_ptr device[TENSORS], lse;
	uint64_t count[TENSORS];
	struct sdpa_plan *forward, *backward;
	struct attention_operands operands;
};

static inline void begin(struct life *l, const struct fixture *f, const struct attention_problem *p)
{
	const uint64_t counts[TENSORS] = {attention_q_count(p), attention_k_count(p), attention_v_count(p),
					  attention_o_count(p), attention_o_count(p), attention_q_count(p),
					  attention_k_count(p), attention_v_count(p)};

	*l = (struct life){.f = f, .p = p};
	for (unsigned t = 0; t < TENSORS; t++) {
		uint64_t bytes = counts[t] * attention_type_bytes(p->type);

		l->count[t] = counts[t];
		l->host[t] = malloc(bytes);
		assert_non_null(l->host[t]);
		memset(l->host[t], 0xff, bytes);
		for (uint64_t i = 0; (t <= V || t == D_O) && i < counts[t]; i++)
			ref_number_store(p->type, l->host[t], i, (double)random_f32(3, t, i));
		assert_int_equal(gpu_alloc(f->device, &l->device[t], bytes, NULL), STATUS_OK);
		assert_int_equal(gpu_copy_to(f->device, l->device[t], l->host[t], bytes, NULL), STATUS_OK);
	}
	assert_int_equal(gpu_alloc(f->device, &l->lse, attention_lse_count(p) * sizeof(float), NULL),
			 STATUS_OK);
	l->operands = (struct attention_operands){.q = l->device[Q],
						  .k = l->device[K],
						  .v = l->device[V],
						  .o = l->device[O],
						  .lse = p->want_lse ? l->lse : 0};
}

static inline void end(struct life *l)
{
	sdpa_plan_destroy(&l->forward);
	sdpa_plan_destroy(&l->backward);
	gpu_free(l->f->device, &l->lse);
	for (unsigned t = 0; t < TENSORS; t++) {
		free(l->host[t]);
		gpu_free(l->f->device, &l->device[t]);
	}
}

static inline void run_forward(struct life *l)
{
	struct error err = {0};

	if (sdpa_plan_enqueue(l->forward, &l->operands, NULL, l->f->stream, &err))
		fail_msg("%s", err.text);
}

static inline void run_backward(struct life *l)
{
	const struct sdpa_gradients g = {l->device[D_O], l->device[D_Q], l->device[D_K], l->device[D_V]};
	struct error err = {0};

	if (sdpa_plan_enqueue(l->backward, &l->operands, &g, l->f->stream, &err))
		fail_msg("%s", err.text);
}

static inline void near(struct life *l, unsigned which, const double *want, double limit)
{
	uint64_t count = l->count[which];

	assert_int_equal(gpu_copy_from(l->f->device, l->host[which], l->device[which],
				       count * attention_type_bytes(l->p->type), NULL),
			 STATUS_OK);
	for (uint64_t i = 0; i < count; i++) {
		double got = ref_number_load(l->p->type, l->host[which], i);

		if (!isnan(want[i]) && !(fabs(got - want[i]) <= limit))
			fail_msg("tensor %u [%llu] is %g, not %g", which, (unsigned long long)i, got,
				 want[i]);
	}
}

static inline double *unset(uint64_t count)
{
	double *x = malloc(count * sizeof(*x));

	assert_non_null(x);
	for (uint64_t i = 0; i < count; i++)
		x[i] = (double)NAN;
	return x;
}

static inline void near_lse(struct life *l, const double *want)
{
	uint64_t count = attention_lse_count(l->p);
	float *got = malloc(count * sizeof(*got));

	assert_non_null(got);
	assert_int_equal(gpu_copy_from(l->f->device, got, l->lse, count * sizeof(*got), NULL), STATUS_OK);
	for (uint64_t i = 0; i < count; i++)
		if (!isnan(want[i]) && !(fabs((double)got[i] - want[i]) <= 1e-4))
			fail_msg("lse[%llu] is %g, not %g", (unsigned long long)i, (double)got[i], want[i]);
	free(got);
}

/* Everything that a plan computes against the definition. */
static inline void check_against_definition(struct life *l, bool backward)
{
	double *o = unset(l->count[O]), *lse = unset(attention_lse_count(l->p)), *d_q = unset(l->count[Q]);
	double *d_k = unset(l->count[K]), *d_v = unset(l->count[V]);
	double unit = l->p->type == ATTENTION_F16 ? 0x1p-11 : l->p->type == ATTENTION_BF16 ? 0x1p-8 : 0x1p-4;

	ref_attention_run(l->p, &(struct ref_attention){.q = l->host[Q],
							.k = l->host[K],
							.v = l->host[V],
							.d_o = backward ? l->host[D_O] : NULL,
							.o = o,
							.lse = lse,
							.d_q = d_q,
							.d_k = d_k,
							.d_v = d_v});
	near(l, O, o, 2.0 * unit);
	if (l->p->want_lse)
		near_lse(l, lse);
	if (backward) {
		near(l, D_Q, d_q, 8.0 * unit);
		near(l, D_K, d_k, 8.0 * unit);
		near(l, D_V, d_v, 8.0 * unit);
	}
	free(o);
	free(lse);
	free(d_q);
	free(d_k);
	free(d_v);
}

static inline void plan(struct life *l, enum sdpa_direction direction, struct sdpa_plan **out)
{
	struct error err = {0};

	if (sdpa_plan_create(out, l->f->sdpa, l->p, direction, &err) || sdpa_plan_candidates(*out, 8, &err))
		fail_msg("%s", err.text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#endif
