/* SPDX-License-Identifier: Apache-2.0 */
/* A rendering in progress, and the parts of the interpreter. Functions that return bool return false after
 * they have recorded an error. */
#ifndef TEXT_JINJA_RUN_H
#define TEXT_JINJA_RUN_H
#include "text/jinja/ast.h"
#include "text/jinja/value/string.h"

struct binding {
	int name;
	struct value value;
	struct binding *next;
};

/* Variables of the template's root, of a loop's turn or of a macro's call. */
struct frame {
	struct frame *parent;
	struct binding *first;
};

struct macro {
	const struct node *node;
	struct frame *frame; /* where it was defined */
};

struct loop {
	struct value *items;
	size_t count, index;  /* index counts from 0 */
	struct value changed; /* the last arguments of loop.changed */
	bool has_changed;
};

struct arguments {
	struct value *values;
	size_t count;
	struct value *named;
	const struct value *names; /* [named_count], strings */
	size_t named_count;
	const struct value *caller; /* of a call block */
};

enum { SLOTS = 6, NAMED_MAX = 64 }; /* parameters of a built-in function; named arguments of a call */

/* The arguments of a built-in function: positional or by name, NULL if not given. */
struct slots {
	const struct value *at[SLOTS];
};

typedef bool builtin_call(struct jinja_run *r, const struct value *self, const struct slots *slots,
			  struct value *out);

/* A function, filter or method. */
struct function {
	const char *name;
	const char *parameters; /* names, separated by spaces; "*": `any` is called */
	size_t least;		/* arguments that must be given */
	builtin_call *call;
	bool (*any)(struct jinja_run *r, const struct value *self, const struct arguments *a,
		    struct value *out);
};

struct method {
	const struct function *function;
	struct value self;
};

struct test {
	const char *name;
	size_t arguments; /* exact number */
	bool (*call)(struct jinja_run *r, const struct value *v, const struct value *argument, bool *out);
};

enum run_signal { RUN_ON, RUN_BREAK, RUN_CONTINUE };

struct jinja_run {
	const struct jinja *j;
	struct jinja_limits limits;
	struct jinja_arena arena;
	struct error *err;
	enum status status;
	const struct node *at; /* for messages */
	uint64_t steps;
	size_t written;
	int depth;
	enum run_signal signal;
	int64_t now;
	struct value *root; /* [names]: variables from outside */
	struct frame *frame;
	struct jinja_output *out;
};

bool run_fail(struct jinja_run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool run_fail_limit(struct jinja_run *r, const char *what);
/* For an operation on an undefined value. */
bool run_fail_undefined(struct jinja_run *r, const struct value *v);
bool run_charge(struct jinja_run *r, uint64_t steps);
bool run_charge_bytes(struct jinja_run *r, size_t bytes);
void *run_take(struct jinja_run *r, size_t size); /* NULL after an error */
bool run_enter(struct jinja_run *r);
static inline void run_leave(struct jinja_run *r)
{
	r->depth--;
}

/* evaluate.c */
bool evaluate(struct jinja_run *r, const struct node *n, struct value *out);
bool attribute_of(struct jinja_run *r, const struct value *object, const struct value *name,
		  struct value *out);
bool item_of(struct jinja_run *r, const struct value *object, const struct value *key, struct value *out);
/* An attribute by index or name, or several names joined by dots: "function.name". */
bool path_of(struct jinja_run *r, const struct value *object, const struct value *path, struct value *out);
struct value undefined_attribute(const struct value *object, const struct value *name);
/* operators.c */
bool operate(struct jinja_run *r, enum operator op, const struct value *a, const struct value *b,
	     struct value *out);
bool negate(struct jinja_run *r, const struct value *v, struct value *out);
bool slice_of(struct jinja_run *r, const struct value *v, const struct value bounds[3], struct value *out);
bool compare(struct jinja_run *r, enum operator op, const struct value *a, const struct value *b, bool *out);
/* execute.c */
bool execute(struct jinja_run *r, const struct node *n);
bool assign(struct jinja_run *r, const struct node *target, const struct value *v);
bool frame_set(struct jinja_run *r, struct frame *f, int name, const struct value *v);
bool frame_push(struct jinja_run *r, struct frame *parent, struct frame **before);
/* Runs statements and makes a string of what they print. */
bool capture(struct jinja_run *r, const struct node *body, struct value *out);
/* call.c */
bool call_value(struct jinja_run *r, const struct value *f, const struct arguments *a, struct value *out);
bool call_function(struct jinja_run *r, const struct function *f, const struct value *self,
		   const struct arguments *a, struct value *out);
bool arguments_evaluate(struct jinja_run *r, const struct node *call, struct arguments *out);
bool test_value(struct jinja_run *r, const struct test *t, const struct value *v, const struct arguments *a,
		bool *out);
/* write.c */
bool write_value(struct jinja_run *r, struct jinja_output *o, const struct value *v); /* str() */
bool write_repr(struct jinja_run *r, struct jinja_output *o, const struct value *v);
/* str() as a string; a string itself is not copied. */
bool string_of(struct jinja_run *r, const struct value *v, struct value *out);
struct json_form {
	int indent; /* -1: one line */
	struct value comma, colon;
	bool ascii, sorted;
};
bool write_json(struct jinja_run *r, struct jinja_output *o, const struct value *v,
		const struct json_form *f);

/* The tables of built-in names. NULL: none of this name. */
const struct function *filter_find(const char *name, size_t size);
const struct function *filter_text_find(const char *name, size_t size);
const struct test *test_find(const char *name, size_t size);
const struct function *global_find(const char *name);
const struct function *method_find(const struct value *self, const struct value *name);
/* Mutating methods of lists and dictionaries, which the sandbox forbids. */
bool method_is_forbidden(const struct value *self, const struct value *name);
const struct function *function_among(const struct function *table, size_t count, const char *name,
				      size_t size);
/* Arguments as numbers; an error if given and of another kind. */
bool slot_int(struct jinja_run *r, const struct slots *s, size_t i, int64_t *out);
bool slot_string(struct jinja_run *r, const struct slots *s, size_t i, const struct value **out);
static inline bool slot_truth(const struct slots *s, size_t i)
{
	return s->at[i] && value_truth(s->at[i]);
}
#endif
