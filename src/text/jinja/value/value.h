/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a template: as in Python, except that only namespaces and loops can change. All belong to the
 * arena of their run or template. */
#ifndef TEXT_JINJA_VALUE_VALUE_H
#define TEXT_JINJA_VALUE_VALUE_H
#include "text/jinja/jinja.h"

/* Memory that is freed as a whole. A zeroed arena is empty; `max` limits its bytes. */
struct arena_block;
struct jinja_arena {
	struct arena_block *last;
	size_t used, max;
};
void *jinja_arena_take(struct jinja_arena *a, size_t size); /* zeroed; NULL: none left */
void jinja_arena_release(struct jinja_arena *a);

enum value_kind {
	VALUE_UNDEFINED,
	VALUE_NONE,
	VALUE_BOOL,
	VALUE_INT,
	VALUE_FLOAT,
	VALUE_STRING,
	VALUE_LIST,
	VALUE_DICT,
	VALUE_NAMESPACE,
	VALUE_MACRO,
	VALUE_FUNCTION,
	VALUE_METHOD,
	VALUE_LOOP,
};

struct value {
	enum value_kind kind;
	uint8_t source; /* STRING, if `sources` is NULL */
	union {
		bool truth;
		int64_t integer;
		double real;
		struct {
			const char *bytes; /* UTF-8, not NUL-terminated */
			size_t size;
			const uint8_t *sources; /* one per byte; NULL: all equal */
		} string;
		/* `of`: the kind of the object that lacks the attribute; NULL: the variable does not exist */
		struct {
			const char *name;
			size_t size;
			const char *of;
		} undefined;
		struct list *list;
		struct dict *dict; /* NAMESPACE too */
		const struct macro *macro;
		const struct function *function;
		const struct method *method;
		struct loop *loop;
	};
};

/* Python's types that look like lists; they differ in printing and in what may be done with them. */
enum list_form { FORM_LIST, FORM_TUPLE, FORM_RANGE, FORM_ITEMS, FORM_KEYS, FORM_VALUES, FORM_GENERATOR };

struct list {
	enum list_form form;
	size_t count;
	struct value *items; /* after list_load */
	const json_t *json;  /* not yet loaded */
	uint8_t source;	     /* of the texts in `json` */
	bool used;	     /* GENERATOR: it was iterated, and is empty now */
};

struct dict_entry {
	struct value key, value;
};

struct dict {
	size_t count, room;
	struct dict_entry *entries; /* after dict_load, in the order of insertion */
	const json_t *json;
	uint8_t source;
};

struct jinja_run;

static inline struct value value_none(void)
{
	return (struct value){.kind = VALUE_NONE};
}

static inline struct value value_bool(bool truth)
{
	return (struct value){.kind = VALUE_BOOL, .truth = truth};
}

static inline struct value value_int(int64_t integer)
{
	return (struct value){.kind = VALUE_INT, .integer = integer};
}

static inline struct value value_float(double real)
{
	return (struct value){.kind = VALUE_FLOAT, .real = real};
}

static inline struct value value_string(const char *bytes, size_t size, enum jinja_source source)
{
	return (struct value){.kind = VALUE_STRING, .source = (uint8_t)source, .string = {bytes, size, NULL}};
}

static inline bool value_is(const struct value *v, const char *text)
{
	return v->kind == VALUE_STRING && v->string.size == strlen(text) &&
	       !memcmp(v->string.bytes, text, v->string.size);
}

const char *value_type(const struct value *v); /* "string", "integer", .., for messages */
bool value_truth(const struct value *v);
/* Wraps JSON, which must outlive the run; lists and objects are loaded when they are first used. */
bool value_of_json(struct jinja_run *r, const json_t *json, enum jinja_source source, struct value *out);

/* These return false after an error. */
bool list_load(struct jinja_run *r, struct list *l);
bool list_create(struct jinja_run *r, enum list_form form, size_t count, struct value *out);
bool dict_load(struct jinja_run *r, struct dict *d);
bool dict_create(struct jinja_run *r, enum value_kind kind, size_t room, struct value *out);
/* The entry of a key; *out is NULL if there is none. */
bool dict_find(struct jinja_run *r, struct dict *d, const struct value *key, struct dict_entry **out);
bool dict_set(struct jinja_run *r, struct dict *d, const struct value *key, const struct value *value);
/* The items that a loop over the value gets. An error if the value cannot be iterated. */
bool value_items(struct jinja_run *r, const struct value *v, struct value **items, size_t *count);
bool value_equal(struct jinja_run *r, const struct value *a, const struct value *b, bool *out);
/* The order of two numbers, texts or lists; an error for others. */
bool value_order(struct jinja_run *r, const struct value *a, const struct value *b, int *out);
/* Whether `item` is in a container. */
bool value_contains(struct jinja_run *r, const struct value *container, const struct value *item, bool *out);
/* len(); an error for a value without a length. */
bool value_length(struct jinja_run *r, const struct value *v, size_t *out);
#endif
