/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/running/team.h"
#include <errno.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/process/process.h"
#include "journal/journal.h"
#include "judge/judge.h"
#include "launch/rank_exit.h"
#include "machine/link/network.h"
#include "team/transport/secret.h"

enum { SHARE_MS = 120000, REPORT_MS = 60000 }; /* rank 0 may wait for a disk */

static bool launched(const struct running_team *t)
{
	return t->place.size > 1;
}

enum status running_team_place(struct running_team *t, const struct running_opts *o, struct error *err)
{
	const struct environment env = {.get = secret_environment};
	const struct team_place_options told = {.node = o->node};

	if (o->plan || o->machine)
		return STATUS_OK;
	return team_place(&t->place, &told, &env, err);
}

enum status running_team_check(const struct running_team *t, const struct running_opts *o, struct error *err)
{
	if (!launched(t) || (!o->resume && !o->wait))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "--%s works only without a launcher, but this is rank %u of %u, started by %s",
			 o->resume ? "resume" : "wait", t->place.rank, t->place.size, t->place.from);
}

/* True if this rank's GPUs were assigned to it: by its launcher's variables, or because the machine has
 * more GPUs than it sees. Without a restriction, all ranks of a node see the same GPUs. */
static bool given(const struct machine *m, size_t seen)
{
	static const char *const giving[] = {"CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS"};

	for (size_t i = 0; i < sizeof(giving) / sizeof(giving[0]); i++)
		if (getenv(giving[i]))
			return true;
	return seen < machine_gpu_count(m);
}

/* The GPUs that this rank sees. Once all ranks' lists are known, one GPU is assigned to each:
 * docs/explanation/design/team.md, "GPU ownership". */
static json_t *seen_gpus(const struct machine *m)
{
	json_t *seen = json_array();

	for (unsigned i = 0; i < machine_gpu_count(m) && json_array_size(seen) < CONTROL_GPUS; i++)
		if (machine_gpu(m, i)->granted)
			json_array_append_new(seen, json_string(machine_gpu(m, i)->pci));
	return seen;
}

/* The facts that this rank sends to all others. */
static json_t *about(const struct running_team *t, const struct running_opts *o, const struct machine *m)
{
	json_t *facts = o->real_names ? json_incref((json_t *)machine_json(m)) : machine_json_shared(m);
	const json_t *host = json_object_get(json_object_get(facts, "system"), "hostname");
	const char *shown = o->real_names && *t->place.node ? t->place.node : json_string_value(host);
	json_t *gpus = t->looks_only ? json_array() : seen_gpus(m);
	json_t *j = json_pack("{s:b, s:o}", "given", given(m, json_array_size(gpus)), "gpus", gpus);
	struct network network;
	char *boot = NULL;
	size_t size = 0;

	network_of(&network, machine_json(m));
	if (j)
		json_object_set_new(
			j, "network",
			json_pack("{s:f, s:i}", "rate", network.rate, "gpus", (int)machine_gpu_count(m)));
	if (!o->real_names && (!shown || strlen(shown) >= 48))
		shown = "node"; /* the other ranks would see its real name */
	if (j && shown && strlen(shown) < 48)
		json_object_set_new(j, "shown", json_string(shown));
	if (j && !file_read(&boot, &size, "/proc/sys/kernel/random/boot_id", 64, NULL) && size)
		json_object_set_new(j, "boot", json_stringn(boot, size - 1));
	free(boot);
	json_decref(facts);
	return j;
}

/* Each rank that shares a GPU logs it; otherwise only rank 0's report would say it. */
static void warn_of_shared(const struct running_team *t, const struct command_context *c)
{
	const struct team_shape *s = control_shape(t->control);
	const struct team_rank *own = &s->rank[t->place.rank];

	for (unsigned i = 0; i < own->gpu_count; i++) {
		struct text names = {0};

		if (control_gpu_ranks(s, own->node, own->pci[i], NULL, &names) > 1)
			log_warn(c->log, LOG_TOPIC_RUN,
				 "ranks %s of %s share the GPU %s: nothing is measured on it",
				 text_str(&names), s->node[own->node].shown, own->pci[i]);
		text_release(&names);
	}
}

enum status running_team_join(struct running_team *t, const struct command_context *c,
			      const struct running_opts *o, const struct machine *m, struct error *err)
{
	char build[PROCESS_BUILD];
	struct control_options options = {
		.place = t->place,
		.env = {.get = secret_environment},
		.secret_file = o->team_secret,
		.interface = o->interface,
		.build = build,
		.join_ms = (unsigned)(o->join * 1e3),
		.stop = c->stop,
		.clock = clock_monotonic(),
		.log = c->log,
	};
	enum status st;

	if (!launched(t) || t->control)
		return STATUS_OK;
	process_build(build);
	t->about = about(t, o, m);
	options.about = t->about;
	if (!t->about)
		return error_errno(err, ENOMEM, "the facts of rank %u", t->place.rank);
	st = control_join(&t->control, &options, err);
	secret_forget_env();
	if (!st)
		warn_of_shared(t, c);
	return st;
}

enum status running_team_dir(struct running_team *t, char dir[PATH_MAX], struct error *err)
{
	char shared[PATH_MAX] = "";
	enum status st;

	if (!t->control)
		return STATUS_OK;
	text_copy(shared, sizeof(shared), dir);
	st = control_share(t->control, shared, sizeof(shared), SHARE_MS, err);
	shared[sizeof(shared) - 1] = '\0';
	if (!st && t->place.rank &&
	    snprintf(dir, PATH_MAX, "%.*s.rank-%u", PATH_MAX - 32, shared, t->place.rank) >= PATH_MAX)
		return error_set(err, STATUS_BAD_INPUT, "the path of rank 0's run directory is too long");
	return st;
}

bool running_team_collect(struct running_team *t, const struct command_context *c, const char *dir)
{
	struct text missing = {0};
	struct error err = {0};

	if (!t->control)
		return false;
	if (control_collect(t->control, dir, CONTROL_COLLECT_MS, &missing, &err))
		log_warn(c->log, LOG_TOPIC_RUN, "%s", err.text);
	if (missing.size)
		log_warn(c->log, LOG_TOPIC_RUN, "%s", text_str(&missing));
	text_release(&missing);
	return t->place.rank && !err.status;
}

void running_team_clear(const char *dir)
{
	static const char *const names[] = {JOURNAL_FILE, JOURNAL_FILE JOURNAL_CUT, JUDGE_SITE_FILE,
					    JUDGE_EXPECTATIONS_FILE};
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		unlink(path);
	}
	rmdir(dir);
}

/* Names a node. If two nodes have the same name, each gets its lowest rank appended. */
static void call(struct report_called *out, const struct team_shape *s, unsigned n)
{
	const struct team_node *node = &s->node[n];
	bool alone = true;

	for (unsigned i = 0; i < s->nodes; i++)
		alone = alone && (i == n || strcmp(s->node[i].name, node->name));
	text_copy(out->shown, sizeof(out->shown), node->shown);
	if (alone)
		text_copy(out->name, sizeof(out->name), node->name);
	else
		snprintf(out->name, sizeof(out->name), "%s-rank-%u", node->name, node->leader);
}

struct report_called *running_team_called(const struct running_team *t, size_t *count)
{
	const struct team_shape *s = control_shape(t->control);
	struct report_called *out = s ? calloc(s->nodes + 1, sizeof(*out)) : NULL;

	*count = 0;
	for (unsigned n = 0; out && n < s->nodes; n++)
		if (*s->node[n].name && strcmp(s->node[n].name, s->node[n].shown))
			call(&out[(*count)++], s, n);
	return out;
}

void running_team_await(struct running_team *t)
{
	control_await_zero(t->control, REPORT_MS);
}

int running_team_code(const struct running_team *t, const struct command_context *c, int code)
{
	return c->tells ? rank_exit_of(code, t->control && !t->place.rank) : code;
}

void running_team_leave(struct running_team *t)
{
	control_leave(&t->control);
	json_decref(t->about);
	t->about = NULL;
}
