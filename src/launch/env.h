/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks on this machine want in their environment, derived from its facts and explained; never a blind
 * list. Nothing is set that is the default, and nothing that the user set is touched: such rows say why.
 * Pure.
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
	X(WARNING, "no variable mends it")
/* clang-format on */
#define X(name, text) ENV_##name,
enum env_kind { ENV_KINDS(X) };
#undef X

struct env_row {
	enum env_kind kind;
	char name[32];	  /* of the variable; of the limit in a WARNING */
	char value[1024]; /* "" in a DEFAULT */
	char reason[320];
	const char *source; /* which facts said so */
};

enum { ENV_ROWS_MAX = 8 };
struct env_rows {
	struct env_row row[ENV_ROWS_MAX];
	size_t count;
};

struct env_wish {
	unsigned ranks;	   /* on this node */
	unsigned nodes;	   /* of the team */
	const char *route; /* interface by which the kernel reaches rank 0; NULL: not known */
	bool mpi;	   /* the ranks do MPI of their own */
};

/* Facts of the host layer do; NCCL's version is asked of `software` where it was read. Rows in a fixed order.
 */
void env_derive(struct env_rows *rows, const struct machine *m, const struct env_wish *w);
/* Whether a row depends on NCCL's version here: RoCE ports that are up, several nodes. */
bool env_wants_nccl(const struct machine *m, const struct env_wish *w);
/* env_derive of this machine, or of a recording; reads no more of it than it needs. *label, unless NULL:
 * "this machine" or the recording's. */
enum status env_read(struct env_rows *rows, const struct env_wish *w, const char *recording, char label[160],
		     const volatile sig_atomic_t *stop, const struct log *log, struct error *err);
/* Sets the rows that are SET in our own environment; tells them and the warnings. */
void env_apply(const struct env_rows *rows, const struct log *log);
/* "OMP_NUM_THREADS=6: reason (source)", without a newline. */
void env_explain(struct text *t, const struct env_row *r);
#endif
