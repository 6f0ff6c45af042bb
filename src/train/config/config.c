/* SPDX-License-Identifier: Apache-2.0 */
#include "train/config/config.h"
#include <errno.h>
#include <limits.h>
#include <unistd.h>
#include "core/file/file.h"
#include "train/config/settings.h"

enum { CONFIG_BYTES_MAX = 16 << 20 };

/* Accepted names of other programs, per section. */
static const struct {
	const char *section, *name, *canonical;
} aliases[] = {
	{"model", "name", "name_or_path"},
	{"model", "path", "name_or_path"},
	{"model", "model_name_or_path", "name_or_path"},
	{"model", "tokenizer_name", "tokenizer"},
	{"lora", "lora_r", "r"},
	{"lora", "rank", "r"},
	{"lora", "lora_alpha", "alpha"},
	{"lora", "lora_dropout", "dropout"},
	{"lora", "lora_target", "target_modules"},
	{"training", "gradient_clipping", "max_grad_norm"},
	{"training", "epochs", "num_train_epochs"},
	{"training", "lr", "learning_rate"},
	{"training", "lr_scheduler", "lr_scheduler_type"},
	{"training", "tensor_parallel", "tensor_parallel_size"},
	{"training", "tensor_parallel_degree", "tensor_parallel_size"},
	{"training", "tensor_model_parallel_size", "tensor_parallel_size"},
	{"training", "tp_size", "tensor_parallel_size"},
	{"data", "train_file", "train"},
	{"data", "eval_file", "eval"},
	{"data", "validation_file", "eval"},
	{"data", "max_length", "max_seq_length"},
	{"data", "cutoff_len", "max_seq_length"},
};

static const char *canonical_name(const char *section, const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (!strcmp(aliases[i].section, section) && !strcmp(aliases[i].name, name))
			return aliases[i].canonical;
	return name;
}

/* Reads one word or a list of words. The words stay in the tree's memory. */
static enum status set_words(struct config *c, struct opt_words *out, const struct tree *t, const char *place,
			     struct error *err)
{
	size_t count = t->kind == TREE_LIST ? t->count : 1;
	const char **word;

	if (t->kind == TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s: expected a word or a list of words", place);
	word = calloc(count ? count : 1, sizeof(*word));
	if (!word)
		return error_errno(err, ENOMEM, "%s", place);
	c->words[c->word_lists++] = word;
	for (size_t i = 0; i < count; i++) {
		const struct tree *one = t->kind == TREE_LIST ? t->items[i] : t;

		if (one->kind != TREE_SCALAR || !*one->text)
			return error_set(err, STATUS_BAD_INPUT, "%s: expected a word", place);
		word[i] = one->text;
	}
	*out = (struct opt_words){word, count};
	return STATUS_OK;
}

static enum status set_one(struct config *c, const struct config_section *s, size_t row, const char *name,
			   const struct tree *t, struct error *err)
{
	const struct opt *o = &s->table.rows[row];
	void *values = (char *)c + s->offset;
	char place[PATH_MAX + 64];

	if (t->kind == TREE_NULL)
		return STATUS_OK;
	snprintf(place, sizeof(place), "%s:%d: %s", t->file, t->line, s->name);
	if (o->many) {
		snprintf(place, sizeof(place), "%s:%d: %s: %s", t->file, t->line, s->name, name);
		return set_words(c, (struct opt_words *)(void *)((char *)values + o->offset), t, place, err);
	}
	if (t->kind != TREE_SCALAR || !*t->text)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s: expected a value", place, name);
	if (t->quoted && o->kind != OPT_KIND_TEXT && !o->choices)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s: expected a number, true or false, not a quoted text", place, name);
	return opt_set(&s->table, values, o->name, t->text, place, err);
}

/* The section that has a setting of that name, or NULL. */
static const struct config_section *home_of(const char *name)
{
	for (size_t i = 0; i < config_section_count; i++) {
		const struct config_section *s = &config_sections[i];

		if (config_row(&s->table, canonical_name(s->name, name)) < s->table.count)
			return s;
	}
	return NULL;
}

/* Refuses an unknown setting: names the section that it belongs to, or else the nearest known name. */
static enum status refuse_setting(struct config *c, const struct config_section *s, const char *name,
				  const char *place, struct error *err)
{
	const struct config_section *home = home_of(name);

	if (home)
		return error_set(err, STATUS_BAD_INPUT, "%s: \"%.64s\" belongs under %s", place, name,
				 home->name);
	return opt_set(&s->table, (char *)c + s->offset, name, "", place, err);
}

/* Reads setting `i` of the map. */
static enum status read_setting(struct config *c, const struct config_section *s, const struct tree *map,
				size_t i, struct error *err)
{
	const char *name = canonical_name(s->name, map->keys[i]);
	const struct tree **given;
	char place[PATH_MAX + 64];
	size_t row = config_row(&s->table, name);

	snprintf(place, sizeof(place), "%s:%d: %s", map->file, map->items[i]->line, s->name);
	if (row == s->table.count)
		return refuse_setting(c, s, map->keys[i], place, err);
	given = &c->given[s - config_sections][row];
	if (*given)
		return error_set(err, STATUS_BAD_INPUT, "%s: %s is given twice, also as \"%s\"", place, name,
				 map->keys[i]);
	*given = map->items[i];
	return set_one(c, s, row, name, map->items[i], err);
}

static enum status read_section(struct config *c, const struct config_section *s, const struct tree *map,
				struct error *err)
{
	enum status st = STATUS_OK;

	if (map->kind == TREE_NULL)
		return STATUS_OK;
	if (map->kind == TREE_SCALAR && !strcmp(s->name, "model")) { /* "model: PATH" */
		size_t row = config_row(&s->table, "name_or_path");

		c->given[s - config_sections][row] = map;
		return set_one(c, s, row, "name_or_path", map, err);
	}
	if (map->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: expected a map of settings", map->file,
				 map->line, s->name);
	for (size_t i = 0; i < map->count && !st; i++)
		st = read_setting(c, s, map, i, err);
	return st;
}

static enum status defaults(struct config *c, struct error *err)
{
	enum status st = STATUS_OK;

	for (size_t i = 0; i < config_section_count && !st; i++)
		st = opt_defaults(&config_sections[i].table, (char *)c + config_sections[i].offset, err);
	return st;
}

static enum status check_sections(const struct tree *root, struct error *err)
{
	const char *names[16];
	size_t n = 0;

	for (size_t i = 0; i < config_section_count; i++)
		names[n++] = config_sections[i].name;
	names[n++] = "deepspeed";
	names[n] = NULL;
	for (size_t i = 0; root->kind == TREE_MAP && i < root->count; i++) {
		const struct config_section *home = home_of(root->keys[i]);

		if (home && !config_section(root->keys[i]))
			return error_set(err, STATUS_BAD_INPUT, "%s:%d: \"%.64s\" belongs under %s",
					 root->file, root->items[i]->line, root->keys[i], home->name);
	}
	return tree_check_keys(root, names, err);
}

static enum status read_deepspeed(struct config *c, const struct tree *t, struct error *err)
{
	struct error why = {0};

	if (!t || t->kind == TREE_NULL)
		return STATUS_OK;
	if (t->kind == TREE_MAP)
		return config_deepspeed(c, t, err);
	if (t->kind != TREE_SCALAR)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: deepspeed: expected a file name or a map",
				 t->file, t->line);
	if (tree_read(&c->tree[1], t->text, &why))
		return error_set_cause(err, STATUS_BAD_INPUT, why.cause, "%s:%d: deepspeed: %s", t->file,
				       t->line, why.text);
	return config_deepspeed(c, c->tree[1], err);
}

/* Paths are absolute, so that a run can be resumed from any folder. */
static enum status make_absolute(struct config *c, const char **path, struct error *err)
{
	char here[PATH_MAX], *whole = NULL;

	if (!*path || **path == '/')
		return STATUS_OK;
	if (c->path_count == sizeof(c->paths) / sizeof(c->paths[0]))
		return error_set(err, STATUS_BAD_INPUT, "%s: more than %zu files are named", *path,
				 c->path_count);
	if (!getcwd(here, sizeof(here)))
		return error_errno(err, errno, "the working directory");
	if (asprintf(&whole, "%s/%s", here, *path) < 0)
		return error_errno(err, ENOMEM, "%s", *path);
	*path = c->paths[c->path_count++] = whole;
	return STATUS_OK;
}

static enum status make_paths_absolute(struct config *c, struct error *err)
{
	const char **single[] = {&c->model.name_or_path, &c->model.tokenizer, &c->data.cache_dir,
				 &c->training.output_dir};
	struct opt_words *many[] = {&c->data.train, &c->data.eval};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]) && !st; i++)
		st = make_absolute(c, single[i], err);
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
		for (size_t k = 0; k < many[i]->count && !st; k++)
			st = make_absolute(c, (const char **)(uintptr_t)&many[i]->word[k], err);
	return st;
}

static enum status read_tree(struct config *c, struct error *err)
{
	const struct tree *root = c->tree[0];
	enum status st = check_sections(root, err);

	if (!st)
		st = defaults(c, err);
	for (size_t i = 0; i < config_section_count && !st; i++) {
		const struct config_section *s = &config_sections[i];
		const struct tree *map = tree_get(root, s->name);

		if (map)
			st = read_section(c, s, map, err);
	}
	c->has_lora = tree_get(root, "lora") != NULL;
	if (!st)
		st = read_deepspeed(c, tree_get(root, "deepspeed"), err);
	if (!st)
		st = config_check(c, err);
	if (!st)
		config_settle(c);
	return st ? st : make_paths_absolute(c, err);
}

enum status config_parse(struct config *c, const char *name, const char *text, size_t size, struct error *err)
{
	enum status st;

	*c = (struct config){0};
	st = tree_parse(&c->tree[0], name, text, size, err);
	if (!st)
		st = read_tree(c, err);
	if (st)
		config_release(c);
	return st;
}

enum status config_read(struct config *c, const char *path, struct error *err)
{
	enum status st;
	size_t size;
	char *text;

	*c = (struct config){0};
	st = file_read(&text, &size, path, CONFIG_BYTES_MAX, err);
	if (st)
		return st;
	st = config_parse(c, path, text, size, err);
	free(text);
	return st;
}

void config_release(struct config *c)
{
	for (size_t i = 0; i < c->word_lists; i++)
		free(c->words[i]);
	for (size_t i = 0; i < c->path_count; i++)
		free(c->paths[i]);
	tree_free(c->tree[0]);
	tree_free(c->tree[1]);
	text_release(&c->notes);
	*c = (struct config){0};
}

/* Adds a double-quoted YAML scalar. */
static void add_quoted(struct text *out, const char *s)
{
	text_add(out, "\"");
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			text_addf(out, "\\%c", *s);
		else if ((unsigned char)*s < ' ')
			text_addf(out, "\\x%02x", (unsigned char)*s);
		else
			text_add_bytes(out, s, 1);
	}
	text_add(out, "\"");
}

static void write_row(struct text *out, const struct opt *row, const void *values)
{
	const void *value = (const char *)values + row->offset;
	char text[64];

	if (row->many) {
		const struct opt_words *words = value;

		text_addf(out, "  %s: [", row->name);
		for (size_t i = 0; i < words->count; i++) {
			text_add(out, i ? ", " : "");
			add_quoted(out, words->word[i]);
		}
		text_add(out, "]\n");
	} else if (row->kind == OPT_KIND_TEXT) {
		const char *word = *(const char *const *)value;

		if (!word)
			return;
		text_addf(out, "  %s: ", row->name);
		add_quoted(out, word);
		text_add(out, "\n");
	} else {
		opt_value_text(row, values, text, sizeof(text));
		text_addf(out, "  %s: %s\n", row->name, text);
	}
}

/* Without `all`, only the settings that are part of a run's identity. */
static void write_rows(struct text *out, const struct config *c, bool all)
{
	for (size_t i = 0; i < config_section_count; i++) {
		const struct config_section *s = &config_sections[i];

		if (!strcmp(s->name, "lora") && !c->has_lora)
			continue;
		text_addf(out, "%s:\n", s->name);
		for (size_t k = 0; k < s->table.count; k++)
			if (all || !s->table.rows[k].no_key)
				write_row(out, &s->table.rows[k], (const char *)c + s->offset);
	}
}

void config_write(struct text *out, const struct config *c)
{
	write_rows(out, c, true);
}

static void hash_rows(char out[65], const struct config *c, bool all)
{
	struct text text = {0};

	write_rows(&text, c, all);
	file_sha256(out, text_str(&text), text.size);
	text_release(&text);
}

void config_hash(char out[65], const struct config *c)
{
	hash_rows(out, c, true);
}

void config_run_hash(char out[65], const struct config *c)
{
	hash_rows(out, c, false);
}

static bool may_be_path(const struct config_section *s, const struct opt *row)
{
	return row->kind == OPT_KIND_TEXT &&
	       (!row->many || (strcmp(s->name, "lora") && strcmp(s->name, "training")));
}

/* The value alone, as write_row writes it. NULL: no memory. */
static json_t *value_json(const struct opt *row, const void *values)
{
	struct text line = {0};
	json_t *out;

	write_row(&line, row, values);
	out = line.failed ? NULL
			  : json_stringn(text_str(&line) + strlen(row->name) + 4,
					 line.size - strlen(row->name) - 5);
	text_release(&line);
	return out;
}

json_t *config_run_settings(const struct config *c)
{
	json_t *out = json_object();

	for (size_t i = 0; i < config_section_count; i++) {
		const struct config_section *s = &config_sections[i];
		json_t *section = json_object();

		for (size_t k = 0; k < s->table.count; k++)
			if (!s->table.rows[k].no_key && !may_be_path(s, &s->table.rows[k]))
				json_object_set_new(
					section, s->table.rows[k].name,
					value_json(&s->table.rows[k], (const char *)c + s->offset));
		json_object_set_new(out, s->name, section);
	}
	return out;
}
