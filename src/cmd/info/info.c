/* SPDX-License-Identifier: Apache-2.0 */
/* assay info: the inventory of the machine. The summary uses NVML at most: it creates no CUDA context and
 * opens nothing slow. */
#include "cmd/command.h"
#include "cmd/info/info.h"
#include "cmd/info/team.h"
#include "cmd/shared/show.h"

struct info_opts {
	const char *what;
	bool json;
	const char *record;
	const char *machine;
	bool real_names;
	bool alone;
	const char *out;
	struct running_opts running; /* how ranks join */
};

enum { SECTIONS = 8 };

static const char *const choices[] = {"summary", "cpu",	    "memory",	"gpu", "links",
				      "fabric",	 "storage", "software", "all", NULL};

/* Columns: name, deepest layer needed, printer, keys of the facts tree for --json. */
static const struct section {
	const char *name;
	enum layer layer;
	void (*print)(struct text *t, const struct machine *m);
	const char *keys[8];
} sections[SECTIONS] = {
	{"summary",
	 LAYER_NVML,
	 info_summary,
	 {"system", "limits", "cpu", "memory", "driver", "gpus", "storage", NULL}},
	{"cpu", LAYER_HOST, info_cpu, {"cpu", "limits", NULL}},
	{"memory", LAYER_HOST, info_memory, {"memory", NULL}},
	{"gpu", LAYER_CUDA, info_gpu, {"driver", "gpus", NULL}},
	{"links", LAYER_NVML, info_links, {"gpus", "gpu_topology", "nvswitches", NULL}},
	{"fabric", LAYER_NVML, info_fabric, {"ports", "nvswitches", "gpus", NULL}},
	{"storage", LAYER_HOST, info_storage, {"storage", NULL}},
	{"software", LAYER_SOFTWARE, info_software, {"system", "driver", "software", "environment", NULL}},
};

static const struct opt opts[] = {
	OPT_ROW(struct info_opts, what, .name = "what", .positional = true, .preset = "summary",
		.shown = "PART", .choices = choices, .help = "the part to show"),
	OPT_ROW(struct info_opts, json, .name = "json", .help = "the facts as JSON instead of a table"),
	OPT_ROW(struct info_opts, record, .name = "record", .shown = "DIR",
		.help = "write the raw readings of this machine to a new folder, and show them"),
	OPT_ROW(struct info_opts, machine, .name = "machine", .shown = "DIR",
		.help = "show a recorded machine instead of this one"),
	OPT_ROW(struct info_opts, real_names, .name = "real-names",
		.help = "with --record: keep serial numbers, addresses and names instead of pseudonyms"),
	OPT_ROW(struct info_opts, alone, .name = "alone",
		.help = "show this machine only; do not wait for other launched ranks"),
	OPT_ROW(struct info_opts, out, .name = "out", .shown = "DIR",
		.help = "the folder for results, whose disk is shown; default: this folder"),
	RUNNING_TEAM_ROWS(struct info_opts),
};

static const struct section *section_of(const char *name)
{
	for (size_t i = 0; i < SECTIONS; i++) {
		if (!strcmp(sections[i].name, name))
			return &sections[i];
	}
	return NULL;
}

static int complain(const struct command_context *c, const struct error *err)
{
	log_error(c->log, LOG_TOPIC_MACHINE, "%s", err->text);
	return command_code(err->status);
}

/* The part of a machine's facts that --json shows. The caller owns the result. */
static json_t *json_part(const json_t *tree, const struct section *s)
{
	json_t *part = json_object();

	if (!s) {
		json_object_update(part, (json_t *)tree);
	} else {
		static const char *const always[] = {"format", "live", "label", "unreadable", NULL};

		for (size_t i = 0; always[i]; i++)
			json_object_set(part, always[i], json_object_get(tree, always[i]));
		for (size_t i = 0; s->keys[i]; i++) {
			if (json_object_get(tree, s->keys[i]))
				json_object_set(part, s->keys[i], json_object_get(tree, s->keys[i]));
		}
	}
	return part;
}

/* Takes ownership of `j`. */
static int print_json(json_t *j)
{
	int code = show_json(j, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) ? EXIT_PASS : EXIT_INCONCLUSIVE;

	json_decref(j);
	return code;
}

/* A copy with every text on one line and without control characters: a recording may come from anybody. */
static json_t *clean(const json_t *value)
{
	json_t *out, *member;
	struct text t = {0};
	const char *key;
	size_t i;

	if (json_is_object(value)) {
		out = json_object();
		json_object_foreach((json_t *)value, key, member)
		{
			utf8_add_clean(&t, key, UTF8_KEEP_NOTHING);
			json_object_set_new(out, text_str(&t), clean(member));
			text_release(&t);
		}
	} else if (json_is_array(value)) {
		out = json_array();
		json_array_foreach((json_t *)value, i, member) json_array_append_new(out, clean(member));
	} else if (json_is_string(value)) {
		utf8_add_clean(&t, json_string_value(value), UTF8_KEEP_NOTHING);
		out = json_string(text_str(&t));
		text_release(&t);
	} else {
		out = json_incref((json_t *)value);
	}
	return out;
}

static enum status text_part(struct text *t, const json_t *tree, const struct section *s, struct error *err)
{
	json_t *facts = clean(tree);
	struct machine *shown = NULL;
	enum status st = machine_from_json(&shown, facts, err);

	if (!st && s) {
		s->print(t, shown);
	} else if (!st) {
		for (size_t i = 0; i < SECTIONS; i++) {
			sections[i].print(t, shown);
			text_add(t, "\n");
		}
		info_unreadable(t, shown);
	}
	machine_free(shown);
	json_decref(facts);
	return st;
}

/* The summary of several nodes has one row per node. Any other part is shown once per node. */
static enum status team_text(struct text *t, const struct info_team *all, const struct section *s,
			     struct error *err)
{
	const struct record *r = &all->judged.record;
	enum status st = info_team_nodes(t, all, err);

	for (size_t i = 0; i < r->node_count && s != &sections[0] && !st; i++) {
		text_addf(t, "\n== %s ==\n", r->node[i].name);
		if (r->node[i].machine)
			st = text_part(t, r->node[i].machine, s, err);
	}
	text_add(t, "\n");
	return st ? st : info_team_differences(t, all, err);
}

/* The "team" object of results.json, with the facts of each node. */
static json_t *team_json(const struct info_team *all, const struct section *s, struct error *err)
{
	const struct record *r = &all->judged.record;
	json_t *team = info_team_json(all, err), *nodes = json_object_get(team, "nodes");

	for (size_t i = 0; i < r->node_count && i < json_array_size(nodes); i++)
		if (r->node[i].machine)
			json_object_set_new(json_array_get(nodes, i), "facts",
					    json_part(r->node[i].machine, s));
	return team;
}

static enum status show_team(const struct info_team *all, const struct section *s, bool json, int *code,
			     struct error *err)
{
	struct text t = {0};
	json_t *team = json ? team_json(all, s, err) : NULL;
	enum status st = json ? err->status : team_text(&t, all, s, err);

	*code = EXIT_PASS;
	if (!st && json)
		*code = print_json(team);
	else if (!st)
		show_text(&t, UTF8_KEEP_NOTHING);
	if (!info_team_whole(all))
		*code = EXIT_INCONCLUSIVE;
	text_release(&t);
	return st;
}

/* Rank 0 shows all nodes. If the ranks do not join, each rank reports why, and rank 0 shows its own node. */
static enum status show(const struct command_context *c, struct info_team *all, const struct machine *m,
			const struct info_opts *o, int *code, struct error *err)
{
	const struct section *s = section_of(o->what);
	bool alone = all->team.place.size <= 1;
	enum status st = alone ? STATUS_OK : info_team_gather(all, c, &o->running, m, err), own = STATUS_OK;
	struct text t = {0};

	*code = EXIT_PASS;
	if (all->team.place.rank)
		return st;
	if (!alone && !st)
		return show_team(all, s, o->json, code, err);
	if (o->json)
		*code = print_json(json_part(machine_json(m), s));
	else
		own = text_part(&t, machine_json(m), s, st ? NULL : err);
	if (!own)
		show_text(&t, UTF8_KEEP_NOTHING);
	text_release(&t);
	return st ? st : own;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct info_opts *o = opts_;
	const struct section *s = section_of(o->what);
	const struct machine_scope scope = {
		.up_to = s ? s->layer : LAYER_SOFTWARE, .out = o->out, .stop = c->stop};
	const struct running_opts place = {.plan = o->record || o->machine || o->alone,
					   .node = o->running.node};
	struct info_team all = {0};
	struct machine *m = NULL;
	struct error err = {0};
	int code;

	if (o->record && o->machine) {
		error_set(&err, STATUS_BAD_INPUT,
			  "--record and --machine cannot be combined: a recording cannot be recorded again");
		return complain(c, &err);
	}
	if (o->out && (o->record || o->machine)) {
		error_set(&err, STATUS_BAD_INPUT,
			  "--out works only without --record and --machine: it is a folder of this machine");
		return complain(c, &err);
	}
	if (!o->machine && (o->record || scope.up_to >= LAYER_NVML))
		machine_tell_suspended(c->log);
	if (o->record) {
		if (machine_record(&m, o->record, o->real_names, c->stop, c->log, &err))
			return complain(c, &err);
		log_info(c->log, LOG_TOPIC_MACHINE, "recorded in %s%s", o->record,
			 o->real_names ? ", with real names" : ", names replaced by pseudonyms");
	} else if (machine_read_scope(&m, &scope, o->machine, c->log, &err)) {
		code = complain(c, &err);
		return o->machine ? EXIT_USAGE : code; /* the user named a wrong folder */
	}
	if (running_team_place(&all.team, &place, &err) || show(c, &all, m, o, &code, &err))
		code = complain(c, &err);
	code = running_team_code(&all.team, c, code);
	info_team_release(&all);
	machine_free(m);
	return code;
}

const struct command command_info = {
	.name = "info",
	.summary = "show the hardware and software of this machine",
	.example = "assay info gpu   # memory, clocks, power, ECC and links of each GPU",
	.help = "Reads the machine's inventory from system files and, for GPUs, from the driver through a "
		"helper process. For a value that cannot be read, it shows the reason. --record saves the "
		"raw readings; --machine shows them on another machine.\n\n"
		"On several ranks (assay launch -- info), rank 0 shows one row per node and the differences "
		"between the nodes. If a rank is missing, the exit code is 2.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct info_opts)},
	.run = run,
};
