/* SPDX-License-Identifier: Apache-2.0 */
/* Joins NCCL's calls with the kernels that they launched. A call outside a group launches within its own
 * range. The calls of a group launch within the range of the outermost ncclGroupEnd, on the calling thread.
 */
#include "profile/nccl/internal.h"

enum { ROLE_NONE, ROLE_KERNEL, ROLE_GROUP_START, ROLE_GROUP_END, ROLE_CALL };

static const struct {
	const char *function;
	bool part;
} functions[] = {
#define X(id, function, name, load, part) [NCCL_##id] = {function, part},
	NCCL_OPERATIONS(X)
#undef X
};

/* One NCCL call, from its range. */
struct call {
	uint64_t comm, bytes;
	uint32_t peer;
	uint8_t operation;
};

/* An NCCL kernel and the time of its launch. */
struct issued {
	uint64_t at_ns;
	uint32_t track, device, event;
};

struct join {
	const struct timeline *t;
	struct nccl *n;
	uint8_t *role; /* by name: ROLE_CALL + operation, or another role */
	/* indices of the names of NCCL's payload fields; TIMELINE_NONE: not in the profile */
	uint32_t domain, comm, bytes, peer;
	struct issued *issued;
	struct call *call; /* calls since the outermost ncclGroupStart */
	uint32_t *peers;   /* scratch space of the same size */
	size_t issueds, issued_next, calls, call_room, launch_room, kernel_room;
	uint64_t comm_asked; /* communicator of the cached number of ranks */
	uint32_t comm_ranks;
	uint32_t depth; /* nesting depth of groups */
	bool out_of_memory;
};

static void *more(struct join *j, void *array, size_t count, size_t *room, size_t size)
{
	size_t wanted = *room ? *room * 2 : 64;
	void *grown;

	if (count < *room)
		return array;
	grown = realloc(array, wanted * size);
	if (!grown) {
		j->out_of_memory = true;
		return NULL;
	}
	*room = wanted;
	return grown;
}

static uint8_t role_of(const char *name)
{
	if (strncmp(name, "nccl", 4) != 0)
		return ROLE_NONE;
	for (unsigned i = 0; i < NCCL_OPERATION_COUNT; i++)
		if (*functions[i].function && !strcmp(name, functions[i].function))
			return (uint8_t)(ROLE_CALL + i);
	if (!strcmp(name, "ncclGroupStart"))
		return ROLE_GROUP_START;
	if (!strcmp(name, "ncclGroupEnd"))
		return ROLE_GROUP_END;
	return nccl_is_kernel(name) ? ROLE_KERNEL : ROLE_NONE;
}

/* Assigns roles to names. Returns true if any name is NCCL's. */
static bool name_roles(struct join *j)
{
	bool any = false;

	j->domain = j->comm = j->bytes = j->peer = TIMELINE_NONE;
	for (size_t i = 0; i < j->t->names; i++) {
		const char *name = j->t->name[i];

		j->role[i] = role_of(name);
		any |= j->role[i] != ROLE_NONE;
		if (!strcmp(name, "NCCL"))
			j->domain = (uint32_t)i;
		else if (!strcmp(name, "NCCL communicator ID"))
			j->comm = (uint32_t)i;
		else if (!strcmp(name, "Message size [bytes]"))
			j->bytes = (uint32_t)i;
		else if (!strcmp(name, "Peer rank"))
			j->peer = (uint32_t)i;
	}
	return any;
}

static struct nccl_launch *add_launch(struct join *j, const struct timeline_event *e)
{
	struct nccl *n = j->n;
	struct nccl_launch *grown = more(j, n->launch, n->launches, &j->launch_room, sizeof(*grown));

	if (!grown)
		return NULL;
	n->launch = grown;
	grown += n->launches++;
	*grown = (struct nccl_launch){.operation = NCCL_UNKNOWN,
				      .process = e->process,
				      .device = j->t->track[e->track].device_id,
				      .start_ns = e->start_ns};
	return grown;
}

/* Adds the kernel to the last launch. */
static void add_kernel(struct join *j, uint32_t event)
{
	struct nccl *n = j->n;
	struct nccl_launch *l = n->launches ? &n->launch[n->launches - 1] : NULL;
	struct nccl_kernel *grown = more(j, n->kernel, n->kernels, &j->kernel_room, sizeof(*grown));
	const struct timeline_event *e = &j->t->event[event];

	if (!grown || !l)
		return;
	n->kernel = grown;
	n->kernel[n->kernels++] = (struct nccl_kernel){.event = event, .launch = (uint32_t)(n->launches - 1)};
	l->kernels++;
	l->start_ns = e->start_ns < l->start_ns ? e->start_ns : l->start_ns;
	l->end_ns = e->end_ns > l->end_ns ? e->end_ns : l->end_ns;
	l->ready_ns = l->start_ns;
	l->fastest_ns = l->end_ns - l->start_ns;
}

/* Adds a kernel that was launched by no known call. */
static void add_loose(struct join *j, uint32_t event)
{
	const struct timeline_event *e = &j->t->event[event];
	struct nccl_launch *l = add_launch(j, e);

	if (!l)
		return;
	l->graph = j->t->kernel[e->detail].graph != 0;
	add_kernel(j, event);
}

static int by_issue(const void *a_, const void *b_)
{
	const struct issued *a = a_, *b = b_;

	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static bool collect_kernels(struct join *j)
{
	const struct timeline *t = j->t;
	size_t room = 0;

	for (size_t i = 0; i < t->events && !j->out_of_memory; i++) {
		const struct timeline_event *e = &t->event[i], *call;
		struct issued *grown;

		if (e->kind != TIMELINE_KERNEL || e->track == TIMELINE_NONE ||
		    j->role[e->name] != ROLE_KERNEL)
			continue;
		call = t->kernel[e->detail].graph ? NULL : timeline_call(t, e);
		if (!call || call->track == TIMELINE_NONE) {
			add_loose(j, (uint32_t)i);
			continue;
		}
		grown = more(j, j->issued, j->issueds, &room, sizeof(*grown));
		if (!grown)
			break;
		j->issued = grown;
		j->issued[j->issueds++] =
			(struct issued){.at_ns = call->start_ns + (call->end_ns - call->start_ns) / 2,
					.track = call->track,
					.device = t->track[e->track].device_id,
					.event = (uint32_t)i};
	}
	if (j->issueds)
		qsort(j->issued, j->issueds, sizeof(*j->issued), by_issue);
	return !j->out_of_memory;
}

static int by_number(const void *a_, const void *b_)
{
	const uint32_t *a = a_, *b = b_;

	return (*a > *b) - (*a < *b);
}

/* Number of different peers among the pending calls of this operation. */
static uint32_t count_peers(struct join *j, uint8_t operation)
{
	uint32_t count = 0, different = 0;

	for (size_t i = 0; i < j->calls; i++)
		if (j->call[i].operation == operation)
			j->peers[count++] = j->call[i].peer;
	qsort(j->peers, count, sizeof(*j->peers), by_number);
	for (uint32_t i = 0; i < count; i++)
		different += !i || j->peers[i] != j->peers[i - 1];
	return different;
}

/* Bytes sent to other ranks, or received from them. *all also includes what a rank sends to itself. */
static uint64_t moved(const struct join *j, uint8_t operation, uint32_t own, uint64_t *all)
{
	uint64_t others = 0;

	*all = 0;
	for (size_t i = 0; i < j->calls; i++) {
		if (j->call[i].operation != operation)
			continue;
		*all += j->call[i].bytes;
		others += j->call[i].peer != own ? j->call[i].bytes : 0;
	}
	return others;
}

/* Describes sends and receives. If every rank sends to and receives from every rank, they are an all-to-all.
 */
static void describe_messages(struct join *j, struct nccl_launch *l)
{
	uint32_t own = nccl_own_rank(j->t, l->comm, l->process);
	uint64_t sent, received, sent_on = moved(j, NCCL_SEND, own, &sent),
				 received_on = moved(j, NCCL_RECV, own, &received);
	bool both = sent && received;

	l->operation = both ? NCCL_SEND_RECV : sent ? NCCL_SEND : NCCL_RECV;
	l->size = sent > received ? sent : received;
	l->link_bytes = (double)(sent_on > received_on ? sent_on : received_on);
	if (both && l->ranks > 2 && count_peers(j, NCCL_SEND) == l->ranks &&
	    count_peers(j, NCCL_RECV) == l->ranks) {
		l->operation = NCCL_ALL_TO_ALL;
		if (own == TIMELINE_NONE)
			l->link_bytes = (double)l->size * bus_factor(BUS_OTHERS, l->ranks);
	}
}

/* `told`: sum of the bytes of all its calls. */
static void describe_collective(struct nccl_launch *l, uint64_t told)
{
	enum bus_load load = nccl_operation_load(l->operation);
	bool part = functions[l->operation].part;

	if (!l->ranks && (part || load != BUS_ALL))
		l->size = part ? 0 : told;
	else {
		l->size = part ? told * l->ranks : told;
		l->link_bytes = (double)l->size * bus_factor(load, l->ranks);
	}
}

/* Number of ranks of the communicator. The last answer is cached, because it is usually the same
 * communicator. */
static uint32_t ranks_of(struct join *j, uint64_t comm)
{
	if (comm && comm == j->comm_asked)
		return j->comm_ranks;
	j->comm_asked = comm;
	j->comm_ranks = nccl_ranks(j->t, comm);
	return j->comm_ranks;
}

/* Describes a launch: what the pending calls do on each of `devices` devices. */
static void describe(struct join *j, struct nccl_launch *l, uint32_t devices)
{
	bool one_comm = true, one_kind = true, messages = true;
	uint64_t told = 0;

	l->calls = (uint32_t)(j->calls / devices);
	for (size_t i = 0; i < j->calls; i++) {
		const struct call *c = &j->call[i];

		one_comm &= c->comm == j->call[0].comm;
		one_kind &= c->operation == j->call[0].operation;
		messages &= c->operation == NCCL_SEND || c->operation == NCCL_RECV;
		told += c->bytes;
	}
	l->operation = NCCL_MIXED;
	if (!one_comm)
		return;
	l->comm = j->call[0].comm;
	l->ranks = ranks_of(j, l->comm);
	if (j->calls % devices || (!one_kind && !messages))
		return;
	if (messages && devices == 1) {
		describe_messages(j, l);
	} else if (!messages) {
		l->operation = j->call[0].operation;
		describe_collective(l, told / devices);
	}
}

static int by_device(const void *a_, const void *b_)
{
	const struct issued *a = a_, *b = b_;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

/* Turns the pending calls, and the kernels that their thread launched from from_ns to to_ns, into one launch
 * per device. */
static void settle(struct join *j, uint32_t track, uint64_t from_ns, uint64_t to_ns)
{
	struct issued *issued =
		j->issued; /* NULL if nothing was launched, so it is only indexed below the count */
	size_t k = j->issued_next, last;
	uint32_t devices = 0;

	/* Earlier kernels were launched outside of all calls. */
	for (; k < j->issueds &&
	       (issued[k].track < track || (issued[k].track == track && issued[k].at_ns < from_ns));
	     k++)
		add_loose(j, issued[k].event);
	for (last = k; last < j->issueds && issued[last].track == track && issued[last].at_ns <= to_ns;)
		last++;
	j->issued_next = last;
	if (last > k)
		qsort(&issued[k], last - k, sizeof(*issued), by_device);
	else
		j->n->lonely += j->calls;
	for (size_t i = k; i < last; i++)
		devices += i == k || issued[i].device != issued[i - 1].device;
	for (size_t i = k; i < last && !j->out_of_memory; i++) {
		if (i == k || issued[i].device != issued[i - 1].device) {
			struct nccl_launch *l = add_launch(j, &j->t->event[issued[i].event]);

			if (l && j->calls)
				describe(j, l, devices);
		}
		add_kernel(j, issued[i].event);
	}
	j->calls = 0;
}

static void add_call(struct join *j, const struct timeline_event *e)
{
	const struct timeline_range *r = &j->t->range[e->detail];
	size_t room = j->call_room;
	struct call *c = more(j, j->call, j->calls, &j->call_room, sizeof(*c));
	uint32_t *peers;

	if (!c)
		return;
	j->call = c;
	if (room != j->call_room) {
		peers = realloc(j->peers, j->call_room * sizeof(*peers));
		if (!peers) {
			j->out_of_memory = true;
			return;
		}
		j->peers = peers;
	}
	c += j->calls++;
	j->n->calls++;
	*c = (struct call){.operation = (uint8_t)(j->role[e->name] - ROLE_CALL), .peer = TIMELINE_NONE};
	for (uint32_t i = 0; i < r->values; i++) {
		const struct timeline_value *v = &j->t->value[r->value_first + i];

		if (v->name == j->comm)
			c->comm = v->u64;
		else if (v->name == j->bytes)
			c->bytes = v->u64;
		else if (v->name == j->peer)
			c->peer = (uint32_t)v->u64;
	}
}

static void walk_thread(struct join *j, uint32_t track)
{
	const struct timeline_track *at = &j->t->track[track];
	uint64_t until_ns = 0; /* end of the current call: NCCL calls within it are not counted */

	j->depth = 0;
	j->calls = 0;
	for (uint32_t i = 0; i < at->count && !j->out_of_memory; i++) {
		const struct timeline_event *e = &j->t->event[j->t->by_track[at->first + i]];
		uint8_t role = e->kind == TIMELINE_RANGE ? j->role[e->name] : ROLE_NONE;

		if (role < ROLE_GROUP_START || j->t->range[e->detail].domain != j->domain ||
		    e->start_ns < until_ns)
			continue;
		if (role == ROLE_GROUP_START) {
			j->depth++;
			continue;
		}
		if (role == ROLE_GROUP_END) {
			j->depth -= j->depth > 0;
		} else {
			add_call(j, e);
			until_ns = e->end_ns;
		}
		if (!j->depth)
			settle(j, track, e->start_ns, e->end_ns);
	}
	j->n->lonely += j->calls;
}

static bool join(struct join *j)
{
	const struct timeline *t = j->t;

	j->role = calloc(t->names + 1, sizeof(*j->role));
	if (!j->role)
		return false;
	if (!name_roles(j))
		return true;
	if (!collect_kernels(j))
		return false;
	for (size_t i = 0; i < t->tracks && !j->out_of_memory; i++)
		if (!t->track[i].device)
			walk_thread(j, (uint32_t)i);
	for (size_t i = j->issued_next; i < j->issueds; i++)
		add_loose(j, j->issued[i].event);
	return !j->out_of_memory;
}

bool nccl_join(struct nccl *n, const struct timeline *t)
{
	struct join j = {.t = t, .n = n};
	bool joined = join(&j);

	free(j.role);
	free(j.issued);
	free(j.call);
	free(j.peers);
	return joined;
}
