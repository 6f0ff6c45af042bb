/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between all GPUs of a node at once. Each GPU is a rank with a thread of its own. A rank sends to the
 * others in the order rank + 1, rank + 2, .., so that no two ranks start with the same receiver. Every rank
 * may read and write the memory of the others: addresses are exchanged once. A rank checks its received data
 * only after all ranks have reported that they sent theirs.
 */
#include <errno.h>
#include <inttypes.h>
#include "core/math/random.h"
#include "kernel/memory/link.h"
#include "machine/link/gpu_path.h"
#include "probe/p2p/p2p.h"
#include "probe/shared/transfer_data.h"
#include "team/team.h"

struct lane {			   /* between this rank and one other */
	gpu_ptr out, in, expected; /* 0: nothing is sent that way */
};

struct post { /* addresses that a rank gives the others */
	struct gpu_device *device;
	gpu_ptr out[TARGET_GPUS], in[TARGET_GPUS];
};

struct p2p_node {
	const struct bench *bench;
	enum p2p_way way;
	enum p2p_pattern pattern;
	uint64_t bytes, iterations;
	struct gpu_kernel *kernel; /* NULL: the copy engines */
	struct lane lane[TARGET_GPUS];
	struct post post[TARGET_GPUS];
	gpu_ptr record;
	bool ready;
};

static unsigned number_of(const struct p2p_node *n, unsigned rank)
{
	return n->bench->target->gpu[rank];
}

static bool sends(const struct p2p_node *n, unsigned from, unsigned to)
{
	unsigned last = n->bench->team->size - 1;

	return from != to && (n->pattern == P2P_ALL || (n->pattern == P2P_OUT && !from) ||
			      (n->pattern == P2P_IN && to == last));
}

static enum status make_lane(struct p2p_node *n, unsigned other, struct error *err)
{
	const struct bench *b = n->bench;
	unsigned own = b->team->rank;
	struct lane *l = &n->lane[other];
	enum status st = STATUS_OK;

	if (sends(n, own, other))
		st = transfer_data_generate(b->device, b->stream[0], &l->out, n->bytes, b->seed,
					    p2p_stream(number_of(n, own), number_of(n, other)), err);
	if (st || !sends(n, other, own))
		return st;
	st = gpu_alloc(b->device, &l->in, n->bytes, err);
	return st ? st
		  : transfer_data_generate(b->device, b->stream[0], &l->expected, n->bytes, b->seed,
					   p2p_stream(number_of(n, other), number_of(n, own)), err);
}

static enum status make_own(struct p2p_node *n, struct error *err)
{
	const struct bench *b = n->bench;
	struct post *own = &n->post[b->team->rank];
	enum status st = transfer_data_record(b->device, &n->record, err);

	own->device = b->device;
	for (unsigned r = 0; !st && r < b->team->size; r++) {
		st = make_lane(n, r, err);
		own->out[r] = n->lane[r].out;
		own->in[r] = n->lane[r].in;
	}
	if (!st && n->way != P2P_DRIVER)
		st = gpu_kernel(b->device, &n->kernel, "link", "link_v2", err);
	return st ? st : gpu_synchronize(b->device, err);
}

/* Opens access to every GPU that this rank reads or writes. *access: all of them allow it. */
static enum status reach(struct p2p_node *n, bool *access, struct error *err)
{
	const struct bench *b = n->bench;
	enum status st = STATUS_OK;
	bool one;

	*access = true;
	for (unsigned r = 0; !st && r < b->team->size; r++) {
		if (r == b->team->rank)
			continue;
		st = gpu_peer_enable(b->device, n->post[r].device, &one, err);
		*access &= one;
	}
	if (!st && !*access && n->way != P2P_DRIVER)
		st = error_set(
			err, STATUS_UNSUPPORTED,
			"p2p: the driver gives gpu%u no access to the memory of some other GPUs, so no kernel can reach it",
			b->gpu);
	return st;
}

static enum status exchange(struct p2p_node *n, struct error *err)
{
	struct post own = n->post[n->bench->team->rank];

	return team_gather(n->bench->team, &own, sizeof(own), n->post, err);
}

static void report(const struct p2p_node *n, bool access)
{
	const struct bench *b = n->bench;
	struct result *out = b->out;
	unsigned most = 0, links = machine_nvlinks_node(b->machine, b->target->gpu, b->team->size, &most);
	double rate = gpu_get(machine_gpu(b->machine, b->gpu), GPU_FACT_nvlink_rate_gbps, 0);
	char text[64] = "peer";

	result_u64(out, &p2p_fields[P2P_FIELD_copy_bytes], n->bytes);
	result_u64(out, &p2p_fields[P2P_FIELD_peer_access], access);
	if (!access)
		snprintf(text, sizeof(text), "host");
	else if (links)
		snprintf(text, sizeof(text), "NV%u", links);
	result_text(out, &p2p_fields[P2P_FIELD_path], text);
	result_text(out, &p2p_fields[P2P_FIELD_way], n->way == P2P_DRIVER ? "copy engine" : "link_v2");
	if (!most)
		return;
	result_u64(out, &p2p_fields[P2P_FIELD_nvlinks], links);
	result_u64(out, &p2p_fields[P2P_FIELD_nvlinks_most], most);
	if (rate > 0)
		result_f64(out, &p2p_fields[P2P_FIELD_nvlink_rate_raw], rate * 1e9);
}

enum status p2p_node_prepare(struct p2p_node **out, const struct bench *b, const struct p2p_opts *o,
			     enum p2p_way way, struct error *err)
{
	struct p2p_node *n;
	bool access = false;
	enum status st;

	if (!b->team || b->team->size < 2 || !b->team->in_process)
		return error_set(err, STATUS_UNSUPPORTED,
				 "p2p: this pattern needs several GPUs in one process");
	n = *out = calloc(1, sizeof(*n));
	if (!n)
		return error_errno(err, ENOMEM, "p2p: no memory for the buffers of %u ranks", b->team->size);
	*n = (struct p2p_node){
		.bench = b, .way = way, .pattern = (enum p2p_pattern)o->pattern, .bytes = o->size};
	st = team_agree(b->team, make_own(n, err), err);
	if (!st)
		st = exchange(n, err);
	if (!st)
		st = team_agree(b->team, reach(n, &access, err), err);
	if (!st)
		report(n, access);
	return st;
}

static enum status move(struct p2p_node *n, unsigned other, struct error *err)
{
	const struct bench *b = n->bench;
	unsigned own = b->team->rank;
	struct link_args args = {.count = n->bytes / 16};

	if (!sends(n, n->way == P2P_LOAD ? other : own, n->way == P2P_LOAD ? own : other))
		return STATUS_OK;
	if (n->way == P2P_DRIVER)
		return gpu_stream_copy_peer(b->stream[0], n->post[other].in[own], n->post[other].device,
					    n->lane[other].out, b->device, n->bytes, err);
	args.from = n->way == P2P_LOAD ? n->post[other].out[own] : n->lane[other].out;
	args.to = n->way == P2P_LOAD ? n->lane[other].in : n->post[other].in[own];
	return gpu_launch_1d(n->kernel, b->stream[0], P2P_PER_SM * gpu_sm_count(b->device), P2P_THREADS, 0,
			     &args, err);
}

enum status p2p_node_enqueue(struct p2p_node *n, struct error *err)
{
	const struct team *t = n->bench->team;
	enum status st = STATUS_OK;

	n->iterations++;
	for (unsigned k = 1; !st && k < t->size; k++)
		st = move(n, (t->rank + k) % t->size, err);
	return st;
}

static enum status poison(struct p2p_node *n, struct error *err)
{
	const struct bench *b = n->bench;
	enum status st = STATUS_OK;

	for (unsigned r = 0; !st && r < b->team->size; r++)
		if (n->lane[r].in)
			st = gpu_stream_fill32(b->stream[0], n->lane[r].in, TRANSFER_DATA_POISON,
					       n->bytes / 4, err);
	return st ? st : gpu_synchronize(b->device, err);
}

static enum status check_lane(struct p2p_node *n, unsigned from, struct wrong *w, struct error *err)
{
	const struct bench *b = n->bench;
	const struct lane *l = &n->lane[from];
	struct transfer_data_found f;
	enum status st = transfer_data_compare(b->device, b->stream[0], l->in, l->expected, n->record,
					       n->bytes, &f, err);

	if (st)
		return st;
	w->total += n->bytes / 4;
	w->checked += n->bytes / 4;
	if (f.count && !w->count) {
		w->first_index = f.first;
		w->expected = random_u32(b->seed, p2p_stream(number_of(n, from), b->gpu), f.first);
		w->found = f.word;
		snprintf(w->place, sizeof(w->place), "gpu%u>gpu%u, byte 0x%" PRIx64, number_of(n, from),
			 b->gpu, 4 * f.first);
	}
	w->count += f.count;
	return STATUS_OK;
}

static enum status check(struct p2p_node *n, struct wrong *w, struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned r = 0; !st && r < n->bench->team->size; r++)
		if (n->lane[r].in)
			st = check_lane(n, r, w, err);
	return st;
}

/* All ranks meet twice: before the first sends, and before the first checks. */
enum status p2p_node_verify(struct p2p_node *n, struct wrong *w, struct error *err)
{
	struct team *t = n->bench->team;
	enum status st = STATUS_OK;

	if (!n->iterations || !n->ready) {
		st = team_agree(t, poison(n, err), err);
		if (!st)
			st = team_agree(t, p2p_node_enqueue(n, err), err);
	}
	if (!st)
		st = team_agree(t, gpu_synchronize(n->bench->device, err), err);
	if (!st)
		st = check(n, w, err);
	if (!st)
		st = poison(n, err);
	n->ready = !st;
	n->iterations = 0;
	return st ? st : transfer_data_judge("p2p", w, err);
}

void p2p_node_release(struct p2p_node **node)
{
	struct p2p_node *n = *node;

	if (!n)
		return;
	/* a lost device fails here, and there is nothing to wait for */
	(void)gpu_synchronize(n->bench->device, NULL);
	for (unsigned r = 0; r < TARGET_GPUS; r++) {
		gpu_free(n->bench->device, &n->lane[r].out);
		gpu_free(n->bench->device, &n->lane[r].in);
		gpu_free(n->bench->device, &n->lane[r].expected);
	}
	gpu_free(n->bench->device, &n->record);
	free(n);
	*node = NULL;
}
