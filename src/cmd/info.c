/* SPDX-License-Identifier: Apache-2.0 */
/* assay info: what is here. The summary asks NVML at most: no CUDA context is made and nothing slow is
 * opened. */
#include "cmd/command.h"
#include "cmd/info.h"

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
	char *data;
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
	data = json_dumps(part, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	code = data && puts(data) >= 0 && !fflush(stdout) ? EXIT_PASS : EXIT_FAILED;
	free(data);
	json_decref(part);
	return code;
}

static int print_text(const struct machine *m, const struct section *s)
{
	struct text t = {0};
	int code;

	if (s) {
		s->print(&t, m);
	} else {
		for (size_t i = 0; i < SECTIONS; i++) {
			sections[i].print(&t, m);
			text_add(&t, "\n");
		}
		info_unreadable(&t, m);
	}
	code = fputs(text_str(&t), stdout) >= 0 && !fflush(stdout) ? EXIT_PASS : EXIT_FAILED;
	text_release(&t);
	return code;
}

static int run(const struct command_context *c, const void *opts_)
{
	const struct info_opts *o = opts_;
	const struct section *s = section_of(o->what);
	struct machine *m = NULL;
	struct error err = {0};
	int code;

	if (o->record && o->machine) {
		error_set(&err, STATUS_BAD_INPUT,
			  "--record and --machine: a recording is not recorded again");
		return complain(c, &err);
	}
	if (o->record) {
		if (machine_record(&m, o->record, o->real_names, c->log, &err))
			return complain(c, &err);
		log_info(c->log, LOG_TOPIC_MACHINE, "recorded to %s%s", o->record,
			 o->real_names ? ", with real names" : ", names replaced by pseudonyms");
	} else if (machine_read(&m, s ? s->layer : LAYER_SOFTWARE, o->machine, c->log, &err)) {
		code = complain(c, &err);
		return o->machine ? EXIT_USAGE : code; /* a wrong folder was named */
	}
	code = o->json ? print_json(m, s) : print_text(m, s);
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
