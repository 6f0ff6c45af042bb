/* SPDX-License-Identifier: Apache-2.0 */
/* assay info: what is here. The summary asks NVML at most: no CUDA context is made and nothing slow is
 * opened. */
#include "cmd/command.h"
#include "cmd/info.h"
#include "cmd/show.h"

struct info_opts {
	const char *what;
	bool json;
	const char *record;
	const char *machine;
	bool real_names;
};

enum { SECTIONS = 8 };

static const char *const choices[] = {"summary", "cpu",	    "memory",	"gpu", "links",
				      "fabric",	 "storage", "software", "all", NULL};

/* name, deepest layer it needs, printer, keys of the tree for --json */
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
		.choices = choices, .help = "the part to show"),
	OPT_ROW(struct info_opts, json, .name = "json", .help = "the facts as JSON instead of a table"),
	OPT_ROW(struct info_opts, record, .name = "record", .shown = "DIR",
		.help = "write the raw readings of this machine to a new folder, and show them"),
	OPT_ROW(struct info_opts, machine, .name = "machine", .shown = "DIR",
		.help = "show a recorded machine instead of this one"),
	OPT_ROW(struct info_opts, real_names, .name = "real-names",
		.help = "record serials, addresses and names as they are, not as pseudonyms"),
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
	return err->status == STATUS_BAD_INPUT ? EXIT_USAGE : EXIT_INCONCLUSIVE;
}

static int print_json(const struct machine *m, const struct section *s)
{
	const json_t *tree = machine_json(m);
	json_t *part = json_object();
	int code;

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
	code = show_json(part, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) ? EXIT_PASS : EXIT_INCONCLUSIVE;
	json_decref(part);
	return code;
}

/* Every text of it on one line, without control characters: a recording may be a stranger's. */
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

static enum status print_text(const struct machine *m, const struct section *s, struct error *err)
{
	json_t *facts = clean(machine_json(m));
	struct machine *shown = NULL;
	enum status st = machine_from_json(&shown, facts, err);
	struct text t = {0};

	if (!st && s) {
		s->print(&t, shown);
	} else if (!st) {
		for (size_t i = 0; i < SECTIONS; i++) {
			sections[i].print(&t, shown);
			text_add(&t, "\n");
		}
		info_unreadable(&t, shown);
	}
	if (!st)
		show_text(&t, UTF8_KEEP_NOTHING);
	text_release(&t);
	machine_free(shown);
	json_decref(facts);
	return st;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct info_opts *o = opts_;
	const struct section *s = section_of(o->what);
	const struct machine_scope scope = {.up_to = s ? s->layer : LAYER_SOFTWARE, .stop = c->stop};
	struct machine *m = NULL;
	struct error err = {0};
	int code;

	if (o->record && o->machine) {
		error_set(&err, STATUS_BAD_INPUT,
			  "--record and --machine: a recording is not recorded again");
		return complain(c, &err);
	}
	if (o->record) {
		if (machine_record(&m, o->record, o->real_names, c->stop, c->log, &err))
			return complain(c, &err);
		log_info(c->log, LOG_TOPIC_MACHINE, "recorded to %s%s", o->record,
			 o->real_names ? ", with real names" : ", names replaced by pseudonyms");
	} else if (machine_read_scope(&m, &scope, o->machine, c->log, &err)) {
		code = complain(c, &err);
		return o->machine ? EXIT_USAGE : code; /* a wrong folder was named */
	}
	code = EXIT_PASS;
	if (o->json)
		code = print_json(m, s);
	else if (print_text(m, s, &err))
		code = complain(c, &err);
	machine_free(m);
	return code;
}

const struct command command_info = {
	.name = "info",
	.summary = "inventory of this machine",
	.example = "assay info gpu",
	.help = "What the machine has: read from the system's files and, for GPUs, from the driver by a "
		"helper process. "
		"What cannot be read is said to be unreadable, and why. --record writes the raw readings, "
		"which --machine "
		"shows elsewhere.",
	.opts = {opts, sizeof(opts) / sizeof(opts[0]), sizeof(struct info_opts)},
	.run = run,
};
