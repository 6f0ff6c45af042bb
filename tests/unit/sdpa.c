/* SPDX-License-Identifier: Apache-2.0 */
/* Attention plans over the fake driver and the fake cuDNN, which runs the graphs that it is given: every
 * mask, type, layout and direction, the search, and every way the library can refuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include "../gpu/ref_attention.h"
#include "../gpu/ref_number.h"
#include "core/random.h"
#include "gpu/sdpa.h"

struct fixture {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct sdpa *sdpa;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	setenv("ASSAY_LIB_CUDA", FAKE_DIR "/libcuda.so.1", 1);
	setenv("ASSAY_LIB_CUDNN", FAKE_DIR "/libcudnn.so.9", 1);
	unsetenv("FAKE_CUDA");
	unsetenv("FAKE_CUDNN");
	*state = f;
	return !f || gpu_open(&f->device, NULL, NULL) || gpu_stream_create(f->device, &f->stream, NULL) ||
	       sdpa_open(&f->sdpa, f->device, NULL, 0, NULL);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	unsetenv("FAKE_CUDNN");
	unsetenv("FAKE_CUDA");
	sdpa_close(&f->sdpa);
	gpu_stream_destroy(&f->stream);
	gpu_close(&f->device);
	free(f);
	return 0;
}

static struct attention_problem small(enum attention_type type, enum attention_mask mask)
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

static void begin(struct life *l, const struct fixture *f, const struct attention_problem *p)
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

static void end(struct life *l)
{
	sdpa_plan_destroy(&l->forward);
	sdpa_plan_destroy(&l->backward);
	gpu_free(l->f->device, &l->lse);
	for (unsigned t = 0; t < TENSORS; t++) {
		free(l->host[t]);
		gpu_free(l->f->device, &l->device[t]);
	}
}

static void run_forward(struct life *l)
{
	struct error err = {0};

	if (sdpa_plan_enqueue(l->forward, &l->operands, NULL, l->f->stream, &err))
		fail_msg("%s", err.text);
}

static void run_backward(struct life *l)
{
	const struct sdpa_gradients g = {l->device[D_O], l->device[D_Q], l->device[D_K], l->device[D_V]};
	struct error err = {0};

	if (sdpa_plan_enqueue(l->backward, &l->operands, &g, l->f->stream, &err))
		fail_msg("%s", err.text);
}

static void near(struct life *l, unsigned which, const double *want, double limit)
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

static double *unset(uint64_t count)
{
	double *x = malloc(count * sizeof(*x));

	assert_non_null(x);
	for (uint64_t i = 0; i < count; i++)
		x[i] = (double)NAN;
	return x;
}

static void near_lse(struct life *l, const double *want)
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
static void check_against_definition(struct life *l, bool backward)
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

static void plan(struct life *l, enum sdpa_direction direction, struct sdpa_plan **out)
{
	struct error err = {0};

	if (sdpa_plan_create(out, l->f->sdpa, l->p, direction, &err) || sdpa_plan_candidates(*out, 8, &err))
		fail_msg("%s", err.text);
}

/* All candidates, forward and (16 bits) backward. */
static void computes(const struct fixture *f, const struct attention_problem *p)
{
	bool backward = p->type != ATTENTION_E4M3;
	struct life l;

	begin(&l, f, p);
	plan(&l, SDPA_FORWARD, &l.forward);
	if (backward)
		plan(&l, SDPA_BACKWARD, &l.backward);
	for (unsigned i = 0; i < sdpa_plan_count(l.forward); i++) {
		assert_int_equal(sdpa_plan_select(l.forward, i, NULL), STATUS_OK);
		run_forward(&l);
		check_against_definition(&l, false);
	}
	for (unsigned i = 0; backward && i < sdpa_plan_count(l.backward); i++) {
		assert_int_equal(sdpa_plan_select(l.backward, i, NULL), STATUS_OK);
		run_backward(&l);
		check_against_definition(&l, true);
	}
	end(&l);
}

static void every_mask_and_type_is_computed(void **state)
{
	static const uint32_t sides[][2] = {
		{3, 1}, {0, 0}, {ATTENTION_UNBOUNDED, 2}, {2, ATTENTION_UNBOUNDED}, {5, 0}};

	for (unsigned type = 0; type < ATTENTION_TYPE_COUNT; type++) {
		struct attention_problem p = small((enum attention_type)type, ATTENTION_FULL);

		computes(*state, &p);
		p.mask = ATTENTION_CAUSAL;
		computes(*state, &p);
		p.q_len = p.kv_len;
		computes(*state, &p);
		p.mask = ATTENTION_WINDOW;
		for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
			p.window_left = sides[i][0];
			p.window_right = sides[i][1];
			p.q_len = i % 2 ? 9 : 12;
			computes(*state, &p);
		}
	}
}

static void layouts_and_lengths_are_obeyed(void **state)
{
	static const uint32_t q[] = {0, 7, 8, 17}, kv[] = {0, 12, 15, 25};
	struct attention_problem p = small(ATTENTION_BF16, ATTENTION_CAUSAL);

	/* Q, K and V of a token side by side, O by token. */
	p.q_len = p.kv_len;
	p.q = p.k = p.v = (struct attention_strides){12 * 64, 16, 64};
	p.o = (struct attention_strides){12 * 32, 16, 32};
	computes(*state, &p);
	p = small(ATTENTION_F16, ATTENTION_FULL);
	p.scale = 0.7;
	p.kv_heads = 2;
	computes(*state, &p);
	p.batch = 3;
	p.q_starts = q;
	p.kv_starts = kv;
	for (p.mask = ATTENTION_FULL; p.mask < ATTENTION_MASK_COUNT; p.mask++)
		computes(*state, &p);
}

/* Before 9.15.1 backward wants lengths where there are keys beside a multiple of 128. */
static void older_versions_get_what_they_need(void **state)
{
	const struct fixture *f = *state;
	struct fixture old = *f;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);

	setenv("FAKE_CUDNN", "version=90900", 1);
	assert_int_equal(sdpa_open(&old.sdpa, f->device, NULL, 0, NULL), STATUS_OK);
	computes(&old, &p);
	sdpa_close(&old.sdpa);
}

static void an_lse_is_optional(void **state)
{
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_FULL);
	struct life l;

	p.want_lse = false;
	begin(&l, *state, &p);
	plan(&l, SDPA_FORWARD, &l.forward);
	for (unsigned i = 0; i < sdpa_plan_count(l.forward); i++) {
		assert_int_equal(sdpa_plan_select(l.forward, i, NULL), STATUS_OK);
		run_forward(&l);
		check_against_definition(&l, false);
	}
	end(&l);
}

static void factors_of_fp8_are_applied(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_E4M3, ATTENTION_FULL);
	const float factors[] = {0.5F, 2.0F, 3.0F, 0.25F};
	gpu_ptr at;
	struct life l;

	begin(&l, f, &p);
	plan(&l, SDPA_FORWARD, &l.forward);
	assert_int_equal(gpu_alloc(f->device, &at, 64, NULL), STATUS_OK);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(gpu_copy_to(f->device, at + 16 * i, &factors[i], sizeof(float), NULL),
				 STATUS_OK);
	run_forward(&l);
	check_against_definition(&l, false);
	l.operands.descale_q = at;
	l.operands.descale_k = at + 16; /* 0.5 * 2: the same softmax */
	run_forward(&l);
	check_against_definition(&l, false);
	l.operands.descale_v = at + 32;
	l.operands.scale_o = at + 48;
	run_forward(&l);
	{
		double *o = unset(l.count[O]), *lse = unset(attention_lse_count(&p));

		ref_attention_run(
			&p, &(struct ref_attention){
				    .q = l.host[Q], .k = l.host[K], .v = l.host[V], .o = o, .lse = lse});
		for (uint64_t i = 0; i < l.count[O]; i++)
			o[i] *= 0.75;
		near(&l, O, o, 0x1p-3);
		free(o);
		free(lse);
	}
	gpu_free(f->device, &at);
	end(&l);
}

static enum status twice(void *arg, bool *enough, struct error *err)
{
	(void)err;
	*enough = ++*(unsigned *)arg > 2;
	return STATUS_OK;
}

static enum status broken(void *arg, bool *enough, struct error *err)
{
	(void)arg, (void)enough;
	return error_set(err, STATUS_CANCELLED, "stopped");
}

static void a_search_lists_engines_and_knobs(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	struct sdpa_description d;
	struct sdpa_plan *m;
	unsigned asked = 0;
	const struct sdpa_pace pace = {twice, &asked}, stop = {broken, NULL};

	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_first(m, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 1);
	sdpa_plan_describe(m, 0, &d);
	assert_string_equal(d.name, "composite engine1 knob24=3");
	assert_int_equal(d.workspace_bytes, 1024);
	assert_int_equal(sdpa_plan_candidates(m, 8, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 2);
	assert_int_equal(sdpa_plan_exhaust(m, 100, &stop, NULL), STATUS_CANCELLED);
	assert_int_equal(sdpa_plan_exhaust(m, 100, &pace, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 4); /* two engines with no knob turned */
	assert_int_equal(sdpa_plan_exhaust(m, 7, NULL, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 7);
	assert_int_equal(sdpa_plan_exhaust(m, 100, NULL, NULL), STATUS_OK);
	/* Of each engine: none, knob 24 at 1 or 3, knob 14 at 0 or 1, and both: 1 + 2 + 2 + 4. */
	assert_int_equal(sdpa_plan_count(m), 18);
	assert_int_equal(sdpa_plan_exhaust(m, 100, NULL, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 18);
	sdpa_plan_describe(m, 17, &d);
	assert_string_equal(d.name, "composite engine1 knob24=3 knob14=1");
	sdpa_plan_describe(m, 18, &d);
	assert_string_equal(d.name, "");
	assert_int_equal(sdpa_plan_select(m, 18, NULL), STATUS_BUG);
	sdpa_plan_destroy(&m);
}

/* The fused operation is asked first; where it is refused the composite is left. */
static void the_fused_operation_comes_first(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_FULL);
	struct sdpa_description d;
	struct sdpa_plan *m;

	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_candidates(m, 8, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_count(m), 4);
	sdpa_plan_describe(m, 0, &d);
	assert_string_equal(d.graph, "fused");
	sdpa_plan_describe(m, 2, &d);
	assert_string_equal(d.graph, "composite");
	sdpa_plan_destroy(&m);
	setenv("FAKE_CUDNN", "fused=3000", 1);
	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_first(m, NULL), STATUS_OK);
	sdpa_plan_describe(m, 0, &d);
	assert_string_equal(d.graph, "composite");
	sdpa_plan_destroy(&m);
	setenv("FAKE_CUDNN", "fused=4000", 1);
	assert_int_equal(sdpa_plan_create(&m, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_VENDOR);
	assert_null(m);
}

/* A plan up to its first run; where it stops, and with what. */
static enum status run_staged(const struct fixture *f, const char *staged, uint64_t workspace_max,
			      struct error *err)
{
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	struct fixture own = *f;
	enum status st;
	struct life l;

	*err = (struct error){0};
	begin(&l, f, &p);
	setenv("FAKE_CUDNN", staged, 1);
	st = sdpa_open(&own.sdpa, f->device, NULL, workspace_max, err);
	if (!st)
		st = sdpa_plan_create(&l.forward, own.sdpa, &p, SDPA_FORWARD, err);
	if (!st)
		st = sdpa_plan_first(l.forward, err);
	if (!st)
		st = sdpa_plan_enqueue(l.forward, &l.operands, NULL, f->stream, err);
	unsetenv("FAKE_CUDNN");
	end(&l);
	sdpa_close(&own.sdpa);
	return st;
}

static void refusals_keep_the_librarys_words(void **state)
{
	static const struct {
		const char *staged;
		enum status st;
		enum cause cause;
		const char *word;
	} refusals[] = {
		{"version=90501", STATUS_UNSUPPORTED, CAUSE_VERSION_MISMATCH, "9.5.1 is too old"},
		{"version=91001", STATUS_UNSUPPORTED, CAUSE_VERSION_MISMATCH, "9.10.1 is known for wrong"},
		{"cudnnCreate=1001", STATUS_VENDOR, CAUSE_VENDOR_CALL, "create answered"},
		{"cudnnCreate=1008", STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, "1008"},
		{"cudnnCreate=1002", STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH, "1002"},
		{"cudnnCreate=3005", STATUS_UNAVAILABLE, CAUSE_DRIVER_OLD, "3005"},
		{"cudnnBackendCreateDescriptor=4003", STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "desc_create"},
		{"set=2000", STATUS_VENDOR, CAUSE_VENDOR_CALL,
		 "desc_set answered CUDNN_STATUS_BAD_PARAM (2000): staged"},
		{"graph=3001", STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "desc_finalize"},
		{"nothing=1", STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "no engine"},
		{"plan=3000", STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "CUDNN_STATUS_NOT_SUPPORTED"},
		{"plan=3008", STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING, "3008"},
		{"plan=4004", STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "4004"},
		{"plan=4001", STATUS_VENDOR, CAUSE_VENDOR_CALL, "4001"},
		{"pack=2003", STATUS_VENDOR, CAUSE_VENDOR_CALL, "2003"},
		{"cudnnSetStream=5000", STATUS_VENDOR, CAUSE_VENDOR_CALL, "set_stream"},
		{"cudnnBackendExecute=5001", STATUS_VENDOR, CAUSE_VENDOR_CALL, "execute answered"},
		{"workspace=5000000", STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
		 "5000000 bytes of workspace, and 1048576"},
	};

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		struct error err;
		enum status st = run_staged(*state, refusals[i].staged, 1 << 20, &err);

		if (st != refusals[i].st || err.cause != refusals[i].cause ||
		    !strstr(err.text, refusals[i].word))
			fail_msg("%s: %s (%s), \"%s\"", refusals[i].staged, status_name(st),
				 cause_name(err.cause), err.text);
	}
}

static void memory_that_is_not_there_is_said(void **state)
{
	struct error err;

	setenv("FAKE_CUDA", "cuMemAlloc_v2=2@11",
	       1); /* after the operands and the plan's numbers: the workspace */
	assert_int_equal(run_staged(*state, "", 0, &err), STATUS_NO_RESOURCE);
	setenv("FAKE_CUDA", "cuMemAlloc_v2=2@10", 1);
	assert_int_equal(run_staged(*state, "", 0, &err), STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_NO_MEMORY);
}

static void no_library_is_said(void **state)
{
	const struct fixture *f = *state;
	struct error err = {0};
	struct sdpa *s;

	assert_int_equal(sdpa_open(&s, f->device, "/nowhere/libcudnn.so.9", 0, &err), STATUS_UNAVAILABLE);
	assert_null(s);
	assert_int_equal(err.cause, CAUSE_LIBRARY_MISSING);
	assert_non_null(strstr(err.text, "/nowhere/libcudnn.so.9"));
	/* Another library of that name: a symbol is missing. */
	err = (struct error){0};
	assert_int_equal(sdpa_open(&s, f->device, FAKE_DIR "/libcublasLt.so.13", 0, &err),
			 STATUS_UNAVAILABLE);
	if (!strstr(err.text, "no symbol cudnn"))
		fail_msg("%s", err.text);
	assert_int_equal(sdpa_version(f->sdpa), 91900);
	assert_non_null(strstr(sdpa_path(f->sdpa), "libcudnn.so.9"));
}

static void refused(const struct fixture *f, const char *version, const struct attention_problem *p,
		    enum sdpa_direction direction, const char *word)
{
	struct sdpa *s;
	struct sdpa_plan *m;
	struct error err = {0};

	setenv("FAKE_CUDNN", version, 1);
	assert_int_equal(sdpa_open(&s, f->device, NULL, 0, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_create(&m, s, p, direction, &err), STATUS_UNSUPPORTED);
	assert_null(m);
	if (!strstr(err.text, word))
		fail_msg("\"%s\" does not say \"%s\"", err.text, word);
	sdpa_close(&s);
	unsetenv("FAKE_CUDNN");
}

static void what_a_version_lacks_is_named(void **state)
{
	static const uint32_t empty[] = {0, 9, 9}, keys[] = {0, 12, 24}, many[] = {0, 1 << 27, 1 << 28};
	struct attention_problem p = small(ATTENTION_E4M3, ATTENTION_FULL);
	struct attention_problem bad = p;

	refused(*state, "version=91900", &p, SDPA_BACKWARD, "for 16 bits");
	p = small(ATTENTION_F16, ATTENTION_FULL);
	p.q_len = p.kv_len = 1;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "one query and one key");
	p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	p.q_len = 13;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "more queries than keys");
	p.mask = ATTENTION_WINDOW;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "more queries than keys");
	p.q_len = 12;
	refused(*state, "version=90900", &p, SDPA_FORWARD, "needs 9.10.2");
	p.kv_len = 1025;
	refused(*state, "version=91400", &p, SDPA_FORWARD, "wrong in this version");
	p = small(ATTENTION_F16, ATTENTION_FULL);
	p.q_starts = empty;
	p.kv_starts = keys;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "without a token");
	p.q_starts = p.kv_starts = many;
	p.q_len = p.kv_len = 1 << 27;
	refused(*state, "version=91900", &p, SDPA_FORWARD, "32 bits");
	bad.kv_heads = 0;
	assert_int_equal(sdpa_plan_create(&(struct sdpa_plan *){NULL}, ((struct fixture *)*state)->sdpa, &bad,
					  SDPA_FORWARD, NULL),
			 STATUS_BAD_INPUT);
}

static void a_plan_is_not_run_too_early(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	struct error err = {0};
	struct life l;

	begin(&l, f, &p);
	assert_int_equal(sdpa_plan_create(&l.forward, f->sdpa, &p, SDPA_FORWARD, NULL), STATUS_OK);
	assert_int_equal(sdpa_plan_enqueue(l.forward, &l.operands, NULL, f->stream, NULL), STATUS_BUG);
	assert_int_equal(sdpa_plan_first(l.forward, NULL), STATUS_OK);
	l.operands.lse = 0;
	assert_int_equal(sdpa_plan_enqueue(l.forward, &l.operands, NULL, f->stream, &err), STATUS_BUG);
	assert_non_null(strstr(err.text, "without one of its operands"));
	l.operands.lse = l.lse;
	run_forward(&l);
	check_against_definition(&l, false);
	end(&l);
}

/* More sets of operands in turn than are kept bound: each run writes its own O. */
static void operands_may_take_turns(void **state)
{
	const struct fixture *f = *state;
	struct attention_problem p = small(ATTENTION_F16, ATTENTION_CAUSAL);
	gpu_ptr o[40] = {0};
	struct life l;

	begin(&l, f, &p);
	plan(&l, SDPA_FORWARD, &l.forward);
	for (unsigned turn = 0; turn < 3; turn++)
		for (unsigned i = 0; i < 40; i++) {
			if (!o[i])
				assert_int_equal(gpu_alloc(f->device, &o[i], l.count[O] * 2, NULL),
						 STATUS_OK);
			assert_int_equal(gpu_stream_fill32(f->stream, o[i], UINT32_MAX, l.count[O] / 2, NULL),
					 STATUS_OK);
			l.operands.o = o[i];
			run_forward(&l);
			assert_int_equal(gpu_stream_copy(f->stream, l.device[O], o[i], l.count[O] * 2, NULL),
					 STATUS_OK);
			if (turn == 0 || i % 13 == turn)
				check_against_definition(&l, false);
		}
	for (unsigned i = 0; i < 40; i++)
		gpu_free(f->device, &o[i]);
	end(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_mask_and_type_is_computed),	 TEST(layouts_and_lengths_are_obeyed),
		TEST(older_versions_get_what_they_need), TEST(an_lse_is_optional),
		TEST(factors_of_fp8_are_applied),	 TEST(a_search_lists_engines_and_knobs),
		TEST(the_fused_operation_comes_first),	 TEST(refusals_keep_the_librarys_words),
		TEST(memory_that_is_not_there_is_said),	 TEST(no_library_is_said),
		TEST(what_a_version_lacks_is_named),	 TEST(a_plan_is_not_run_too_early),
		TEST(operands_may_take_turns),
	};

	return cmocka_run_group_tests_name("sdpa", tests, NULL, NULL);
}
