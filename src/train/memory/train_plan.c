/* SPDX-License-Identifier: Apache-2.0 */
#include "train/memory/train_plan.h"
#include <stdlib.h>
#include "core/text/units.h"
#include "train/memory/memory_fit.h"
#include "train/mesh/comm_hybrid.h"
#include "train/mesh/mesh.h"

static json_t *memory_json(const struct memory_plan *m)
{
	json_t *parts = json_object();

	for (int i = 0; i < MEM_KINDS; i++)
		if (m->arena[i])
			json_object_set_new(parts, memory_kind_name((enum memory_kind)i),
					    json_integer((json_int_t)m->arena[i]));
	for (int i = 0; i < MEMORY_OUTSIDE_ARENA_COUNT; i++)
		if (i < MEMORY_OFFLOADED || m->outside[i])
			json_object_set_new(parts, memory_outside_name((enum memory_outside)i),
					    json_integer((json_int_t)m->outside[i]));
	return parts;
}

/* A configuration, its plan, and the available memory. */
struct planning {
	struct config c; /* shallow copy with the micro-batch found */
	struct weights w;
	struct stepper s;
	struct memory_fit fit;
	struct memory_plan memory;
	struct memory_fit_knob
		/* Settings that save memory on the device, or on the host if only the host is too small. */
		knobs[MEMORY_FIT_KNOBS];
	size_t knob_count;
	struct mesh mesh;
	const struct comm_links *links; /* NULL: one rank */
	struct comm_count comm;		/* of one step, of ranks that divide the rows */
	struct comm_count tensor;	/* the same, of ranks that share a copy of the model */
};

static bool too_large(const struct planning *p)
{
	return p->memory.bytes > memory_fit_most(&p->fit);
}

static bool host_too_large(const struct planning *p)
{
	const struct memory_fit host = memory_fit_of_host(&p->fit);

	return p->memory.gpu && p->memory.host_bytes > memory_fit_most(&host);
}

static size_t host_knobs(struct planning *p)
{
	const struct memory_fit host = memory_fit_of_host(&p->fit);

	return memory_fit_knobs(p->knobs, &p->c, &host, &p->memory);
}

static json_t *knobs_json(const struct planning *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->knob_count; i++)
		json_array_append_new(list, json_pack("{s:s, s:I, s:b}", "setting", p->knobs[i].setting,
						      "memory_bytes", (json_int_t)p->knobs[i].bytes, "fits",
						      p->knobs[i].fits));
	return list;
}

/* The time is left out if the links are unknown. */
static void add_comm_json(json_t *out, const struct planning *p)
{
	json_object_set_new(out, "ranks", json_integer(p->mesh.ranks));
	json_object_set_new(out, "nodes", json_integer(p->links->nodes));
	if (p->mesh.shard > 1)
		json_object_set_new(out, "dp_shard_size", json_integer(p->mesh.shard));
	json_object_set_new(out, "step_packs", json_integer((json_int_t)p->mesh.packs));
	json_object_set_new(out, "communication_calls", json_real(p->comm.calls));
	json_object_set_new(out, "communication_bytes", json_real(p->comm.bytes));
	if (p->mesh.tensor > 1) {
		json_object_set_new(out, "tensor_parallel_size", json_integer(p->mesh.tensor));
		json_object_set_new(out, "tensor_calls", json_real(p->tensor.calls));
		json_object_set_new(out, "tensor_bytes", json_real(p->tensor.bytes));
	}
	if (p->mesh.tensor > 1 && p->tensor.planned_s > 0)
		json_object_set_new(out, "tensor_s", json_real(p->tensor.planned_s));
	if (p->comm.planned_s > 0)
		json_object_set_new(out, "communication_s", json_real(p->comm.planned_s));
}

static json_t *as_json(const struct planning *p)
{
	const struct stepper *s = &p->s;
	struct step_size size = stepper_size(&p->c);
	double tokens = (double)size.tokens;
	json_t *out = json_pack("{s:I, s:I, s:I, s:I, s:s, s:i, s:f, s:f, s:f, s:I, s:I, s:o, s:b, s:o}",
				"parameters", (json_int_t)shape_parameters(&p->w.shape), "trained",
				(json_int_t)model_whole(s->model)->params.length, "micro_batch_tokens",
				(json_int_t)size.tokens, "step_tokens",
				(json_int_t)(size.tokens * p->c.training.gradient_accumulation_steps),
				"recompute", config_recompute_name(p->c.training.recompute), "threads",
				s->back.threads, "forward_flop_per_token", s->forward.flop / tokens,
				"backward_flop_per_token", s->backward.flop / tokens, "flop_per_token",
				(s->forward.flop + s->backward.flop) / tokens, "memory_bytes",
				(json_int_t)p->memory.bytes, "arena_bytes", (json_int_t)p->memory.arena_bytes,
				"memory", memory_json(&p->memory), "fits",
				!too_large(p) && !host_too_large(p), "knobs", knobs_json(p));

	if (p->memory.shared)
		json_object_set_new(out, "shared_bytes", json_integer((json_int_t)p->memory.shared));
	if (p->links)
		add_comm_json(out, p);
	if (p->fit.available)
		json_object_set_new(out, "available_bytes",
				    json_integer((json_int_t)memory_fit_most(&p->fit)));
	if (p->memory.gpu)
		json_object_set_new(out, "host_bytes", json_integer((json_int_t)p->memory.host_bytes));
	if (p->memory.gpu && p->fit.host)
		json_object_set_new(out, "host_available_bytes", json_integer((json_int_t)p->fit.host));
	return out;
}

static void add_line(struct text *out, const char *what, double value, const char *unit, const char *note)
{
	char number[32];

	units_format(number, sizeof(number), value, unit);
	text_addf(out, "  %-12s %12s  %s\n", what, number, note);
}

static void add_outside(struct text *out, const struct memory_plan *m, int from, int to)
{
	for (int i = from; i < to; i++)
		if ((i != MEMORY_OFFLOADED && i != MEMORY_NCCL) || m->outside[i])
			add_line(out, memory_outside_name((enum memory_outside)i), (double)m->outside[i], "B",
				 memory_outside_text((enum memory_outside)i));
}

static void add_knobs(struct text *out, const struct planning *p)
{
	for (size_t i = 0; i < p->knob_count; i++) {
		char note[sizeof(p->knobs[i].setting) + 16];

		snprintf(note, sizeof(note), "%s%s", p->knobs[i].setting,
			 p->knobs[i].fits ? "" : " (not enough)");
		add_line(out, "", (double)p->knobs[i].bytes, "B", note);
	}
}

static void add_memory(struct text *out, const struct planning *p)
{
	const struct memory_plan *m = &p->memory;

	text_add(out, "memory\n");
	for (int i = 0; i < MEM_KINDS; i++)
		if (m->arena[i])
			add_line(out, memory_kind_name((enum memory_kind)i), (double)m->arena[i], "B",
				 memory_kind_text((enum memory_kind)i));
	add_line(out, "arena", (double)m->arena_bytes, "B",
		 "sum of the above: one block, allocated before the first step");
	if (m->shared)
		add_line(out, "shared", (double)m->shared, "B",
			 "activations that lie in the gradient's memory until it is written; not added");
	if (m->gpu)
		add_outside(out, m, MEMORY_LIBRARIES, MEMORY_OUTSIDE_ARENA_COUNT);
	else
		add_outside(out, m, 0, MEMORY_HOST_PARAMS + (m->outside[MEMORY_HOST_PARAMS] > 0));
	add_line(out, "total", (double)m->bytes, "B",
		 m->gpu ? "on the GPU, with full micro-batches" : "of the process, with full micro-batches");
	if (p->fit.available)
		add_line(out, "available", (double)memory_fit_most(&p->fit), "B",
			 too_large(p) ? "too little; settings to change:"
			 : m->gpu     ? "free on the GPU now, minus the reserve"
				      : "free on this machine now");
	if (too_large(p))
		add_knobs(out, p);
	if (!m->gpu)
		return;
	text_add(out, "\nmemory on the host\n");
	add_outside(out, m, 0, MEMORY_LIBRARIES);
	add_line(out, "total", (double)m->host_bytes, "B", "of the process");
	if (p->fit.host)
		add_line(out, "available", (double)p->fit.host, "B",
			 host_too_large(p) ? "too little; settings to change:" : "free on this machine now");
	if (!too_large(p) && host_too_large(p))
		add_knobs(out, p);
}

static void add_time(struct text *out, const struct planning *p, double planned_s, const char *note)
{
	if (planned_s > 0)
		add_line(out, "time", planned_s, "s", note);
	else
		text_addf(out, "  %-12s %12s  %s\n", "time", "unknown",
			  p->links->nodes > 1 ? "give --link-rate and --network-rate" : "give --link-rate");
}

static void add_tensor(struct text *out, const struct planning *p)
{
	char note[96];

	snprintf(note, sizeof(note), "within groups of %u ranks that share a copy of the model",
		 p->mesh.tensor);
	text_addf(out, "  %-12s %12.0f  %s\n", "tensor", p->tensor.calls, note);
	add_line(out, "bytes", p->tensor.bytes, "B",
		 "of activations; each rank sends and receives nearly as much");
	add_time(out, p, p->tensor.planned_s, "at the given rates; the computation hides a part of it");
}

static void add_comm(struct text *out, const struct planning *p)
{
	text_addf(out, "\ncommunication of a step: %u ranks on %u node%s, %llu sequences of all ranks\n",
		  p->mesh.ranks, p->links->nodes, p->links->nodes == 1 ? "" : "s",
		  (unsigned long long)p->mesh.packs);
	if (p->mesh.tensor > 1)
		add_tensor(out, p);
	if (p->mesh.size < 2 && p->mesh.tensor > 1)
		return;
	if (p->s.model->shards.ranks) {
		text_addf(out, "  %-12s %12.0f  zero_stage: %u, in %u group%s of %u ranks\n", "collectives",
			  p->comm.calls, p->s.model->shards.stage, p->mesh.size / p->mesh.shard,
			  p->mesh.size == p->mesh.shard ? "" : "s", p->mesh.shard);
		add_line(out, "bytes", p->comm.bytes, "B",
			 "of gradients and weights; each rank sends and receives nearly as much");
	} else {
		text_addf(out, "  %-12s %12.0f  %s\n", "all-reduces", p->comm.calls,
			  p->comm.calls > 1 ? "of parts of the gradient, during the backward pass"
					    : "of the gradient, after the last micro-batch");
		add_line(out, "gradient", p->comm.bytes, "B",
			 mesh_travels(&p->c) == DTYPE_BF16
				 ? "in BF16; each rank sends and receives nearly twice as much"
				 : "in float32; each rank sends and receives nearly twice as much");
	}
	add_time(out, p, p->comm.planned_s, "at the given rates, if nothing hides it");
}

static void as_text(struct text *out, const struct planning *p)
{
	const struct stepper *s = &p->s;
	struct step_size size = stepper_size(&p->c);
	double tokens = (double)size.tokens;

	text_addf(out, "trained parameters: %lld of %lld\n", (long long)model_whole(s->model)->params.length,
		  (long long)shape_parameters(&p->w.shape));
	text_addf(out,
		  "micro-batch: at most %lld tokens, in sequences of %lld; %u micro-batch%s per step; "
		  "recompute: %s\n\n",
		  (long long)size.tokens, (long long)size.row_tokens,
		  p->c.training.gradient_accumulation_steps,
		  p->c.training.gradient_accumulation_steps == 1 ? "" : "es",
		  config_recompute_name(p->c.training.recompute));
	add_memory(out, p);
	if (p->links)
		add_comm(out, p);
	text_add(out, "\nwork per token, if every token is a target\n");
	add_line(out, "forward", s->forward.flop / tokens, "FLOP", "");
	add_line(out, "backward", s->backward.flop / tokens, "FLOP",
		 "including head, loss and recomputation");
}

/* The links of the ranks of a group. As many of them as possible are on one node. The groups of a node that
 * reach other nodes at once share its ports. */
static struct comm_links links_of(const struct planning *p, const struct mesh_group *group)
{
	const unsigned local = p->links->local, most = group->stride < local ? local / group->stride : 1;
	struct comm_links out = *p->links;

	out.local = group->count < most ? group->count : most;
	out.nodes = group->count / out.local;
	out.network = out.network * out.local / local;
	return out;
}

/* Puts shard groups over the communication of all ranks. */
static enum status plan_shard_groups(const struct planning *p, struct comm **rows, struct error *err)
{
	const struct mesh_group shard = mesh_shard_group(&p->mesh), place = mesh_place_group(&p->mesh);
	const struct comm_links within = links_of(p, &shard), between = links_of(p, &place);
	struct comm *shards = NULL, *copies = NULL;
	enum status st = mesh_is_hybrid(&p->mesh) ? comm_plan_open(&shards, &within, err) : STATUS_OK;

	if (st || !shards)
		return st;
	st = comm_plan_open(&copies, &between, err);
	if (st)
		shards->ops->close(shards);
	return st ? st : comm_hybrid_open(rows, *rows, shards, copies, err);
}

/* Counts the collectives of one step. */
static enum status plan_comm(struct planning *p, struct error *err)
{
	const struct mesh_group share = mesh_tensor_group(&p->mesh), divide = mesh_data_group(&p->mesh);
	struct comm_links tensor, data;
	struct comm *rows = NULL, *parts = NULL;
	enum status st = STATUS_OK;

	if (!p->links)
		return STATUS_OK;
	tensor = links_of(p, &share);
	data = links_of(p, &divide);
	if (p->mesh.tensor > 1)
		st = comm_plan_open(&parts, &tensor, err);
	if (!st && (p->mesh.size > 1 || !parts))
		st = comm_plan_open(&rows, &data, err);
	if (!st && rows)
		st = plan_shard_groups(p, &rows, err);
	if (rows)
		rows->travels = mesh_travels(&p->c);
	if (!st) {
		stepper_join(&p->s, rows, parts);
		st = stepper_plan_comm(&p->s, &p->c, p->mesh.micros, err);
	}
	if (rows)
		p->comm = rows->count;
	if (parts)
		p->tensor = parts->count;
	stepper_join(&p->s, NULL, NULL);
	if (rows)
		rows->ops->close(rows);
	if (parts)
		parts->ops->close(parts);
	return st;
}

static enum status make_plan(struct planning *p, const struct config *c,
			     const struct train_memory_available *room, const struct comm_links *links,
			     struct error *err)
{
	enum status st;

	*p = (struct planning){.c = *c, .links = links};
	st = weights_open(&p->w, c->model.name_or_path, err);
	p->fit = (struct memory_fit){.shape = &p->w.shape,
				     .threads = cpu_backend_threads(),
				     .available = room->available,
				     .leave = room->leave,
				     .host = room->host};
	if (!st)
		memory_fit_settle(&p->c, &p->fit);
	if (!st)
		st = stepper_plan(&p->s, &p->w.shape, &p->c, p->fit.threads, err);
	if (!st)
		memory_plan_of(&p->memory, &p->s, &p->c);
	if (!st)
		st = mesh_of(&p->mesh, &p->c, err);
	return st ? st : plan_comm(p, err);
}

static void planning_release(struct planning *p)
{
	stepper_release(&p->s);
	weights_release(&p->w);
	free(p);
}

static struct planning *planning_of(struct error *err)
{
	struct planning *p = calloc(1, sizeof(*p));

	if (!p)
		error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a memory plan");
	return p;
}

enum status train_plan(const struct config *c, const struct train_memory_available *room,
		       const struct comm_links *links, struct text *out, json_t **json, struct error *err)
{
	struct planning *p = planning_of(err);
	enum status st = p ? make_plan(p, c, room, links, err) : STATUS_NO_RESOURCE;

	if (!p)
		return st;
	if (!st && too_large(p))
		p->knob_count = memory_fit_knobs(p->knobs, &p->c, &p->fit, &p->memory);
	else if (!st && host_too_large(p))
		p->knob_count = host_knobs(p);
	if (!st && json)
		*json = as_json(p);
	if (!st && json && !*json)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a memory plan");
	if (!st && out)
		as_text(out, p);
	planning_release(p);
	return st;
}

enum status train_settle(struct config *c, const struct train_memory_available *room, uint64_t *bytes,
			 struct error *err)
{
	struct planning *p = planning_of(err);
	enum status st = p ? make_plan(p, c, room, NULL, err) : STATUS_NO_RESOURCE;

	if (!p)
		return st;
	if (!st)
		st = memory_fit_check(&p->c, &p->fit, &p->memory, err);
	if (!st) {
		c->training = p->c.training;
		*bytes = p->memory.bytes;
	}
	planning_release(p);
	return st;
}
