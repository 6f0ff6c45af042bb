/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the judge. The record's machine event becomes the machine on which its cases are judged. */
#include "judge/judge.h"
#include "judge/judge_run.h"

/* One machine per node; for a run of one process, the machine of the record. */
struct nodes {
	size_t count, gpu_count;
	struct record *slice;
	struct machine **machine;
	struct judge_context *ctx;
	const struct gpu **gpu; /* GPUs of all nodes, in node order */
};

static enum status no_memory(struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory to judge");
}

static enum status read_machine(struct nodes *n, unsigned node, struct error *err)
{
	const json_t *facts = context_facts(&n->slice[node]);
	struct judge_context *ctx = &n->ctx[node];
	enum status status = facts ? machine_from_json(&n->machine[node], facts, err) : STATUS_OK;
	struct machine *m = n->machine[node];
	const struct gpu **gpus;

	if (status || !m)
		return status;
	gpus = realloc(n->gpu, (n->gpu_count + machine_gpu_count(m) + 1) * sizeof(*gpus));
	if (!gpus)
		return no_memory(err);
	n->gpu = gpus;
	ctx->cpu = machine_cpu(m);
	ctx->gpu_count = machine_gpu_count(m);
	for (unsigned i = 0; i < ctx->gpu_count; i++)
		n->gpu[n->gpu_count++] = machine_gpu(m, i);
	return STATUS_OK;
}

static enum status read_nodes(struct nodes *n, const struct record *r, const struct expectations *e,
			      bool ahead, struct error *err)
{
	enum status status = STATUS_OK;
	size_t at = 0;

	*n = (struct nodes){.count = r->node_count ? r->node_count : 1};
	n->slice = calloc(n->count, sizeof(*n->slice));
	n->machine = calloc(n->count, sizeof(struct machine *));
	n->ctx = calloc(n->count, sizeof(*n->ctx));
	if (!n->slice || !n->machine || !n->ctx)
		return no_memory(err);
	for (unsigned i = 0; i < n->count && !status; i++) {
		record_slice(&n->slice[i], r, i);
		n->ctx[i] = (struct judge_context){.record = &n->slice[i], .e = e, .ahead = ahead};
		status = read_machine(n, i, err);
	}
	for (size_t i = 0; i < n->count;
	     i++) { /* pointers into the array are valid only now that it no longer grows */
		n->ctx[i].gpu = n->gpu ? n->gpu + at : NULL;
		at += n->ctx[i].gpu_count;
	}
	return status;
}

static void release_nodes(struct nodes *n)
{
	for (size_t i = 0; n->machine && i < n->count; i++)
		machine_free(n->machine[i]);
	free(n->slice);
	free(n->machine);
	free(n->ctx);
	free(n->gpu);
}

static enum status with_machine(struct judgements *out, const struct record *r, const struct expectations *e,
				const struct judge_site *site, bool ahead, struct error *err)
{
	struct judge_context whole;
	struct nodes nodes;
	enum status status = read_nodes(&nodes, r, e, ahead, err);

	*out = (struct judgements){0};
	if (!status) {
		whole = nodes.ctx[0];
		whole.record = r;
		whole.gpu = nodes.gpu;
		whole.gpu_count = nodes.gpu_count;
		whole.of_node = r->node_count ? nodes.ctx : NULL;
		status = judge_run(out, &whole, site, err);
	}
	release_nodes(&nodes);
	return status;
}

enum status judge_record(struct judgements *out, const struct record *r, const struct expectations *e,
			 const struct judge_site *site, struct error *err)
{
	return with_machine(out, r, e, site, false, err);
}

enum status judge_plan(struct judgements *out, const struct record *r, const struct expectations *e,
		       struct error *err)
{
	return with_machine(out, r, e, NULL, true, err);
}
