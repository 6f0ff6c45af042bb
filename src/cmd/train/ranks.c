/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/train/ranks.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/train/hang.h"
#include "cmd/train/train.h"
#include "core/math/random.h"
#include "core/process/place.h"
#include "core/json/member.h"
#include "core/text/text.h"
#include "journal/field.h"
#include "team/links/flight.h"

enum {
	START_MS = 120000,    /* for a step of the start: another rank may wait for a disk */
	LISTEN_MS = 20000,    /* for rank 0's worker to listen */
	END_MS = 86400000,    /* rank 0 may write a large model; a hung worker is ended by its supervisor */
	FELL_NS = 2000000000, /* for a worker that ends by itself with the same error */
	KILL_MS = 2000,
	ARGUMENTS_MOST = 64,
};

bool train_ranks_several(const struct training *t)
{
	return t->ranks.team.control != NULL;
}

bool train_ranks_leads(const struct training *t)
{
	return !t->ranks.team.place.rank;
}

static struct control *control_of(const struct training *t)
{
	return t->ranks.team.control;
}

/* -- joining -- */

/* Passes warnings and errors on, with the name of the rank. */
static void log_named(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	const struct train_ranks *r = arg;

	if (level >= LOG_WARN || level == LOG_DEBUG)
		log_line(r->through, level, topic, "%s: %s", r->name, line);
}

static void log_nothing(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	(void)arg, (void)level, (void)topic, (void)line;
}

static void take_name(struct training *t)
{
	struct train_ranks *r = &t->ranks;
	const struct team_shape *s = control_shape(control_of(t));
	const unsigned rank = r->team.place.rank;

	snprintf(r->name, sizeof(r->name), "rank %u on %.40s", rank, s->node[s->rank[rank].node].shown);
	if (!rank)
		return;
	r->through = t->c->log;
	r->log = (struct log){.sink = log_named, .arg = r, .topics = t->c->log->topics};
	r->context = *t->c;
	r->context.log = &r->log;
	r->context.terminal = false;
	t->c = &r->context;
}

static enum status join(struct training *t, struct error *err)
{
	static const char *const none[] = {NULL};
	const struct machine_scope scope = {.up_to = LAYER_NVML, .stop = t->c->stop, .libs = none};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, NULL, t->c->log, err);

	if (!st)
		st = running_team_join(&t->ranks.team, t->c, &t->ranks.joins, m, err);
	machine_free(m);
	if (!st)
		take_name(t);
	return st;
}

enum status train_ranks_join(struct training *t, struct error *err)
{
	struct train_ranks *r = &t->ranks;
	enum status st;

	r->joins = t->o->running;
	r->joins.plan = t->o->plan;
	r->joins.real_names = t->o->real_names;
	r->port = -1;
	st = running_team_place(&r->team, &r->joins, err);
	return st || r->team.place.size < 2 ? st : join(t, err);
}

static enum status count_gpus(const struct training *t, unsigned *count, struct error *err)
{
	static const char *const none[] = {NULL};
	const struct machine_scope scope = {.up_to = LAYER_NVML, .stop = t->c->stop, .libs = none};
	struct machine *m = NULL;
	enum status st = machine_read_scope(&m, &scope, NULL, t->c->log, err);

	*count = 0;
	for (unsigned i = 0; !st && i < machine_gpu_count(m); i++)
		*count += machine_gpu(m, i)->granted;
	machine_free(m);
	return st;
}

static enum status become_launch(const struct training *t, unsigned ranks, struct error *err)
{
	char number[16];
	const char *argv[8 + ARGUMENTS_MOST] = {"assay", "launch", "--how", "plain", "--ranks-per-node",
						number,	 "--"};

	snprintf(number, sizeof(number), "%u", ranks);
	if (t->c->argc > ARGUMENTS_MOST)
		return error_set(err, STATUS_BAD_INPUT, "more than %d arguments", ARGUMENTS_MOST);
	for (int i = 1; i < t->c->argc; i++)
		argv[6 + i] = t->c->argv[i];
	execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
	return error_errno(err, errno, "cannot start the ranks");
}

enum status train_ranks_spread(const struct training *t, struct error *err)
{
	const struct config_training *c = &t->config.training;
	unsigned count, wanted = c->gpus;
	enum status st;

	if (t->ranks.team.place.size > 1 || t->o->plan || c->gpus == 1 || c->device == CONFIG_DEVICE_CPU)
		return STATUS_OK;
	st = count_gpus(t, &count, err);
	if (!wanted)
		wanted = count;
	if (st || wanted < 2)
		return st;
	if (wanted > count)
		return error_set(
			err, STATUS_BAD_INPUT,
			"training: gpus: %u: this process may use %u GPU%s of this machine; for several "
			"nodes use assay launch",
			wanted, count, count == 1 ? "" : "s");
	return become_launch(t, wanted, err);
}

/* -- the start -- */

/* Puts the first rank's error in *err. *first: its rank. */
static enum status first_error(const struct training *t, const json_t *all, unsigned *first,
			       struct error *err)
{
	const struct team_shape *s = control_shape(control_of(t));
	const json_t *one;
	size_t i;

	json_array_foreach((json_t *)all, i, one)
	{
		struct child_end e = {0};

		child_end_take(&e, one);
		if (!e.status || i >= s->size)
			continue;
		*first = (unsigned)i;
		error_clear(err);
		return i ? error_set_cause(err, e.status, e.cause, "rank %zu on %.40s: %.400s", i,
					   s->node[s->rank[i].node].shown, e.text)
			 : error_set_cause(err, e.status, e.cause, "%s", e.text);
	}
	return STATUS_OK;
}

static json_t *said(enum status st, const struct error *err)
{
	return json_pack("{s:s, s:s, s:o}", "status", status_name(st), "cause",
			 st ? cause_name(err->cause) : "", "text", field_string(st ? err->text : ""));
}

enum status train_ranks_agree(struct training *t, const char *what, enum status mine, struct error *err)
{
	struct error lost = {0};
	unsigned first = 0;
	json_t *all = NULL;
	enum status st;

	if (!train_ranks_several(t))
		return mine;
	st = control_gather(control_of(t), what, said(mine, err), &all, START_MS, &lost);
	if (st) {
		if (!mine)
			*err = lost;
		return mine ? mine : st;
	}
	st = first_error(t, all, &first, err);
	json_decref(all);
	if (st && t->ranks.team.place.rank && t->ranks.team.place.rank != first)
		t->ranks.log.sink = log_nothing;
	if (st && t->ranks.team.place.rank && t->ranks.team.place.rank == first)
		t->ranks.log.sink = log_nothing; /* rank 0 names it */
	return st;
}

/* Gives rank 0's text to all. Owner: caller, free. */
static enum status share_text(struct training *t, char **out, struct error *err)
{
	const char *own = text_str(&t->written);
	uint64_t size = t->written.size;
	char *text;
	enum status st = control_share(control_of(t), &size, sizeof(size), START_MS, err);

	*out = NULL;
	if (st)
		return st;
	text = calloc(1, size + 1);
	if (!text)
		return error_errno(err, ENOMEM, "the configuration");
	if (train_ranks_leads(t))
		memcpy(text, own, size);
	st = control_share(control_of(t), text, size, START_MS, err);
	if (st)
		free(text);
	else
		*out = text;
	return st;
}

static enum status parse(struct training *t, const char *text, struct error *err)
{
	struct config_place place = t->config.place;

	config_release(&t->config);
	t->config.place = place;
	if (config_parse(&t->config, "the configuration of rank 0", text, strlen(text), err))
		return err->status;
	t->config.place = place;
	train_write_config(t);
	return STATUS_OK;
}

/* Length of a line without its last blanks. */
static int line_length(const char *line)
{
	int n = (int)strcspn(line, "\n");

	while (n && line[n - 1] == ' ')
		n--;
	return n < 150 ? n : 150;
}

/* Names the first line that differs. */
static enum status differs(const char *own, const char *first, struct error *err)
{
	while (*own && *first) {
		const size_t here = strcspn(own, "\n"), there = strcspn(first, "\n");

		if (here != there || strncmp(own, first, here) != 0) {
			own += strspn(own, " ");
			first += strspn(first, " ");
			return error_set(
				err, STATUS_BAD_INPUT,
				"its configuration is not that of rank 0: \"%.*s\" here, \"%.*s\" there",
				line_length(own), own, line_length(first), first);
		}
		own += here + (own[here] == '\n');
		first += there + (first[there] == '\n');
	}
	return STATUS_OK;
}

enum status train_ranks_compare_config(struct training *t, struct error *err)
{
	char *text = NULL;
	enum status st;

	if (!train_ranks_several(t))
		return STATUS_OK;
	st = share_text(t, &text, err);
	if (!st && t->o->resume && !train_ranks_leads(t))
		st = parse(t, text, err);
	else if (!st)
		st = differs(text_str(&t->written), text, err);
	free(text);
	return st;
}

enum status train_ranks_take_config(struct training *t, struct error *err)
{
	char *text = NULL;
	enum status st;

	if (!train_ranks_several(t))
		return STATUS_OK;
	st = share_text(t, &text, err);
	if (!st && !train_ranks_leads(t))
		st = parse(t, text, err);
	free(text);
	return st;
}

enum status train_ranks_compare_gpu(struct training *t, struct error *err)
{
	char first[sizeof(t->before.name)] = "";
	enum status st;

	if (!train_ranks_several(t))
		return STATUS_OK;
	if (train_ranks_leads(t) && *t->gpu)
		text_copy(first, sizeof(first), t->before.name);
	st = control_share(control_of(t), first, sizeof(first), START_MS, err);
	if (st || !*t->gpu || !*first || !strcmp(first, t->before.name))
		return st;
	return error_set(
		err, STATUS_BAD_INPUT,
		"its GPU is not of the type of rank 0's: %s here, %s there. Each step would wait for the "
		"slower one; use GPUs of one type (CUDA_VISIBLE_DEVICES)",
		t->before.name, first);
}

enum status train_ranks_dir(struct training *t, struct error *err)
{
	char path[PATH_MAX + 32];
	enum status st = running_team_dir(&t->ranks.team, t->dir, err);

	if (st || train_ranks_leads(t))
		return st;
	running_team_clear(t->dir); /* left by a run whose rank 0 was lost */
	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, t->dir);
	unlink(path);
	return STATUS_OK;
}

enum status train_ranks_share(struct training *t, bool *finished, bool *goes_on, struct error *err)
{
	uint8_t both[2] = {*finished, *goes_on};
	enum status st;

	if (!train_ranks_several(t))
		return STATUS_OK;
	st = control_share(control_of(t), both, sizeof(both), START_MS, err);
	*finished = both[0];
	*goes_on = both[1];
	return st;
}

const char *train_ranks_gpu(const struct training *t)
{
	const struct team_shape *s = control_shape(control_of(t));
	const struct team_rank *own = s ? &s->rank[t->ranks.team.place.rank] : NULL;

	return !own ? NULL : own->gpu_count ? own->pci[0] : "";
}

unsigned train_ranks_local(const struct training *t)
{
	const struct team_shape *s = control_shape(control_of(t));

	return s ? s->node[s->rank[t->ranks.team.place.rank].node].ranks : 1;
}

enum status train_ranks_kernels(struct training *t, char *name, size_t size, struct error *err)
{
	return train_ranks_several(t) ? control_share(control_of(t), name, size, START_MS, err) : STATUS_OK;
}

enum status train_ranks_begin(struct training *t, const struct error *mine, struct error *err)
{
	struct error agreed = {0};
	unsigned generation;
	char what[80];
	enum status st;

	if (!train_ranks_several(t))
		return mine->status ? error_set_cause(err, mine->status, mine->cause, "%s", mine->text)
				    : STATUS_OK;
	snprintf(what, sizeof(what), "train %s", t->hash);
	st = control_begin(control_of(t), 1, what, mine, &agreed, &generation, START_MS, err);
	t->ranks.begun = !st && !agreed.status;
	if (t->ranks.begun) /* the workers finish and save their step */
		control_bear_stops(control_of(t), 1);
	return st || !agreed.status ? st
				    : error_set_cause(err, agreed.status, agreed.cause, "%s", agreed.text);
}

/* -- the workers -- */

static json_t *place_json(const struct training *t)
{
	const struct train_ranks *r = &t->ranks;
	const struct team_shape *s = control_shape(control_of(t));
	const struct team_rank *own = &s->rank[r->team.place.rank];

	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s}", "rank", (int)r->team.place.rank, "size",
			 (int)s->size, "local_rank", (int)own->local_rank, "local_size",
			 (int)s->node[own->node].ranks, "node", (int)own->node, "nodes", (int)s->nodes,
			 "name", r->name, "secret", r->secret);
}

/* Takes the port and the nonce of rank 0's worker. */
static enum status take_door(struct training *t, json_t *mine, struct error *err)
{
	struct train_ranks *r = &t->ranks;
	const json_t *door;
	json_t *all = NULL;
	enum status st = control_gather(control_of(t), "the port of rank 0's worker", mine, &all,
					LISTEN_MS + START_MS, err);

	if (st)
		return st;
	door = json_array_get(all, 0);
	r->port = (int)json_integer_value(json_object_get(door, "port"));
	if (r->port < 1 || r->port > UINT16_MAX)
		st = error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST,
				     "the training process of rank 0 did not start");
	else if (r->team.place.rank)
		control_worker_secret(control_of(t), json_member_text(door, "nonce"), r->secret);
	json_decref(all);
	return st;
}

enum status train_ranks_place(struct training *t, json_t **place, struct error *err)
{
	struct train_ranks *r = &t->ranks;
	char host[80];
	enum status st = STATUS_OK;

	*place = NULL;
	if (!train_ranks_several(t))
		return STATUS_OK;
	if (!r->team.place.rank) {
		if (!random_hex(r->nonce, sizeof(r->nonce)))
			return error_errno(err, errno, "no random bytes for the training processes");
		control_worker_secret(control_of(t), r->nonce, r->secret);
	} else {
		st = take_door(t, json_object(), err);
	}
	if (st)
		return st;
	*place = place_json(t);
	control_rank_host(control_of(t), 0, host);
	if (*place && r->team.place.rank) {
		json_object_set_new(*place, "host", json_string(host));
		json_object_set_new(*place, "port", json_integer(r->port));
	}
	return *place ? STATUS_OK : error_errno(err, ENOMEM, "the place of this rank");
}

enum status train_ranks_announce(struct training *t, struct error *err)
{
	struct train_ranks *r = &t->ranks;

	if (!train_ranks_several(t) || r->team.place.rank)
		return STATUS_OK;
	return take_door(t, json_pack("{s:i, s:s}", "port", r->port < 0 ? 0 : r->port, "nonce", r->nonce),
			 err);
}

unsigned train_ranks_fds(const struct training *t, struct pollfd *out, unsigned room)
{
	return train_ranks_several(t) && !t->ranks.over ? control_fds(control_of(t), out, room) : 0;
}

void train_ranks_attend(struct training *t)
{
	struct train_ranks *r = &t->ranks;
	const uint64_t now_ns = clock_now_ns(clock_monotonic());
	bool fell = false;

	if (!train_ranks_several(t) || r->over)
		return;
	r->over = control_attend(control_of(t), &fell, &r->why) != STATUS_OK;
	if (fell && !r->fell) {
		r->fell_ns = now_ns;
		train_ranks_hung(t);
	}
	r->fell = r->fell || fell;
	if (r->over || (r->fell && now_ns - r->fell_ns > FELL_NS))
		process_stop(&t->worker, 0, KILL_MS);
}

/* -- the end -- */

void train_ranks_hung(struct training *t)
{
	struct train_ranks *r = &t->ranks;

	if (train_ranks_several(t) && !r->state)
		process_place_text(r->place, sizeof(r->place), "/proc", t->worker.pid, &r->state);
}

static bool ended_well(const struct training *t)
{
	return t->end.said && (!t->end.status || t->end.status == STATUS_CANCELLED);
}

/* Takes the end of the rank that ended the run, unless this rank knows a reason of its own. */
static void take_end(struct training *t, unsigned rank, const json_t *all)
{
	const struct team_shape *s = control_shape(control_of(t));
	struct child_end e = {0};
	bool hung;

	child_end_take(&e, json_array_get(all, rank));
	hung = json_is_true(json_object_get(json_array_get(all, rank), "hung"));
	if (e.cause == CAUSE_TIMED_OUT && train_hang_explain(t, all, hung)) {
		t->end.status = e.status;
		t->end.cause = e.cause;
		return;
	}
	if (rank == t->ranks.team.place.rank || rank >= s->size || !e.status)
		return;
	if (t->end.said && t->end.status && t->end.status != STATUS_CANCELLED)
		return;
	t->end.status = e.status;
	t->end.cause = e.cause;
	train_hang_other(t->end.text, sizeof(t->end.text), rank, s->node[s->rank[rank].node].shown, e.text,
			 hung);
}

static void lose(struct training *t, const struct error *why)
{
	struct train_ranks *r = &t->ranks;

	r->over = true;
	if (ended_well(t) && t->end.status != STATUS_CANCELLED)
		return;
	t->end.status = STATUS_NO_RESOURCE;
	t->end.cause = why->cause;
	snprintf(t->end.text, sizeof(t->end.text), "%.480s", why->text);
}

void train_ranks_end(struct training *t)
{
	struct train_ranks *r = &t->ranks;
	enum ending worst = ENDING_DONE;
	struct error err = {0}, own = {0};
	unsigned rank = 0;
	json_t *all = NULL, *mine;

	if (!r->begun)
		return;
	if (r->over) {
		lose(t, &r->why);
		return;
	}
	error_set_cause(&own, t->end.status, t->end.cause, "%s", t->end.text);
	if (control_end(control_of(t), ended_well(t) ? ENDING_DONE : ENDING_CRASHED, &worst, &rank, END_MS,
			&err)) {
		lose(t, &err);
		return;
	}
	if (worst == ENDING_DONE)
		return;
	mine = said(t->end.status, &own);
	json_object_set_new(mine, "hung", json_boolean(t->hung));
	train_hang_record(t, mine);
	if (control_gather(control_of(t), "how the training processes ended", mine, &all, START_MS, &err)) {
		lose(t, &err);
		return;
	}
	take_end(t, rank, all);
	json_decref(all);
}

void train_ranks_collect(struct training *t)
{
	struct train_ranks *r = &t->ranks;
	struct error err = {0};
	char path[PATH_MAX + 32];

	if (!train_ranks_several(t))
		return;
	if (!r->over && control_part(control_of(t), END_MS, &err)) {
		r->over = true;
		log_warn(t->c->log, LOG_TOPIC_RUN, "%s", err.text);
	}
	if (!running_team_collect(&r->team, t->c, t->dir) || train_ranks_leads(t))
		return;
	snprintf(path, sizeof(path), "%s/" TRAIN_CONFIG, t->dir);
	unlink(path);
	running_team_clear(t->dir);
}

int train_ranks_leave(struct training *t, int code)
{
	struct train_ranks *r = &t->ranks;
	const struct command_context *c = t->c;

	if (!train_ranks_several(t))
		return code;
	if (r->begun && r->team.place.rank)
		running_team_await(&r->team);
	code = running_team_code(&r->team, c, code);
	running_team_leave(&r->team);
	return code;
}
