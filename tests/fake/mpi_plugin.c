/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An MPI plug-in with a fault: hands every call to the real one (FAKE_MPI_REAL, its path), but for what
 * FAKE_MPI says, on rank FAKE_MPI_RANK (1):
 *
 *   border         it is of another assay
 *   element=N      element N of what it received gets another bit
 *   lost           what it gives counts as nothing: its share of a sum is missing
 *   hang=N, die=N  from its N-th call on it does not return, or it is killed
 */
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>
#include "vendor/mpi_plugin.h"

#define X(need, ret, field, symbol, params) ret symbol params;
MPI_PLUGIN_FUNCTIONS(X)
#undef X

static const unsigned type_bytes[MPI_PLUGIN_TYPES] = {4, 8, 1, 1, 4, 8};

static struct fake {
	void *library;
	uint32_t rank, ranks;
	uint64_t calls;
} fake;

static void *real(const char *symbol)
{
	const char *path = getenv("FAKE_MPI_REAL");
	void *found;

	if (!fake.library && path)
		fake.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	found = fake.library ? dlsym(fake.library, symbol) : NULL;
	if (!found) {
		fprintf(stderr, "the fake MPI plug-in has no real one: FAKE_MPI_REAL\n");
		abort();
	}
	return found;
}

/* The real plug-in's function, by the table's own type. */
#define CALL(field, symbol) ((__typeof__(((struct mpi_plugin *)0)->field))(uintptr_t)real(#symbol))

/* The number behind WORD= in FAKE_MPI, -1 where it says something else, or is meant for another rank. */
static long long told(const char *word)
{
	const char *what = getenv("FAKE_MPI"), *rank = getenv("FAKE_MPI_RANK");
	size_t n = strlen(word);

	if (!what || strncmp(what, word, n) || fake.rank != (rank ? strtoul(rank, NULL, 10) : 1))
		return -1;
	return what[n] == '=' ? strtoll(what + n + 1, NULL, 10) : 0;
}

unsigned assay_mpi_border(void)
{
	const char *what = getenv("FAKE_MPI");

	return MPI_PLUGIN_BORDER + (what && !strcmp(what, "border"));
}

int assay_mpi_version(char *text, uint32_t room)
{
	return CALL(version, assay_mpi_version)(text, room);
}

int assay_mpi_open(uint32_t *rank, uint32_t *size, char *text, uint32_t room)
{
	int failed = CALL(open, assay_mpi_open)(rank, size, text, room);

	fake.rank = *rank;
	fake.ranks = *size;
	return failed;
}

int assay_mpi_subset(void **comm, const uint32_t *ranks, uint32_t count, char *text, uint32_t room)
{
	return CALL(subset, assay_mpi_subset)(comm, ranks, count, text, room);
}

static void fall(void)
{
	fake.calls++;
	if (told("hang") > 0 && fake.calls >= (uint64_t)told("hang"))
		for (;;)
			pause();
	if (told("die") > 0 && fake.calls >= (uint64_t)told("die"))
		kill(getpid(), SIGKILL);
}

int assay_mpi_collective(void *comm, const struct mpi_plugin_call *call, char *text, uint32_t room)
{
	struct mpi_plugin_call c = *call;
	void *nothing = NULL;
	int failed;

	fall();
	if (told("lost") >= 0 && !c.in_place) {
		nothing = calloc(c.count * fake.ranks, type_bytes[c.type]); /* some send a part to each */
		c.send = nothing;
	}
	failed = CALL(collective, assay_mpi_collective)(comm, &c, text, room);
	free(nothing);
	if (!failed && told("element") >= 0)
		((unsigned char *)c.receive)[(uint64_t)told("element") * type_bytes[c.type]] ^= 1;
	return failed;
}

int assay_mpi_barrier(void *comm, char *text, uint32_t room)
{
	return CALL(barrier, assay_mpi_barrier)(comm, text, room);
}

void assay_mpi_leave(void *comm)
{
	CALL(leave, assay_mpi_leave)(comm);
}

void assay_mpi_close(void)
{
	CALL(close, assay_mpi_close)();
}
