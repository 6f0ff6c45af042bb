/* SPDX-License-Identifier: Apache-2.0 */
/* assay __team: joins a team from its environment or options, runs N empty cases, prints the team's shape
 * and the ending of each case as JSON, and leaves. It does what a team of real supervisors does, without
 * measurements. Tests of the connections between ranks use it. */
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/shared/show.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/process/process.h"
#include "core/text/text.h"
#include "journal/journal.h"
#include "team/control/control.h"
#include "team/transport/secret.h"

struct team_opts {
	const char *rank, *size, *master, *node, *interface, *secret, *build, *send;
	double join, quiet, limit, time, collect;
	uint32_t cases, fall, skip;
	uint64_t share;
};

static const struct opt rows[] = {
	OPT_ROW(struct team_opts, rank, .name = "rank", .help = "rank number of this process"),
	OPT_ROW(struct team_opts, size, .name = "size", .help = "number of processes"),
	OPT_ROW(struct team_opts, master, .name = "master", .help = "address of rank 0: HOST[:PORT]"),
	OPT_ROW(struct team_opts, node, .name = "node", .help = "name of this node"),
	OPT_ROW(struct team_opts, interface, .name = "interface",
		.help = "network interface to use: a name or an address"),
	OPT_ROW(struct team_opts, secret, .name = "team-secret", .help = "file with the team's secret"),
	OPT_ROW(struct team_opts, build, .name = "build",
		.help = "report this build id instead of the real one"),
	OPT_ROW(struct team_opts, send, .name = "send", .shown = "DIR",
		.help = "send the journal in DIR.rank-R to rank 0's DIR; one is written if there is none"),
	OPT_ROW(struct team_opts, collect, .name = "collect", .help = "time until all ranks must have sent",
		.preset = "20s", .unit = "s", .min = 0.01, .max = 3600),
	OPT_ROW(struct team_opts, join, .name = "join", .help = "time until all ranks must have joined",
		.preset = "60s", .unit = "s", .min = 0.01, .max = 3600),
	OPT_ROW(struct team_opts, quiet, .name = "silence",
		.help = "a rank that is silent for this time counts as dead", .preset = "15s", .unit = "s",
		.min = 0.1, .max = 3600),
	OPT_ROW(struct team_opts, limit, .name = "limit", .help = "time limit of each agreement",
		.preset = "15s", .unit = "s", .min = 0.01, .max = 3600),
	OPT_ROW(struct team_opts, time, .name = "time", .help = "duration of a case", .preset = "0s",
		.unit = "s", .max = 3600),
	OPT_ROW(struct team_opts, cases, .name = "cases", .help = "number of cases", .preset = "1",
		.max = 1e6),
	OPT_ROW(struct team_opts, fall, .name = "fall",
		.help = "simulate a crash of this rank's worker in this case (from 1)"),
	OPT_ROW(struct team_opts, skip, .name = "skip", .help = "this rank skips this case (from 1)"),
	OPT_ROW(struct team_opts, share, .name = "share",
		.help = "bytes that rank 0 sends to all before each case", .preset = "64B", .unit = "B",
		.max = 1 << 20),
};

static json_t *about_us(void)
{
	json_t *about = json_object();
	char *boot = NULL;
	size_t size = 0;

	if (!file_read(&boot, &size, "/proc/sys/kernel/random/boot_id", 64, NULL) && size)
		json_object_set_new(about, "boot", json_stringn(boot, size - 1));
	free(boot);
	return about;
}

static json_t *clock_json(const struct team_clock *k)
{
	return json_pack("{s:I,s:I}", "offset_ns", (json_int_t)k->offset_ns, "error_ns",
			 (json_int_t)k->error_ns);
}

static json_t *nodes_json(const struct team_shape *s)
{
	json_t *nodes = json_array();

	for (unsigned n = 0; s && n < s->nodes; n++) {
		const struct team_node *d = &s->node[n];

		json_array_append_new(nodes,
				      json_pack("{s:s,s:s,s:i,s:i,s:o,s:o}", "name", d->name, "host", d->host,
						"leader", (int)d->leader, "ranks", (int)d->ranks, "joined",
						clock_json(&d->joined), "parted", clock_json(&d->parted)));
	}
	return nodes;
}

static unsigned in_ms(double seconds)
{
	return (unsigned)(seconds * 1e3);
}

/* Runs an empty case: waits and listens to the other ranks. *fell: one of them failed. */
static enum status pass_time(struct control *c, const struct team_opts *o,
			     const struct command_context *context, bool *fell, struct error *err)
{
	uint64_t end = clock_now_ns(clock_monotonic()) + (uint64_t)(o->time * 1e9);
	struct pollfd set[CONTROL_RANKS];
	enum status st;

	for (;;) {
		st = control_attend(c, fell, err);
		if (st || *fell || clock_now_ns(clock_monotonic()) >= end || *context->stop)
			return st;
		poll(set, control_fds(c, set, sizeof(set) / sizeof(set[0])), 20);
	}
}

static enum status run_case(struct control *c, const struct team_opts *o,
			    const struct command_context *context, unsigned ordinal, json_t *cases,
			    struct error *err)
{
	enum ending mine = ENDING_DONE, worst = ENDING_DONE;
	struct error own = {0}, agreed = {0};
	unsigned generation = 0, rank = 0;
	bool fell = false;
	enum status st;
	char key[32];

	if (ordinal == o->skip)
		error_set_cause(&own, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED,
				"this rank was told to skip case %u", ordinal);
	snprintf(key, sizeof(key), "nothing case=%u", ordinal);
	st = control_begin(c, ordinal, key, &own, &agreed, &generation, in_ms(o->limit), err);
	if (!st && !agreed.status) {
		log_info(context->log, LOG_TOPIC_RUN, "case %u begins", ordinal);
		if (ordinal == o->fall)
			mine = ENDING_CRASHED;
		else
			st = pass_time(c, o, context, &fell, err);
		if (!st)
			st = control_end(c, fell ? ENDING_CANCELLED : mine, &worst, &rank, in_ms(o->limit),
					 err);
	}
	if (!st)
		json_array_append_new(cases, json_pack("{s:i,s:s,s:s,s:i,s:s,s:i}", "case", (int)ordinal,
						       "agreed", status_name(agreed.status), "text",
						       agreed.text, "generation", (int)generation, "ending",
						       ending_name(worst), "rank", (int)rank));
	return st;
}

static enum status share(struct control *c, const struct team_place *p, const struct team_opts *o,
			 struct error *err)
{
	unsigned char *bytes = calloc(1, o->share + 1);
	enum status st;

	if (!bytes)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "out of memory for %zu bytes to share", (size_t)o->share);
	memset(bytes, p->rank ? 0 : 'a', o->share);
	st = control_share(c, bytes, o->share, in_ms(o->limit), err);
	for (size_t i = 0; !st && i < o->share; i++)
		if (bytes[i] != 'a')
			st = error_set(err, STATUS_MISMATCH, "byte %zu of what rank 0 shared is %u", i,
				       bytes[i]);
	free(bytes);
	return st;
}

static enum status go_through(struct control *c, const struct team_place *p, const struct team_opts *o,
			      const struct command_context *context, json_t *cases, struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned i = 1; i <= o->cases && !st; i++) {
		st = control_line(c, 1, i, NULL, in_ms(o->limit), err);
		if (!st)
			st = share(c, p, o, err);
		if (!st)
			st = run_case(c, o, context, i, cases, err);
	}
	return st ? st : control_part(c, in_ms(o->limit), err);
}

/* Writes the journal of a run without results: which ranks joined, and when. */
static enum status write_journal(const char *dir, const struct control *c, unsigned rank, struct error *err)
{
	const struct team_shape *s = control_shape(c);
	json_t *open = json_pack("{s:i,s:s,s:o}", "schema", JOURNAL_SCHEMA, "program", ASSAY_VERSION, "team",
				 control_team_json(s, rank, false));
	json_t *close = json_pack("{s:s,s:o}", "ending", "done", "team", control_team_json(s, rank, true));
	struct journal *j = NULL;
	enum status st = journal_create(&j, dir, false, clock_monotonic(), err);

	if (!st)
		st = journal_append(j, JOURNAL_OPEN, open, err);
	if (!st)
		st = journal_append(j, JOURNAL_CLOSE, close, err);
	journal_close(&j);
	json_decref(open);
	json_decref(close);
	return st;
}

/* Sends the existing journal, also if the team ended early. */
static void send_journal(struct control *c, const struct team_place *p, const struct team_opts *o,
			 json_t *out, struct error *err)
{
	char dir[4096], path[4096 + 32];
	struct text missing = {0};
	struct error own = {0};

	snprintf(dir, sizeof(dir), p->rank ? "%.4000s.rank-%u" : "%.4000s", o->send, p->rank);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir);
	if (access(path, F_OK))
		write_journal(dir, c, p->rank, &own);
	if (!own.status)
		control_collect(c, dir, in_ms(o->collect), &missing, &own);
	json_object_set_new(out, "missing", json_string(text_str(&missing)));
	text_release(&missing);
	if (own.status && !err->status)
		*err = own;
}

static int tell(json_t *out, const struct error *err)
{
	int code = command_code(err->status);

	if (err->status) {
		json_object_set_new(out, "error", json_string(cause_name(err->cause)));
		json_object_set_new(out, "text", json_string(err->text));
		show_message("error: ", err->text);
	}
	if (!show_json(out, JSON_COMPACT))
		code = EXIT_INCONCLUSIVE;
	json_decref(out);
	return code;
}

static int run(const struct command_context *context, const void *opts)
{
	const struct team_opts *o = opts;
	const struct environment env = {.get = secret_environment};
	const struct team_place_options told = {o->rank, o->size, o->master, o->node};
	char build[PROCESS_BUILD] = "";
	json_t *about = about_us(), *cases = json_array(), *out = json_object();
	struct control_options c = {.env = env,
				    .secret_file = o->secret,
				    .interface = o->interface,
				    .about = about,
				    .join_ms = in_ms(o->join),
				    .quiet_ms = in_ms(o->quiet),
				    .stop = context->stop,
				    .clock = clock_monotonic(),
				    .log = context->log};
	struct control *control = NULL;
	struct error err = {0};
	uint64_t begun;

	process_build(build);
	c.build = o->build ? o->build : build;
	begun = clock_now_ns(c.clock);
	if (!team_place(&c.place, &told, &env, &err) && !control_join(&control, &c, &err)) {
		json_object_set_new(out, "join_ms",
				    json_integer((json_int_t)((clock_now_ns(c.clock) - begun) / 1000000)));
		go_through(control, &c.place, o, context, cases, &err);
		if (o->send)
			send_journal(control, &c.place, o, out, &err);
	}
	json_object_set_new(out, "rank", json_integer(c.place.rank));
	json_object_set_new(out, "size", json_integer(c.place.size));
	json_object_set_new(out, "from", json_string(c.place.from));
	json_object_set_new(out, "nodes", nodes_json(control_shape(control)));
	json_object_set_new(out, "cases", cases);
	json_decref(about);
	control_leave(&control);
	return tell(out, &err);
}

const struct command command_team = {
	.name = "__team",
	.summary = "run an empty team, for tests",
	.opts = {rows, sizeof(rows) / sizeof(rows[0]), sizeof(struct team_opts)},
	.hidden = true,
	.run = run,
};
