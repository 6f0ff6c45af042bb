/* SPDX-License-Identifier: Apache-2.0 */
/* Engine `openblas`: FP32 and FP64 GEMMs by OpenBLAS, one call per batch entry. */
#include "machine/machine.h"
#include "probe/gemm/host.h"
#include "vendor/cpu/openblas.h"
#include "vendor/cpu/openblas_kernels.h"

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
				       "gemm: OpenBLAS supports fp32 and fp64, not %s",
				       gemm_type_name(o->type));
	if (o->bias)
		return error_set_cause(err, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				       "gemm: OpenBLAS does not support a bias");
	st = gemm_host_check_options(o, "OpenBLAS", err);
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
	if (fact->version)
		snprintf(text, sizeof(text), "OpenBLAS %d.%d.%d, %s", fact->version / 10000,
			 fact->version / 100 % 100, fact->version % 100,
			 fact->path ? fact->path : "path unknown");
	else
		snprintf(text, sizeof(text), "BLAS, %s", fact->path ? fact->path : "path unknown");
	result_text(b->out, &gemm_fields[GEMM_FIELD_library], text);
	snprintf(text, sizeof(text), "%s; core %s", config, core);
	result_text(b->out, &gemm_fields[GEMM_FIELD_library_config], text);
	result_text(b->out, &gemm_fields[GEMM_FIELD_instruction_set], core);
	if (*core)
		result_text(b->out, &gemm_fields[GEMM_FIELD_kernels], core);
}

/* The CPU features that blas_kernels.h needs, from the machine's facts. */
static unsigned has_of(const struct machine *m)
{
	static const struct {
		enum cpu_isa isa;
		unsigned need;
	} rows[] = {{CPU_ISA_avx2, BLAS_NEED_AVX2},
		    {CPU_ISA_fma, BLAS_NEED_FMA},
		    {CPU_ISA_avx512f, BLAS_NEED_AVX512},
		    {CPU_ISA_avx512_bf16, BLAS_NEED_AVX512_BF16},
		    {CPU_ISA_amx_bf16, BLAS_NEED_AMX_BF16}};
	unsigned has = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (machine_cpu(m)->isa & 1u << rows[i].isa)
			has |= rows[i].need;
	return has;
}

/* Lists the settings that a search tries: the library's other kernel sets, then other libraries with the same
 * functions. */
static unsigned settings(const struct machine *m, const char *chosen, struct engine_setting *out,
			 unsigned max)
{
	static const char *const libs[] = {"openblas_wheel", "mkl", "aocl"};
	const char *named = getenv("ASSAY_LIB_OPENBLAS");
	const unsigned has = has_of(m);
	unsigned count = 0;

	for (const struct blas_kernels *k = blas_kernels; k->name && count < max; k++)
		if (blas_kernels_fit(k, has) && strcasecmp(k->name, chosen))
			snprintf(out[count++].text, ENGINE_SETTING, BLAS_KERNELS_VARIABLE "=%s", k->name);
	for (size_t i = 0; i < sizeof(libs) / sizeof(libs[0]) && count < max; i++) {
		const struct lib_found *lib = machine_lib(m, libs[i]);

		if (lib && !lib->status && *lib->path && (!named || strcmp(named, lib->path)))
			snprintf(out[count++].text, ENGINE_SETTING, "ASSAY_LIB_OPENBLAS=%s", lib->path);
	}
	return count;
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
	.others = "openblas_wheel mkl aocl",
	.targets = TARGET_CPU,
	.state_size = sizeof(struct gemm_openblas),
	.supports = supports,
	.settings = settings,
	.prepare = prepare,
	.enqueue = gemm_host_enqueue,
	.release = release,
};
