/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/env.h"

#include "core/json/member.h"
#include "core/text/units.h"

enum { PORTS_MAX = 64, GID_NONE = -1 };

/* An InfiniBand or RoCE port that is up. */
struct port {
	const char *device, *number, *kind;
	double rate_gbit;
	int gid_v2;
};

struct ports {
	struct port up[PORTS_MAX];
	size_t count, total;
	struct text down; /* "mlx5_3:1 is DOWN" */
};

/* Adds a row of kind SET. If the table is full, returns the last row again. */
static struct env_row *add_row(struct env_rows *rows, const char *name, const char *source)
{
	struct env_row *r = &rows->row[rows->count < ENV_ROWS_MAX ? rows->count++ : ENV_ROWS_MAX - 1];

	*r = (struct env_row){.kind = ENV_SET, .source = source};
	text_copy(r->name, sizeof(r->name), name);
	return r;
}

/* If the user has set the variable, adds a row that says so and returns true. */
static bool is_set(struct env_rows *rows, const struct machine *m, const char *name)
{
	const char *value = json_member_text(json_object_get(machine_json(m), "environment"), name);
	struct env_row *r;

	if (!*value)
		return false;
	r = add_row(rows, name, "environment");
	r->kind = ENV_INHERITED;
	text_copy(r->value, sizeof(r->value), value);
	text_copy(r->reason, sizeof(r->reason), "set before the start; not changed");
	return true;
}

/* Physical cores of the usable logical CPUs, limited by the CPU quota. */
static unsigned cores_granted(const struct cpu *c)
{
	unsigned a_core = c->cores && c->threads > c->cores ? c->threads / c->cores : 1;
	unsigned cores = (c->usable + a_core - 1) / a_core;

	if (c->quota > 0 && c->quota < cores)
		cores = (unsigned)c->quota;
	return cores ? cores : 1;
}

static void threads(struct env_rows *rows, const struct machine *m, const struct env_setting *w)
{
	static const char name[] = "OMP_NUM_THREADS";
	const struct cpu *c = machine_cpu(m);
	unsigned cores = cores_granted(c), ranks = w->ranks ? w->ranks : 1;
	unsigned each = cores / ranks ? cores / ranks : 1;
	struct env_row *r;

	if (is_set(rows, m, name))
		return;
	r = add_row(rows, name, "cpu: cores, affinity, quota");
	snprintf(r->reason, sizeof(r->reason),
		 "%u physical %s for %u %s on this node; OpenMP would start %u %s", cores,
		 cores == 1 ? "core" : "cores", ranks, ranks == 1 ? "rank" : "ranks", c->usable,
		 ranks == 1 ? "threads" : "threads in each");
	if (each == c->usable)
		r->kind = ENV_DEFAULT;
	else
		snprintf(r->value, sizeof(r->value), "%u", each);
}

static void add_name(struct text *t, const char *name)
{
	if (t->size)
		text_add(t, ", ");
	text_add(t, name);
}

/* Counts the hardware interfaces that are up and appends their names to *names. */
static unsigned interfaces_up(const struct machine *m, struct text *names)
{
	const json_t *ports = json_object_get(machine_json(m), "ports"), *port;
	unsigned count = 0;
	size_t i;

	json_array_foreach((json_t *)ports, i, port)
	{
		const char *kind = json_member_text(port, "kind");

		if ((strcmp(kind, "ethernet") && strcmp(kind, "ipoib")) ||
		    strcmp(json_member_text(port, "state"), "up"))
			continue;
		add_name(names, json_member_text(port, "device"));
		count++;
	}
	return count;
}

static void socket_interface(struct env_rows *rows, const struct machine *m, const struct env_setting *w)
{
	static const char name[] = "NCCL_SOCKET_IFNAME";
	struct text up = {0};
	struct env_row *r;
	unsigned count;

	if (is_set(rows, m, name))
		return;
	count = interfaces_up(m, &up);
	r = add_row(rows, name, "ports, route to rank 0");
	r->kind = ENV_DEFAULT;
	if (w->nodes < 2) {
		snprintf(r->reason, sizeof(r->reason), "one node: NCCL can use any interface");
	} else if (count < 2) {
		snprintf(r->reason, sizeof(r->reason), "only one choice: %s is up",
			 count ? text_str(&up) : "no hardware interface");
	} else if (!w->route) {
		snprintf(r->reason, sizeof(r->reason),
			 "%u are up (%.160s), and the one that leads to rank 0 is not known", count,
			 text_str(&up));
	} else {
		r->kind = ENV_SET;
		snprintf(r->value, sizeof(r->value), "=%s", w->route);
		snprintf(r->reason, sizeof(r->reason), "%u are up (%.160s): the route to rank 0 uses %s",
			 count, text_str(&up), w->route);
	}
	text_release(&up);
}

static void find_ports(struct ports *p, const struct machine *m)
{
	const json_t *list = json_object_get(machine_json(m), "ports"), *port;
	size_t i;

	json_array_foreach((json_t *)list, i, port)
	{
		const json_t *gid = json_object_get(port, "gid_roce_v2");
		const char *kind = json_member_text(port, "kind"), *state = json_member_text(port, "state");

		if (strcmp(kind, "infiniband") && strcmp(kind, "roce"))
			continue;
		p->total++;
		if (strcmp(state, "ACTIVE")) {
			if (p->down.size)
				text_add(&p->down, ", ");
			text_addf(&p->down, "%s:%s is %s", json_member_text(port, "device"),
				  json_member_text(port, "port"), *state ? state : "in an unknown state");
		} else if (p->count < PORTS_MAX) {
			p->up[p->count++] = (struct port){
				.device = json_member_text(port, "device"),
				.number = json_member_text(port, "port"),
				.kind = kind,
				.rate_gbit = json_number_value(json_object_get(port, "rate_gbit")),
				.gid_v2 = gid ? (int)json_integer_value(gid) : GID_NONE};
		}
	}
}

static bool better(const struct port *a, const struct port *b)
{
	if (a->rate_gbit > b->rate_gbit || a->rate_gbit < b->rate_gbit)
		return a->rate_gbit > b->rate_gbit;
	return !strcmp(a->kind, "infiniband") && strcmp(b->kind, "infiniband");
}

static bool alike(const struct port *a, const struct port *b)
{
	return !strcmp(a->kind, b->kind) && !better(a, b) && !better(b, a);
}

/* The fastest port that is up; NULL: none. Collectives should use it and the ports like it. */
static const struct port *best_port(const struct ports *p)
{
	const struct port *best = p->count ? &p->up[0] : NULL;

	for (size_t i = 1; i < p->count; i++)
		if (better(&p->up[i], best))
			best = &p->up[i];
	return best;
}

static const struct port *odd_port(const struct ports *p, const struct port *best)
{
	for (size_t i = 0; i < p->count; i++)
		if (!alike(&p->up[i], best))
			return &p->up[i];
	return NULL;
}

static void list_alike(char *out, size_t size, const char *prefix, const struct ports *p,
		       const struct port *best)
{
	struct text t = {0};

	text_add(&t, prefix);
	for (size_t i = 0; i < p->count; i++)
		if (alike(&p->up[i], best))
			text_addf(&t, "%s%s:%s", t.size > strlen(prefix) ? "," : "", p->up[i].device,
				  p->up[i].number);
	text_copy(out, size, text_str(&t));
	text_release(&t);
}

/* NCCL skips ports that are not ACTIVE and takes all others, also slow ones and both link types. But one
 * connection can use one link type only. */
static void adapters(struct env_rows *rows, const struct machine *m, const struct ports *p)
{
	static const char name[] = "NCCL_IB_HCA";
	const struct port *best = best_port(p), *odd = best ? odd_port(p, best) : NULL;
	struct env_row *r;

	if (is_set(rows, m, name))
		return;
	r = add_row(rows, name, "ports");
	if (odd) {
		list_alike(r->value, sizeof(r->value), "=", p, best);
		snprintf(
			r->reason, sizeof(r->reason),
			"%s:%s (%s, %g Gbit/s) differs from the %s ports of %g Gbit/s: it would slow them or cannot "
			"connect to them",
			odd->device, odd->number, odd->kind, odd->rate_gbit, best->kind, best->rate_gbit);
		return;
	}
	r->kind = ENV_DEFAULT;
	if (!best)
		snprintf(r->reason, sizeof(r->reason), "no port is up, so NCCL uses TCP: %.240s",
			 text_str(&p->down));
	else if (p->down.size)
		snprintf(r->reason, sizeof(r->reason),
			 "%zu of %zu ports are up and alike (%s, %g Gbit/s); NCCL skips the others: "
			 "%.160s",
			 p->count, p->total, best->kind, best->rate_gbit, text_str(&p->down));
	else
		snprintf(r->reason, sizeof(r->reason), "all %zu ports are up and alike (%s, %g Gbit/s)",
			 p->count, best->kind, best->rate_gbit);
}

/* 2.20.5 as 22005; 0: not known. */
static unsigned nccl_version(const struct machine *m)
{
	const struct lib_found *lib = machine_lib(m, "nccl");
	unsigned major = 0, minor = 0, patch = 0;

	if (!lib || lib->status || sscanf(lib->version, "%3u.%3u.%3u", &major, &minor, &patch) < 2)
		return 0;
	return major * 10000 + minor * 100 + patch;
}

/* The GID index that all ports like `best` share; GID_NONE: they share none. */
static int shared_gid(const struct ports *p, const struct port *best)
{
	for (size_t i = 0; i < p->count; i++)
		if (alike(&p->up[i], best) && p->up[i].gid_v2 != best->gid_v2)
			return GID_NONE;
	return best->gid_v2;
}

/* Up to 2.20 NCCL uses GID 0, which is RoCE v1 with a link-local address. From 2.21 it finds the RoCE v2 GID
 * itself. */
static void gid_index(struct env_rows *rows, const struct machine *m, const struct ports *p)
{
	enum { FINDS_V2_ITSELF = 22100 };
	static const char name[] = "NCCL_IB_GID_INDEX";
	const struct port *best = best_port(p);
	unsigned version = nccl_version(m);
	struct env_row *r;
	int gid;

	if (!best || strcmp(best->kind, "roce") || is_set(rows, m, name))
		return;
	gid = shared_gid(p, best);
	r = add_row(rows, name, "ports: GIDs; NCCL's version");
	r->kind = ENV_DEFAULT;
	if (version >= FINDS_V2_ITSELF) {
		snprintf(r->reason, sizeof(r->reason),
			 "RoCE: NCCL %s finds the RoCE v2 GID itself, as it does from 2.21",
			 machine_lib(m, "nccl")->version);
	} else if (!version) {
		snprintf(r->reason, sizeof(r->reason),
			 "RoCE: no NCCL was found; its version decides whether this is needed");
	} else if (gid == GID_NONE) {
		snprintf(r->reason, sizeof(r->reason),
			 "RoCE: the ports have no common index of a RoCE v2 GID");
	} else {
		r->kind = ENV_SET;
		snprintf(r->value, sizeof(r->value), "%d", gid);
		snprintf(r->reason, sizeof(r->reason),
			 "RoCE: GID %d is RoCE v2 on all ports, and NCCL %s would use GID 0", gid,
			 machine_lib(m, "nccl")->version);
	}
}

/* UCX selects ports as NCCL does. */
static void ucx_devices(struct env_rows *rows, const struct machine *m, const struct ports *p)
{
	static const char name[] = "UCX_NET_DEVICES";
	const struct port *best = best_port(p);
	struct env_row *r;

	if (!best || !odd_port(p, best) || is_set(rows, m, name))
		return;
	r = add_row(rows, name, "ports");
	list_alike(r->value, sizeof(r->value), "", p, best);
	snprintf(r->reason, sizeof(r->reason), "MPI over UCX: the same ports as NCCL");
}

static void memlock(struct env_rows *rows, const struct machine *m)
{
	const json_t *limit = json_object_get(json_object_get(machine_json(m), "limits"), "memlock_bytes");
	struct env_row *r;

	if (!json_is_integer(limit))
		return;
	r = add_row(rows, "memlock", "limits, ports");
	r->kind = ENV_WARNING;
	snprintf(r->value, sizeof(r->value), "%lld KiB", (long long)json_integer_value(limit) / 1024);
	snprintf(
		r->reason, sizeof(r->reason),
		"InfiniBand and RoCE lock the memory they send from: "
		"raise the limit with ulimit -l unlimited, or with LimitMEMLOCK=infinity in the service of slurmd or sshd");
}

void env_derive(struct env_rows *rows, const struct machine *m, const struct env_setting *w)
{
	struct ports p = {0};

	*rows = (struct env_rows){0};
	threads(rows, m, w);
	socket_interface(rows, m, w);
	find_ports(&p, m);
	if (w->nodes > 1 && p.total) {
		adapters(rows, m, &p);
		gid_index(rows, m, &p);
		if (w->mpi)
			ucx_devices(rows, m, &p);
		if (p.count)
			memlock(rows, m);
	}
	is_set(rows, m, "NCCL_NVLS_ENABLE");
	text_release(&p.down);
}

bool env_wants_nccl(const struct machine *m, const struct env_setting *w)
{
	struct ports p = {0};
	const struct port *best;

	find_ports(&p, m);
	best = best_port(&p);
	text_release(&p.down);
	return w->nodes > 1 && best && !strcmp(best->kind, "roce");
}

void env_explain(struct text *t, const struct env_row *r)
{
#define X(name, text) text,
	static const char *const kinds[] = {ENV_KINDS(X)};
#undef X

	text_add(t, r->name);
	if (*r->value)
		text_addf(t, "=%s", r->value);
	text_addf(t, "%s%s%s: %s (%s)", r->kind == ENV_SET ? "" : " [",
		  r->kind == ENV_SET ? "" : kinds[r->kind], r->kind == ENV_SET ? "" : "]", r->reason,
		  r->source);
}
