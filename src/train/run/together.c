/* SPDX-License-Identifier: Apache-2.0 */
/* The common work of a run's ranks (docs/explanation/design/mesh.md). They open their communication, compare
 * and share inputs at the start, and add up the figures by which they decide. */
#include <stdlib.h>
#include <string.h>
#include "core/json/member.h"
#include "core/process/cpu_wait.h"
#include "model/cpu/cpu.h"
#include "model/tensor/dtype.h"
#include "team/links/flight.h"
#include "train/mesh/comm_hybrid.h"
#include "train/mesh/comm_open.h"
#include "train/mesh/mesh.h"
#include "train/mesh/planted.h"
#include "train/run/inputs.h"
#include "train/run/internal.h"
#include "train/run/shared_save.h"

bool run_writes(const struct train *t)
{
	return !t->config.place.rank;
}

bool run_stops(const struct train *t)
{
	return t->comm ? t->stopping : *t->job->stop != 0;
}

static bool on_gpu(const struct train *t)
{
	return t->config.training.device == CONFIG_DEVICE_GPU;
}

/* alike, equal: see comm_members. */
static enum status open_group(struct comm **out, struct train *t, const struct mesh_group *group, bool alike,
			      bool equal, struct error *err)
{
	const struct comm_members members = {group->first, group->stride, group->count, alike, equal};

	return on_gpu(t) ? comm_nccl_group(out, t->comm, &members, err)
			 : comm_mpi_group(out, t->comm, &members, err);
}

/* The groups of a data x shard mesh, over the communication of the data axis. */
static enum status open_shard_groups(struct train *t, struct error *err)
{
	struct comm **data = t->mesh.tensor > 1 ? &t->data_comm : &t->comm;
	const struct mesh_group shard = mesh_shard_group(&t->mesh), place = mesh_place_group(&t->mesh);
	struct comm *shards = NULL, *copies = NULL;
	enum status st;

	if (!mesh_is_hybrid(&t->mesh))
		return STATUS_OK;
	st = open_group(&shards, t, &shard, true, false, err);
	if (!st)
		st = open_group(&copies, t, &place, true, false, err);
	if (st && shards)
		shards->ops->close(shards);
	return st ? st : comm_hybrid_open(data, *data, shards, copies, err);
}

/* The groups of the tensor axis and of the data axis. The ranks of a copy have their own micro-batches, so
 * only collectives of the data axis are alike on all ranks. Their sizes are equal, because all parts of a
 * model have the same table of parameters. */
static enum status open_tensor_groups(struct train *t, struct error *err)
{
	struct mesh_group tensor, data;
	struct mesh m;
	enum status st = mesh_of(&m, &t->config, err);

	if (st || m.tensor <= 1)
		return st;
	tensor = mesh_tensor_group(&m);
	data = mesh_data_group(&m);
	st = open_group(&t->tensor_comm, t, &tensor, false, false, err);
	return st || m.size <= 1 ? st : open_group(&t->data_comm, t, &data, true, true, err);
}

enum status run_comm_open(struct train *t, struct error *err)
{
	struct team *team = t->job->team;
	enum status st;

	if (!team)
		return STATUS_OK;
	st = on_gpu(t) ? comm_nccl_open(&t->comm, team, err) : comm_mpi_open(&t->comm, team, err);
	return st || on_gpu(t) ? st : open_tensor_groups(t, err);
}

enum status run_comm_device(struct train *t, struct error *err)
{
	enum status st = STATUS_OK;

	if (!t->comm)
		return STATUS_OK;
	t->comm->travels = mesh_travels(&t->config);
	if (on_gpu(t))
		st = comm_nccl_device(t->comm, &t->stepper.back, err);
	if (!st && on_gpu(t))
		st = open_tensor_groups(t, err);
	if (t->data_comm) /* gradients of copies; within a copy numbers travel as they are */
		t->data_comm->travels = t->comm->travels;
	if (!st)
		st = open_shard_groups(t, err);
	return st ? st : planted_put(t->comm, t->data_comm, t->tensor_comm, &t->stepper.back, err);
}

void run_comm_close(struct train *t)
{
	if (t->data_comm)
		t->data_comm->ops->close(t->data_comm);
	if (t->tensor_comm)
		t->tensor_comm->ops->close(t->tensor_comm);
	if (t->comm)
		t->comm->ops->close(t->comm);
	t->comm = t->tensor_comm = t->data_comm = NULL;
}

/* -- the start -- */

static enum status compare(const json_t *first, const json_t *other, unsigned rank, struct error *err)
{
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)first, i, one)
	{
		const json_t *same = inputs_find(other, one);

		if (!same)
			return error_set(err, STATUS_BAD_INPUT,
					 "%.300s: rank 0 has this file (%s), and rank %u does not",
					 json_member_text(one, "path"), json_member_text(one, "what"), rank);
		if (strcmp(json_member_text(same, "sum"), json_member_text(one, "sum")))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%.300s: the %s of rank %u are not those of rank 0; all ranks must read the "
				"same files",
				json_member_text(one, "path"), json_member_text(one, "what"), rank);
	}
	return json_array_size(other) == json_array_size(first)
		       ? STATUS_OK
		       : error_set(err, STATUS_BAD_INPUT, "rank %u reads files that rank 0 does not have",
				   rank);
}

static enum status compare_all(const struct train *t, const char *all, struct error *err)
{
	json_t *first = json_loads(all, 0, NULL);
	enum status st = STATUS_OK;

	for (unsigned r = 1; r < t->comm->size && !st; r++) {
		json_t *other = json_loads(all + (size_t)r * COMM_GATHER_MAX, 0, NULL);

		st = compare(first, other, r, err);
		json_decref(other);
	}
	json_decref(first);
	return st;
}

enum status run_compare_inputs(struct train *t, const json_t *inputs, struct error *err)
{
	char *text = t->comm ? json_dumps(inputs, JSON_COMPACT) : NULL, *mine = NULL, *all = NULL;
	enum status st = STATUS_OK;

	if (!t->comm)
		return STATUS_OK;
	mine = calloc(1, COMM_GATHER_MAX);
	all = malloc((size_t)t->comm->size * COMM_GATHER_MAX);
	if (!text || !mine || !all)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for the checksums of all ranks");
	else if (strlen(text) >= COMM_GATHER_MAX)
		st = error_set(err, STATUS_BAD_INPUT,
			       "more files than several ranks can compare: merge some of them");
	st = comm_agree(t->comm, st, err);
	if (!st) {
		memcpy(mine, text, strlen(text));
		st = t->comm->ops->gather(t->comm, mine, COMM_GATHER_MAX, all, err);
	}
	if (!st)
		st = compare_all(t, all, err);
	free(text);
	free(mine);
	free(all);
	return st;
}

static enum status share_text(struct comm *c, char **text, struct error *err)
{
	uint64_t size = *text ? strlen(*text) : 0;
	enum status st = c->ops->share(c, &size, sizeof(size), err);
	char *whole = st ? NULL : realloc(*text, size + 1);

	if (st)
		return st;
	if (whole)
		*text = whole;
	st = comm_agree(c,
			whole ? STATUS_OK
			      : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
						"no memory for the state of the run"),
			err);
	if (!st)
		st = c->ops->share(c, *text, size, err);
	if (!st)
		(*text)[size] = '\0';
	return st;
}

enum status run_share_state(struct train *t, struct error *err)
{
	json_t *state = NULL;
	char *text = NULL;
	enum status st;

	if (!t->comm || !t->job->resume)
		return STATUS_OK;
	if (run_writes(t)) {
		state = train_state_json(&t->state, &t->config.training);
		text = json_dumps(state, JSON_COMPACT | JSON_REAL_PRECISION(17));
		json_decref(state);
		state = NULL;
	}
	st = comm_agree(t->comm,
			!run_writes(t) || text ? STATUS_OK
					       : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
								 "no memory for the state of the run"),
			err);
	if (!st)
		st = share_text(t->comm, &text, err);
	if (!st && !run_writes(t)) {
		state = json_loads(text, 0, NULL);
		train_state_release(&t->state);
		st = train_state_parse(&t->state, state, "the state that rank 0 sent", err);
	}
	json_decref(state);
	free(text);
	return st;
}

/* The bytes of a state as F32, the type that is sent. What rounds them up is the arena's alignment. */
static struct mat words_of(const struct mat *state, uint64_t bytes)
{
	const int64_t words = (int64_t)((bytes + sizeof(float) - 1) / sizeof(float));

	return (struct mat){.data = state->data, .rows = 1, .cols = words, .ld = words, .dtype = DTYPE_F32};
}

/* A state in host memory is sent through the memory of the gradient. */
static enum status share_offloaded(struct train *t, const struct mat *state, uint64_t bytes,
				   struct error *err)
{
	const struct mat *grad = &t->stepper.model->params.grad;
	const uint64_t room = dtype_bytes(grad->dtype, (uint64_t)grad->cols) / sizeof(float) * sizeof(float);
	struct backend *back = &t->stepper.back;
	enum status st = STATUS_OK;

	for (uint64_t at = 0; !st && at < bytes; at += room) {
		const uint64_t part = bytes - at < room ? bytes - at : room;
		const struct mat piece = {.data = grad->data,
					  .rows = 1,
					  .cols = (int64_t)part,
					  .ld = (int64_t)part,
					  .dtype = DTYPE_U8};

		st = back->ops->put(back, piece, (const uint8_t *)state->data + at, err);
		if (!st)
			st = t->comm->ops->broadcast(t->comm, words_of(&piece, part), err);
		if (!st)
			st = t->comm->ops->wait(t->comm, err);
		if (!st)
			st = back->ops->get(back, piece, (uint8_t *)state->data + at, err);
	}
	return st;
}

enum status run_share_params(struct train *t, struct error *err)
{
	struct params states = t->stepper.model->params;
	enum status st = STATUS_OK;

	if (t->host_params.collected)
		return run_divide(t, err);
	for (int i = 0; t->comm && !st && i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = params_state_bytes(&states, (enum params_state)i);
		const struct mat *state = params_state(&states, (enum params_state)i);

		if (bytes && params_state_offloaded(&states, (enum params_state)i))
			st = share_offloaded(t, state, bytes, err);
		else if (bytes)
			st = t->comm->ops->broadcast(t->comm, words_of(state, bytes), err);
	}
	if (!st && t->comm)
		st = t->comm->ops->wait(t->comm, err);
	/* the other ranks have no copy yet that GEMMs read */
	return st || !t->comm ? st : host_params_put_live(&states, &t->stepper.back, err);
}

/* -- sums -- */

enum { FIGURES = 4 }; /* stop requests, FLOP, seconds of tuning, shards of a checkpoint that are written */

/* Ranks of tensor parallel compute the same losses, of which one counts.
 * `values`: the figures, then the loss of each pack of the step, or the sum of this rank's losses. */
static void put_step(const struct train *t, const struct step_figures *f, double loss, double *values)
{
	const struct gradient_tree *tree = &t->stepper.tree;

	values[0] = *t->job->stop != 0 || (t->comm && run_has_moved(t));
	values[1] = f->part.flop;
	values[2] = f->tuned_s;
	values[3] = run_save_done(t);
	if (t->mesh.tensor_rank)
		return;
	if (!t->mesh.each_pack)
		values[FIGURES] = loss;
	for (uint64_t i = 0; t->mesh.each_pack && i < tree->at; i++)
		values[FIGURES + f->size.first_pack + i] = tree->loss[i];
}

void run_begin_figures(struct train *t)
{
	if (!t->comm) /* a single rank is never late */
		return;
	if (t->stepper.back.kind == BACKEND_CPU)
		cpu_backend_wait_begin(&t->stepper.back);
	else
		t->cpu_wait_ns = cpu_wait_ns(0);
}

/* Seconds since run_begin_figures in which one of the rank's computing threads could run and no CPU was free.
 * A GPU's work is enqueued by this thread. */
static double cpu_wait_s(struct train *t)
{
	uint64_t now;

	if (!t->comm)
		return 0;
	if (t->stepper.back.kind == BACKEND_CPU)
		return cpu_backend_wait_s(&t->stepper.back);
	now = cpu_wait_ns(0);
	return 1e-9 * (double)cpu_wait_longest_ns(&t->cpu_wait_ns, &now, 1);
}

void run_keep_figures(struct train *t, const struct step_figures *f)
{
	const struct team_facts facts = team_facts_get(t->job->board);

	t->own = (struct rank_figures){.step_s = f->step_s,
				       .drain_s = f->comm_s,
				       .compute_s = f->part.forward_s + f->part.backward_s + f->optimiser_s,
				       .rows_s = f->wait_s,
				       .save_s = f->save_s,
				       .cpu_wait_s = cpu_wait_s(t),
				       .tokens = (double)f->own_tokens,
				       .clock_hz = facts.clock_hz,
				       .slowed_share = facts.slowed_share,
				       .link_rate = facts.link_rate,
				       .tensor_share = facts.tensor_share,
				       .memory_share = facts.memory_share,
				       .sm_share = facts.sm_share};
}

/* Takes the figures of the step before. */
static enum status take_figures(struct train *t, const double *all, struct error *err)
{
	const struct rank_figures *figures = (const struct rank_figures *)(const void *)all;
	enum status st = STATUS_OK;

	if (!t->window.figures)
		st = rank_window_make(&t->window, t->mesh.ranks, err);
	if (st || !(figures->step_s > 0)) /* this is the first step */
		return st;
	rank_window_add(&t->window, figures);
	st = rank_account_make(&t->account, &t->window, err);
	if (!st && t->account.late.rank >= 0)
		t->late = t->account.late;
	return st;
}

enum status run_sum_step(struct train *t, struct step_figures *f, double *loss, struct error *err)
{
	const uint64_t losses = t->mesh.each_pack ? f->size.packs : 1;
	double *values = calloc(FIGURES + losses + (size_t)t->mesh.ranks * RANK_FIGURES, sizeof(*values));
	double own[RANK_FIGURES];
	enum status st;

	if (!values)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the losses of a step");
	put_step(t, f, *loss, values);
	memcpy(own, &t->own, sizeof(own));
	st = comm_sum_each(t->comm, values, FIGURES + losses, own, RANK_FIGURES, values + FIGURES + losses,
			   err);
	if (!st)
		st = take_figures(t, values + FIGURES + losses, err);
	*loss = 0;
	for (uint64_t i = 0; i < losses; i++)
		*loss += values[FIGURES + i];
	f->part.flop = values[1];
	f->tuned_s = values[2];
	t->saving.done = (uint64_t)values[3];
	t->stopping = t->stopping || values[0] > 0;
	if (t->comm)
		f->comm_s = t->comm->count.wait_s;
	free(values);
	return st;
}

enum status run_sum_losses(struct train *t, double *losses, uint64_t count, struct error *err)
{
	double stop = *t->job->stop != 0;
	enum status st = comm_sum(t->comm, losses, count, err);

	if (!st)
		st = comm_sum(t->comm, &stop, 1, err);
	t->stopping = t->stopping || stop > 0;
	return st;
}
