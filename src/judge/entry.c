/* SPDX-License-Identifier: Apache-2.0 */
/* The judge's doors: a record's own machine event becomes the machine that its cases are judged on. */
#include "judge/judge.h"
#include "judge/run.h"

static enum status with_machine(struct judgements *out, const struct record *r, const struct expectations *e,
				const struct judge_site *site, bool ahead, struct error *err)
{
	struct judge_context ctx = {.record = r, .e = e, .ahead = ahead};
	const json_t *facts = context_facts(r);
	const struct gpu **gpus = NULL;
	struct machine *m = NULL;
	enum status status = STATUS_OK;
	unsigned i, n = 0;

	*out = (struct judgements){0};
	if (facts)
		status = machine_from_json(&m, facts, err);
	if (!status && m) {
		n = machine_gpu_count(m);
		ctx.cpu = machine_cpu(m);
		gpus = calloc(n + 1, sizeof(*gpus));
		if (!gpus)
			status = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						 "no memory to judge");
		for (i = 0; !status && i < n; i++)
			gpus[i] = machine_gpu(m, i);
	}
	ctx.gpu = gpus;
	ctx.gpu_count = n;
	if (!status)
		status = judge_run(out, &ctx, site, err);
	free(gpus);
	machine_free(m);
	return status;
}

enum status judge_record(struct judgements *out, const struct record *r, const struct expectations *e,
			 const struct judge_site *site, struct error *err)
{
	return with_machine(out, r, e, site, false, err);
}

enum status judge_ahead(struct judgements *out, const struct record *r, const struct expectations *e,
			struct error *err)
{
	return with_machine(out, r, e, NULL, true, err);
}
