/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment variables that ranks on this machine need. They are derived from the machine's facts, and each
 * has a reason. A variable is not set if its value would be the default, and the user's own values stay; the
 * rows of such variables say so. No side effects, except env_read and env_apply.
 */
#ifndef LAUNCH_ENV_H
#define LAUNCH_ENV_H
#include "core/text/text.h"
#include "machine/machine.h"

/* name, meaning */
/* clang-format off */
#define ENV_KINDS(X) \
	X(SET, "set")                             \
	X(INHERITED, "left as the user set it")   \
	X(DEFAULT, "not set") \
	X(WARNING, "no variable can fix it")
/* clang-format on */
#define X(name, text) ENV_##name,
enum env_kind { ENV_KINDS(X) };
#undef X

struct env_row {
	enum env_kind kind;
	char name[32];	  /* of the variable; of the limit in a WARNING */
	char value[1024]; /* "" in a DEFAULT */
	char reason[320];
	const char *source; /* the facts that it was derived from */
};

enum { ENV_ROWS_MAX = 8 };
struct env_rows {
	struct env_row row[ENV_ROWS_MAX];
	size_t count;
};

struct env_setting {
	unsigned ranks;	   /* on this node */
	unsigned nodes;	   /* of the team */
	const char *route; /* interface on the route to rank 0; NULL: not known */
	bool mpi;	   /* the ranks use MPI themselves */
};

/* Derives the rows, in a fixed order. Needs the facts of the host only; uses NCCL's version if `software` was
 * read. */
void env_derive(struct env_rows *rows, const struct machine *m, const struct env_setting *w);
/* Whether a row depends on NCCL's version: with several nodes and a RoCE port as the best one. */
bool env_wants_nccl(const struct machine *m, const struct env_setting *w);
/* env_derive for this machine or a recording; reads only the facts that it needs. `label`, unless NULL:
 * receives "this machine" or the recording's label. */
enum status env_read(struct env_rows *rows, const struct env_setting *w, const char *recording,
		     char label[160], const volatile sig_atomic_t *stop, const struct log *log,
		     struct error *err);
/* Sets the rows of kind SET in this process's environment; logs them and the warnings. */
void env_apply(const struct env_rows *rows, const struct log *log);
/* "OMP_NUM_THREADS=6: reason (source)", without a newline. */
void env_explain(struct text *t, const struct env_row *r);
#endif
