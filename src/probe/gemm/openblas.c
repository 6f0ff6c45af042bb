/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `openblas`: FP32 and FP64 by OpenBLAS, one call a batch. */
#include "probe/gemm/host.h"
#include "vendor/blas.h"

struct gemm_openblas {
	struct gemm_host host;
	struct blas blas;
};

static enum status supports(const struct machine *m, const struct target *t, const void *opts,
			    struct error *err)
{
	const struct gemm_opts *o = opts;
	enum status st;

	if (o->type != GEMM_FP32 && o->type != GEMM_FP64)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "gemm: OpenBLAS multiplies fp32 and fp64, not %s",
				       gemm_type_name(o->type));
	if (o->bias)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "gemm: OpenBLAS adds no bias");
	st = gemm_host_heeds(o, "OpenBLAS", err);
	if (!st)
		st = gemm_host_library(m, &openblas_lib, "OpenBLAS", err);
	return st ? st : gemm_host_fits(m, t, o, err);
}

static enum status multiply(struct gemm_host *h, unsigned set, struct error *err)
{
	const struct blas *blas = &((struct gemm_openblas *)h)->blas;
	const struct gemm_opts *o = &h->common.opts;
	CBLAS_TRANSPOSE ta = o->ta == GEMM_T ? CblasTrans : CblasNoTrans;
	CBLAS_TRANSPOSE tb = o->tb == GEMM_T ? CblasTrans : CblasNoTrans;
	int m = (int)o->m, n = (int)o->n, k = (int)o->k, lda = o->ta == GEMM_T ? m : k,
	    ldb = o->tb == GEMM_T ? k : n;

	(void)err;
	for (uint32_t b = 0; b < o->batch; b++) {
		uint64_t ia = (uint64_t)b * o->m * o->k, ib = (uint64_t)b * o->k * o->n,
			 ic = (uint64_t)b * o->m * o->n;

		if (o->type == GEMM_FP64)
			blas_dgemm(blas, ta, tb, m, n, k, 1, (double *)h->a[set] + ia, lda,
				   (double *)h->b[set] + ib, ldb, 0, (double *)h->c[set] + ic, n);
		else
			blas_sgemm(blas, ta, tb, m, n, k, 1, (float *)h->a[set] + ia, lda,
				   (float *)h->b[set] + ib, ldb, 0, (float *)h->c[set] + ic, n);
	}
	return STATUS_OK;
}

static void report(const struct gemm_openblas *s, const struct bench *b, const struct lib_fact *fact)
{
	const char *config = s->blas.get_config ? s->blas.get_config() : "";
	const char *core = s->blas.get_corename ? s->blas.get_corename() : "";
	char text[512];

	if (!b->out)
		return;
	snprintf(text, sizeof(text), "OpenBLAS %d.%d.%d, %s", fact->version / 10000,
		 fact->version / 100 % 100, fact->version % 100, fact->path ? fact->path : "path unknown");
	result_text(b->out, &gemm_fields[GEMM_FIELD_library], text);
	snprintf(text, sizeof(text), "%s; core %s", config, core);
	result_text(b->out, &gemm_fields[GEMM_FIELD_library_config], text);
	result_text(b->out, &gemm_fields[GEMM_FIELD_instruction_set], core);
}

static enum status prepare(void *state, const struct bench *b, const void *opts, struct error *err)
{
	struct gemm_openblas *s = state;
	struct lib_fact fact = {0};
	enum status st = gemm_host_begin(&s->host, b, opts, multiply, err);

	if (st)
		return st;
	st = lib_open(&s->blas, &openblas_lib, NULL, &fact, err);
	if (!st)
		st = blas_settle(&s->blas, &fact, err);
	if (!st) {
		s->blas.set_num_threads((int)s->host.threads);
		report(s, b, &fact);
	}
	lib_fact_release(&fact);
	return st;
}

static void release(void *state)
{
	struct gemm_openblas *s = state;

	gemm_host_end(&s->host);
	*s = (struct gemm_openblas){0};
}

const struct engine gemm_openblas_engine = {
	.name = "openblas",
	.libs = "openblas",
	.targets = TARGET_CPU,
	.state_size = sizeof(struct gemm_openblas),
	.supports = supports,
	.prepare = prepare,
	.enqueue = gemm_host_enqueue,
	.release = release,
};
