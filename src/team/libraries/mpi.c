/* SPDX-License-Identifier: Apache-2.0 */
#include "team/libraries/mpi.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- start by an MPI launcher -- */

/* Number of ranks by the variables of the MPI launcher; 0: no MPI launcher started this process. */
static unsigned long launched(void)
{
	static const char *const marks[] = {"PMIX_RANK", "PMI_RANK", "PMI_FD"};
	static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
	bool marked = false;

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		marked = marked || getenv(marks[i]);
	for (size_t i = 0; marked && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const char *size = getenv(sizes[i]);

		if (size && *size)
			return strtoul(size, NULL, 10);
	}
	return 0;
}

static enum status can_begin(const struct team *t, struct error *err)
{
	unsigned long all = launched();

	if (!all)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"no MPI launcher started these ranks: use assay launch --how mpirun, mpirun, or "
			"srun --mpi=pmix");
	if (all != t->size)
		return error_set(
			err, STATUS_UNSUPPORTED,
			"MPI must start on all %lu launched ranks together, and this case has %u: run a case of "
			"target team before it",
			all, t->size);
	return STATUS_OK;
}

/* -- begin and end -- */

static enum status load(struct team *t, struct error *err)
{
	enum status st = can_begin(t, err);

	if (st)
		return st;
	t->mpi = calloc(1, sizeof(*t->mpi));
	if (!t->mpi)
		return error_errno(err, ENOMEM, "no memory for the state of MPI");
	st = mpi_plugin_open(&t->mpi->call, NULL, err);
	if (!st && t->mpi->call.version(t->mpi->version, sizeof(t->mpi->version)))
		st = error_set(err, STATUS_VENDOR, "%s", t->mpi->version);
	return st;
}

static enum status begin(struct team *t, struct error *err)
{
	char text[MPI_PLUGIN_TEXT] = "";
	struct team_mpi *m = t->mpi;

	team_at(t->board, TEAM_OP_INIT);
	if (m->call.open(&m->rank, &m->size, text, sizeof(text)))
		return error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL, "%s", text);
	if (m->size < t->size)
		return error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
			"%s has %u ranks, and %u were launched: check that this MPI started them", m->version,
			m->size, t->size);
	return STATUS_OK;
}

static void forget(struct team *t)
{
	if (t->mpi)
		free(t->mpi->member);
	free(t->mpi);
	t->mpi = NULL;
}

/* Finalizes MPI, together with all other ranks that initialized it. Does nothing without MPI. */
static void team_mpi_close(struct team *t)
{
	if (!t->mpi)
		return;
	if (t->mpi->comm)
		t->mpi->call.leave(t->mpi->comm);
	t->mpi->call.close();
	forget(t);
}

/* -- communicator of the team -- */

static bool is_all(const struct team_mpi *m, const uint32_t *ranks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (ranks[i] != i)
			return false;
	return count == m->size;
}

static enum status take_comm(struct team_mpi *m, uint32_t *ranks, unsigned count, struct error *err)
{
	char text[MPI_PLUGIN_TEXT] = "";

	if (m->comm)
		m->call.leave(m->comm);
	m->comm = NULL;
	free(m->member);
	m->member = ranks;
	m->members = count;
	if (is_all(m, ranks, count) || !m->call.subset(&m->comm, ranks, count, text, sizeof(text)))
		return STATUS_OK;
	m->members = 0;
	return error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL, "%s", text);
}

static enum status gather_members(struct team *t, struct error *err)
{
	struct team_mpi *m = t->mpi;
	uint32_t *ranks = calloc(t->size, sizeof(*ranks));
	enum status st =
		ranks ? STATUS_OK : error_errno(err, ENOMEM, "no memory for %u ranks of MPI", t->size);

	st = team_agree(t, st, err);
	if (!st)
		st = team_gather(t, &m->rank, sizeof(m->rank), ranks, err);
	if (st || (m->members == t->size && !memcmp(m->member, ranks, t->size * sizeof(*ranks)))) {
		free(ranks);
		return st;
	}
	return take_comm(m, ranks, t->size, err);
}

enum status team_mpi_join(struct team *t, struct error *err)
{
	bool fresh = !t->mpi;
	enum status st = team_agree(t, fresh ? load(t, err) : STATUS_OK, err);

	if (st && fresh)
		forget(t);
	if (st)
		return st;
	if (fresh)
		st = team_agree(t, begin(t, err), err);
	if (fresh && !t->close)
		t->close = team_mpi_close;
	if (!st)
		st = team_agree(t, gather_members(t, err), err);
	return st;
}

enum status team_mpi_call(struct team *t, const struct mpi_plugin_call *c, struct error *err)
{
	char text[MPI_PLUGIN_TEXT] = "";

	if (t->mpi->call.collective(t->mpi->comm, c, text, sizeof(text)))
		return error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL, "%s", text);
	return STATUS_OK;
}

enum status team_mpi_barrier(struct team *t, struct error *err)
{
	char text[MPI_PLUGIN_TEXT] = "";

	if (t->mpi->call.barrier(t->mpi->comm, text, sizeof(text)))
		return error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL, "%s", text);
	return STATUS_OK;
}

/* -- groups of ranks -- */

enum status team_mpi_group(struct team *t, const unsigned *ranks, unsigned count, void **group,
			   struct error *err)
{
	char text[MPI_PLUGIN_TEXT] = "";
	uint32_t *launched = calloc(count, sizeof(*launched));
	enum status st = STATUS_OK;

	if (!launched)
		return error_errno(err, ENOMEM, "no memory for %u ranks of MPI", count);
	for (unsigned i = 0; i < count; i++)
		launched[i] = t->mpi->member[ranks[i]];
	if (t->mpi->call.subset(group, launched, count, text, sizeof(text)))
		st = error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL, "%s", text);
	free(launched);
	return st;
}

enum status team_mpi_group_call(struct team *t, void *group, const struct mpi_plugin_call *c,
				struct error *err)
{
	char text[MPI_PLUGIN_TEXT] = "";

	if (t->mpi->call.collective(group, c, text, sizeof(text)))
		return error_set_cause(err, STATUS_VENDOR, CAUSE_VENDOR_CALL, "%s", text);
	return STATUS_OK;
}

void team_mpi_group_leave(struct team *t, void *group)
{
	t->mpi->call.leave(group);
}
