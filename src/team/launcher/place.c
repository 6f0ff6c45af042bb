/* SPDX-License-Identifier: Apache-2.0 */
#include "team/launcher/place.h"

#include <ctype.h>
#include <stdbool.h>
#include "core/text/text.h"
#include "team/launcher/nodelist.h"

struct launcher {
	enum team_launcher id;
	const char *name, *rank, *size, *local_rank, *local_size, *host, *port, *job;
	unsigned port_more;
};

#define X(id_, name_, rank_, size_, local_rank_, local_size_, host_, port_, more_, job_)                     \
	{.id = TEAM_##id_,                                                                                   \
	 .name = name_,                                                                                      \
	 .rank = rank_,                                                                                      \
	 .size = size_,                                                                                      \
	 .local_rank = local_rank_,                                                                          \
	 .local_size = local_size_,                                                                          \
	 .host = host_,                                                                                      \
	 .port = port_,                                                                                      \
	 .port_more = more_,                                                                                 \
	 .job = job_},
static const struct launcher launchers[] = {TEAM_LAUNCHERS(X)};
#undef X
enum { LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]) };
/* Slurm's steps that srun did not start (batch, extern, interactive) have numbers from here on. */
static const unsigned long slurm_step_max = 0xfffffff0ul;
static const unsigned long rank_max = 1u << 20;

static const char *get(const struct environment *env, const char *name)
{
	const char *value = name ? env->get(env->arg, name) : NULL;

	return value && *value ? value : NULL;
}

/* Decimal digits only. `name` is the variable or the option. */
static enum status number(unsigned long *out, const char *name, const char *text, unsigned long most,
			  struct error *err)
{
	unsigned long value = 0;
	const char *at = text;

	for (; isdigit((unsigned char)*at) && value <= most; at++)
		value = value * 10 + (unsigned long)(*at - '0');
	if (*at || at == text || value > most)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s is \"%.40s\", which is not a whole number up to %lu", name, text, most);
	*out = value;
	return STATUS_OK;
}

static bool in_slurm_step(const struct environment *env)
{
	const char *step = get(env, "SLURM_STEP_ID");
	unsigned long id;

	return step && get(env, "SLURM_PROCID") &&
	       !number(&id, "SLURM_STEP_ID", step, slurm_step_max - 1, NULL);
}

static const char *size_name(const struct launcher *l, const struct environment *env)
{
	return l->id == TEAM_SLURM && !get(env, l->size) ? "SLURM_NTASKS" : l->size;
}

/* *found: this launcher set its rank and size. */
static enum status find(bool *found, unsigned long *rank, unsigned long *size, const struct launcher *l,
			const struct environment *env, struct error *err)
{
	const char *size_is = size_name(l, env);
	const char *rank_text = get(env, l->rank), *size_text = get(env, size_is);
	enum status st;

	*found = false;
	if (l->id == TEAM_SLURM ? !in_slurm_step(env) : !rank_text && !size_text)
		return STATUS_OK;
	if (!rank_text || !size_text)
		return error_set(err, STATUS_BAD_INPUT, "%s is set and %s is not; %s sets both",
				 rank_text ? l->rank : size_is, rank_text ? size_is : l->rank, l->name);
	st = number(rank, l->rank, rank_text, rank_max, err);
	if (!st)
		st = number(size, size_is, size_text, rank_max, err);
	if (!st && !*size)
		st = error_set(err, STATUS_BAD_INPUT, "%s is 0: a team needs at least one rank", size_is);
	if (!st && *rank >= *size)
		st = error_set(err, STATUS_BAD_INPUT, "%s is %lu, which is not below %s, %lu", l->rank, *rank,
			       size_is, *size);
	*found = !st;
	return st;
}

/* BAD_INPUT if a later launcher in the table gives another rank or size. Slurm is not compared: its rank may
 * be that of another launcher's process, often one for each node. */
static enum status agree(const struct team_place *p, const struct launcher *mine,
			 const struct environment *env, struct error *err)
{
	unsigned long rank, size;
	enum status st;
	bool found;

	for (const struct launcher *l = mine + 1; l < launchers + LAUNCHERS && l->id != TEAM_SLURM; l++) {
		st = find(&found, &rank, &size, l, env, err);
		if (st)
			return st;
		if (found && (rank != p->rank || size != p->size))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s and %s disagree: rank %u of %u by %s, rank %lu of %lu by %s; unset the variables of "
				"one of them",
				mine->name, l->name, p->rank, p->size, mine->rank, rank, size, l->rank);
	}
	return STATUS_OK;
}

static enum status local_place(struct team_place *p, const struct launcher *l, const struct environment *env,
			       struct error *err)
{
	const char *rank_text = get(env, l->local_rank), *size_text = get(env, l->local_size);
	unsigned long rank = 0, size = 0;
	enum status st = STATUS_OK;

	if (!rank_text || !size_text)
		return STATUS_OK;
	st = number(&rank, l->local_rank, rank_text, rank_max, err);
	if (!st)
		st = number(&size, l->local_size, size_text, p->size, err);
	if (!st && rank >= size)
		st = error_set(err, STATUS_BAD_INPUT, "%s is %lu, which is not below %s, %lu", l->local_rank,
			       rank, l->local_size, size);
	p->local_rank = (unsigned)rank;
	p->local_size = (unsigned)size;
	return st;
}

/* Slurm started this process itself: its rank and size are equal to those found. */
static bool is_slurms(const struct team_place *p, const struct environment *env)
{
	unsigned long rank, size;
	bool found;

	return !find(&found, &rank, &size, &launchers[LAUNCHERS - 1], env, NULL) && found &&
	       rank == p->rank && size == p->size;
}

static enum status slurm_local(struct team_place *p, const struct environment *env, struct error *err)
{
	const char *tasks = get(env, "SLURM_STEP_TASKS_PER_NODE"), *node = get(env, "SLURM_NODEID");
	const char *local = get(env, "SLURM_LOCALID");
	unsigned long node_id, rank;
	enum status st;

	if (!tasks || !node || !local || p->local_size)
		return STATUS_OK;
	st = number(&node_id, "SLURM_NODEID", node, rank_max, err);
	if (!st)
		st = number(&rank, "SLURM_LOCALID", local, rank_max, err);
	if (!st)
		st = nodelist_tasks(&p->local_size, tasks, (unsigned)node_id, err);
	if (!st && rank >= p->local_size)
		st = error_set(err, STATUS_BAD_INPUT, "SLURM_LOCALID is %lu on a node of %u tasks", rank,
			       p->local_size);
	if (!st)
		p->local_rank = (unsigned)rank;
	return st;
}

static enum status slurm_host(struct team_place *p, const struct environment *env, struct error *err)
{
	const char *list = get(env, "SLURM_STEP_NODELIST");
	struct nodelist nodes = {0};
	enum status st;

	if (!list || *p->host)
		return STATUS_OK;
	st = nodelist_parse(&nodes, list, NODELIST_MAX, err);
	if (!st)
		text_copy(p->host, sizeof(p->host), nodes.name[0]);
	nodelist_release(&nodes);
	return st;
}

/* Appends `text`, which becomes part of a file name. Keeps letters, digits and "-_."; other characters and a
 * leading dot become "_". */
static void job_add(struct team_place *p, const char *text)
{
	size_t used = strlen(p->job);

	if (used && used + 1 < sizeof(p->job))
		p->job[used++] = '.';
	for (; *text && used + 1 < sizeof(p->job); text++)
		p->job[used++] = isalnum((unsigned char)*text) || strchr("-_.", *text) ? *text : '_';
	p->job[used] = '\0';
	if (*p->job == '.')
		*p->job = '_';
}

/* Names the job by ASSAY_JOB, which any user may set, or by the launcher's own name of it. */
static void name_job(struct team_place *p, const struct launcher *l, const struct environment *env)
{
	const char *job = get(env, "ASSAY_JOB");
	char port[8];

	if (!job && l)
		job = get(env, l->job);
	if (!job && p->launcher == TEAM_OPENMPI)
		job = get(env, "OMPI_MCA_ess_base_jobid");
	if (!job && (p->launcher == TEAM_SLURM || p->launcher == TEAM_PMI) && get(env, "SLURM_JOB_ID")) {
		job_add(p, get(env, "SLURM_JOB_ID"));
		job = get(env, "SLURM_STEP_ID");
	}
	job_add(p, job ? job : "team");
	if (!p->port)
		return;
	snprintf(port, sizeof(port), "%u", p->port); /* distinguishes two jobs of one name on one host */
	job_add(p, port);
}

static enum status port_of(uint16_t *port, const char *name, const char *text, unsigned more,
			   struct error *err)
{
	unsigned long value;
	enum status st = number(&value, name, text, 65535 - more, err);

	if (!st && !value)
		st = error_set(err, STATUS_BAD_INPUT,
			       "%s is 0, which is not a port that ranks can connect to", name);
	if (!st)
		*port = (uint16_t)(value + more);
	return st;
}

/* HOST, HOST:PORT, ADDRESS of IPv6, [ADDRESS]:PORT */
static enum status master(struct team_place *p, const char *text, struct error *err)
{
	const char *host = text, *end = text + strlen(text), *colon = strchr(text, ':'), *port = NULL;

	if (*text == '[') {
		host = text + 1;
		end = strchr(text, ']');
		if (!end || (end[1] && end[1] != ':'))
			return error_set(err, STATUS_BAD_INPUT,
					 "--master \"%.100s\" is not written as [ADDRESS]:PORT", text);
		port = end[1] ? end + 2 : NULL;
	} else if (colon && !strchr(colon + 1, ':')) {
		end = colon;
		port = colon + 1;
	}
	if (end == host || (size_t)(end - host) >= sizeof(p->host))
		return error_set(err, STATUS_BAD_INPUT,
				 "--master \"%.100s\" has no host name, or one that is too long", text);
	memcpy(p->host, host, (size_t)(end - host));
	p->host[end - host] = '\0';
	return port ? port_of(&p->port, "the port of --master", port, 0, err) : STATUS_OK;
}

enum status team_place_check_master(const char *text, struct error *err)
{
	struct team_place p = {0};

	return master(&p, text, err);
}

/* The first address in mpirun's URI: "1234.0;tcp://10.0.0.1,192.168.1.1:38555". */
static void openmpi_host(struct team_place *p, const struct environment *env)
{
	const char *uri = get(env, "OMPI_MCA_orte_hnp_uri");
	const char *at = uri ? strstr(uri, "tcp://") : NULL;
	size_t size;

	if (!at)
		return;
	at += strlen("tcp://");
	size = strspn(at, "0123456789.");
	if (size && size < sizeof(p->host))
		snprintf(p->host, sizeof(p->host), "%.*s", (int)size, at);
}

static enum status find_host(struct team_place *p, const struct launcher *l,
			     const struct team_place_options *o, const struct environment *env,
			     struct error *err)
{
	const char *host = l ? get(env, l->host) : NULL, *port = l ? get(env, l->port) : NULL;
	const char *name = host ? l->host : "ASSAY_HOST", *own; /* ASSAY_HOST: any user may set it */
	enum status st = STATUS_OK;

	if (!host)
		host = get(env, name);
	if (host && snprintf(p->host, sizeof(p->host), "%s", host) >= (int)sizeof(p->host))
		return error_set(err, STATUS_BAD_INPUT, "%s is too long for a host name", name);
	if (port)
		st = port_of(&p->port, l->port, port, l->port_more, err);
	if (!st && o->master)
		st = master(p, o->master, err);
	if (st || *p->host)
		return st;
	if (p->local_size == p->size)
		text_copy(p->host, sizeof(p->host), "127.0.0.1");
	else if (p->launcher == TEAM_OPENMPI)
		openmpi_host(p, env);
	if (is_slurms(p, env))
		st = slurm_host(p, env, err);
	if (st || *p->host)
		return st;
	own = l && l->host && strcmp(l->host, "ASSAY_HOST") ? l->host : NULL;
	return error_set(
		err, STATUS_BAD_INPUT,
		"rank %u of %u by %s, and the host of rank 0 is not known: set %s%sASSAY_HOST, or start the ranks "
		"with assay launch --master HOST",
		p->rank, p->size, p->from, own ? own : "", own ? " or " : "");
}

static enum status told(struct team_place *p, const struct team_place_options *o, struct error *err)
{
	unsigned long rank, size;
	enum status st;

	if (!o->rank || !o->size)
		return error_set(err, STATUS_BAD_INPUT,
				 "--rank and --size must be given together, and only %s was given",
				 o->rank ? "--rank" : "--size");
	st = number(&rank, "--rank", o->rank, rank_max, err);
	if (!st)
		st = number(&size, "--size", o->size, rank_max, err);
	if (!st && rank >= size)
		st = error_set(err, STATUS_BAD_INPUT, "--rank is %lu, which is not below --size, %lu", rank,
			       size);
	if (st)
		return st;
	p->launcher = TEAM_TOLD;
	p->rank = (unsigned)rank;
	p->size = (unsigned)size;
	text_copy(p->from, sizeof(p->from), "--rank, --size");
	return STATUS_OK;
}

/* Finds the place in the environment. *mine: the launcher; NULL: none. */
static enum status left(struct team_place *p, const struct launcher **mine, const struct environment *env,
			struct error *err)
{
	unsigned long rank, size;
	bool found = false;
	enum status st;

	for (const struct launcher *l = launchers; l < launchers + LAUNCHERS && !found; l++) {
		st = find(&found, &rank, &size, l, env, err);
		if (st)
			return st;
		if (found)
			*mine = l;
	}
	if (!found)
		return STATUS_OK;
	p->launcher = (*mine)->id;
	p->rank = (unsigned)rank;
	p->size = (unsigned)size;
	snprintf(p->from, sizeof(p->from), "%s (%s, %s)", (*mine)->name, (*mine)->rank,
		 size_name(*mine, env));
	return agree(p, *mine, env, err);
}

enum status team_place(struct team_place *p, const struct team_place_options *o,
		       const struct environment *env, struct error *err)
{
	const char *node = o->node ? o->node : get(env, "SLURMD_NODENAME");
	const struct launcher *mine = NULL;
	enum status st;

	*p = (struct team_place){.size = 1, .local_size = 1};
	text_copy(p->node, sizeof(p->node), node ? node : "");
	if (node && strcmp(p->node, node) != 0) /* cut names that begin alike would become one node */
		return error_set(err, STATUS_BAD_INPUT,
				 "the node's name \"%.80s..\" has more than %zu characters", node,
				 sizeof(p->node) - 1);
	st = o->rank || o->size ? told(p, o, err) : left(p, &mine, env, err);
	if (st)
		return st;
	if (p->size == 1) {
		p->launcher = TEAM_ALONE;
		return STATUS_OK;
	}
	p->local_size = 0;
	if (mine)
		st = local_place(p, mine, env, err);
	if (!st && is_slurms(p, env))
		st = slurm_local(p, env, err);
	if (!st)
		st = find_host(p, mine, o, env, err);
	if (!st)
		name_job(p, mine, env);
	return st;
}
