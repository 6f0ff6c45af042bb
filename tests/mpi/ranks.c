/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank that drives the MPI plug-in directly; tests/mpi/plugin.sh starts several by mpirun.
 * usage: mpi_ranks all | subset | refuse | twice | again | die
 * "rank R: WORD .." lines; 1 where anything is not as it should be.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>
#include "vendor/mpi_plugin.h"

enum { COUNT = 37, RANKS = 16, ROOM = COUNT * RANKS };

struct one {
	struct mpi_plugin mpi;
	uint32_t rank, size;
	char text[MPI_PLUGIN_TEXT];
	unsigned cases, wrong;
};

/* What rank r holds at place i: small, so that sums are exact in all types, and never negative. */
static int given(unsigned r, unsigned i)
{
	return (int)((7 * r + 3 * i + r * i) % 7);
}

static void put(void *buffer, unsigned type, unsigned i, int value)
{
	switch (type) {
	case MPI_PLUGIN_F32:
		((float *)buffer)[i] = (float)value;
		return;
	case MPI_PLUGIN_F64:
		((double *)buffer)[i] = value;
		return;
	case MPI_PLUGIN_S8:
		((int8_t *)buffer)[i] = (int8_t)value;
		return;
	case MPI_PLUGIN_U8:
		((uint8_t *)buffer)[i] = (uint8_t)value;
		return;
	case MPI_PLUGIN_S32:
		((int32_t *)buffer)[i] = value;
		return;
	default:
		((int64_t *)buffer)[i] = value;
	}
}

static double take(const void *buffer, unsigned type, unsigned i)
{
	switch (type) {
	case MPI_PLUGIN_F32:
		return (double)((const float *)buffer)[i];
	case MPI_PLUGIN_F64:
		return ((const double *)buffer)[i];
	case MPI_PLUGIN_S8:
		return ((const int8_t *)buffer)[i];
	case MPI_PLUGIN_U8:
		return ((const uint8_t *)buffer)[i];
	case MPI_PLUGIN_S32:
		return ((const int32_t *)buffer)[i];
	default:
		return (double)((const int64_t *)buffer)[i];
	}
}

static int reduced(const struct one *o, unsigned op, unsigned i)
{
	int answer = given(0, i);

	for (unsigned r = 1; r < o->size; r++) {
		int g = given(r, i);

		answer = op == MPI_PLUGIN_SUM			  ? answer + g
			 : (op == MPI_PLUGIN_MIN) == (g < answer) ? g
								  : answer;
	}
	return answer;
}

/* Elements that a rank hands in, and what each is; element i of the block for rank b is given(rank, b, i). */
static unsigned handed(const struct one *o, unsigned what)
{
	return what == MPI_PLUGIN_REDUCE_SCATTER || what == MPI_PLUGIN_ALL_TO_ALL ? COUNT * o->size : COUNT;
}

/* Elements that a rank has afterwards; 0: its buffer is not looked at. */
static unsigned received(const struct one *o, const struct mpi_plugin_call *c)
{
	bool root = o->rank == c->root;

	switch (c->what) {
	case MPI_PLUGIN_ALL_GATHER:
	case MPI_PLUGIN_ALL_TO_ALL:
		return COUNT * o->size;
	case MPI_PLUGIN_REDUCE:
		return root ? COUNT : 0;
	case MPI_PLUGIN_BROADCAST:
		return root && !c->in_place ? 0 : COUNT;
	default:
		return COUNT;
	}
}

static int answer(const struct one *o, const struct mpi_plugin_call *c, unsigned i)
{
	switch (c->what) {
	case MPI_PLUGIN_ALL_REDUCE:
	case MPI_PLUGIN_REDUCE:
		return reduced(o, c->op, i);
	case MPI_PLUGIN_REDUCE_SCATTER:
		return reduced(o, c->op, o->rank * COUNT + i);
	case MPI_PLUGIN_ALL_GATHER:
		return given(i / COUNT, i % COUNT);
	case MPI_PLUGIN_ALL_TO_ALL:
		return given(i / COUNT, o->rank * COUNT + i % COUNT);
	case MPI_PLUGIN_BROADCAST:
		return given(c->root, i);
	default:
		return given((o->rank + o->size - 1) % o->size, i);
	}
}

static void try(struct one *o, void *comm, struct mpi_plugin_call *c)
{
	static double in[ROOM], out[ROOM];
	unsigned count = handed(o, c->what), look = received(o, c),
		 at = c->what == MPI_PLUGIN_ALL_GATHER && c->in_place ? o->rank * COUNT : 0;

	for (unsigned i = 0; i < ROOM; i++)
		put(out, c->type, i, 101); /* is nowhere an answer */
	for (unsigned i = 0; i < count; i++)
		put(c->in_place ? out : in, c->type, at + i, given(o->rank, i));
	c->send = in;
	c->receive = out;
	c->count = COUNT;
	o->cases++;
	if (o->mpi.collective(comm, c, o->text, sizeof(o->text))) {
		o->wrong++;
		printf("rank %u: failed %s\n", o->rank, o->text);
		return;
	}
	for (unsigned i = 0; i < look; i++) {
		double found = take(out, c->type, i);

		if (found == (double)answer(o, c, i))
			continue;
		o->wrong++;
		printf("rank %u: collective %u type %u op %u in place %u element %u is %g, not %d\n", o->rank,
		       c->what, c->type, c->op, c->in_place, i, found, answer(o, c, i));
		return;
	}
}

static void try_all(struct one *o, void *comm)
{
	struct mpi_plugin_call c = {0};

	for (c.what = 0; c.what < MPI_PLUGIN_WHATS; c.what++)
		for (c.type = 0; c.type < MPI_PLUGIN_TYPES; c.type++)
			for (c.op = 0; c.op < MPI_PLUGIN_OPS; c.op++)
				for (c.in_place = 0; c.in_place < (c.what == MPI_PLUGIN_SEND_RECEIVE ? 1 : 2);
				     c.in_place++)
					for (c.root = 0; c.root < o->size; c.root++)
						try(o, comm, &c);
	if (o->mpi.barrier(comm, o->text, sizeof(o->text)))
		o->wrong++;
	printf("rank %u: %u cases, %u wrong\n", o->rank, o->cases, o->wrong);
}

/* All but rank 1, in the opposite order. */
static void try_subset(struct one *o)
{
	struct one part = *o;
	uint32_t ranks[RANKS], count = 0;
	void *comm;

	for (unsigned r = o->size; r-- > 0;) {
		if (r == o->rank)
			part.rank = count;
		if (r != 1)
			ranks[count++] = r;
	}
	if (o->rank == 1)
		return;
	part.size = count;
	if (o->mpi.subset(&comm, ranks, count, o->text, sizeof(o->text))) {
		printf("rank %u: %s\n", o->rank, o->text);
		o->wrong++;
		return;
	}
	try_all(&part, comm);
	o->mpi.leave(comm);
	o->wrong += part.wrong;
}

/* -- what it refuses, and what ends -- */

static void refused(struct one *o, struct mpi_plugin_call c)
{
	double none = 0;

	c.send = c.receive = &none;
	*o->text = '\0';
	if (!o->mpi.collective(NULL, &c, o->text, sizeof(o->text)))
		o->wrong++;
	printf("rank %u: refused: %s\n", o->rank, o->text);
}

static void try_refused(struct one *o)
{
	refused(o, (struct mpi_plugin_call){.what = MPI_PLUGIN_WHATS, .count = 1});
	refused(o, (struct mpi_plugin_call){.type = MPI_PLUGIN_TYPES, .count = 1});
	refused(o, (struct mpi_plugin_call){.op = MPI_PLUGIN_OPS, .count = 1});
	refused(o, (struct mpi_plugin_call){.what = MPI_PLUGIN_SEND_RECEIVE, .in_place = 1, .count = 1});
	refused(o, (struct mpi_plugin_call){.count = (uint64_t)1 << 31});
	refused(o, (struct mpi_plugin_call){.what = MPI_PLUGIN_BROADCAST, .root = o->size, .count = 1});
}

static bool begins(struct one *o)
{
	if (!o->mpi.open(&o->rank, &o->size, o->text, sizeof(o->text)))
		return true;
	printf("rank %s: refused: %s\n", getenv("OMPI_COMM_WORLD_RANK"), o->text);
	return false;
}

/* Two processes of one rank slot, one after the other, as two workers of a supervisor would be. */
static int try_again(struct one *o)
{
	for (unsigned i = 0; i < 2; i++) {
		int status = 0;
		pid_t child = fork();

		if (!child) {
			bool begun = begins(o);

			if (begun)
				o->mpi.close();
			fflush(NULL);
			_exit(begun ? 0 : 1);
		}
		waitpid(child, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != (int)i)
			return 1;
	}
	return 0;
}

/* Rank 1 is killed where the others wait for it. */
static void die(struct one *o)
{
	struct mpi_plugin_call c = {.count = 1, .send = &(float){1}, .receive = &(float){0}};

	if (o->rank == 1)
		kill(getpid(), SIGKILL);
	if (o->mpi.collective(NULL, &c, o->text, sizeof(o->text)))
		printf("rank %u: %s\n", o->rank, o->text);
	fflush(NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	struct one o = {0};
	struct error err = {0};

	if (mpi_plugin_open(&o.mpi, NULL, &err)) {
		printf("%s, %s: %s\n", status_name(err.status), cause_name(err.cause), err.text);
		return 1;
	}
	if (o.mpi.version(o.text, sizeof(o.text)))
		return 1;
	printf("version %s\n", o.text);
	if (!strcmp(how, "again"))
		return try_again(&o);
	if (!begins(&o) || o.size > RANKS)
		return 1;
	if (!strcmp(how, "all"))
		try_all(&o, NULL);
	else if (!strcmp(how, "subset"))
		try_subset(&o);
	else if (!strcmp(how, "refuse"))
		try_refused(&o);
	else if (!strcmp(how, "die"))
		die(&o);
	else if (strcmp(how, "twice") != 0 || begins(&o))
		o.wrong++;
	o.mpi.close();
	return o.wrong ? 1 : 0;
}
