/* SPDX-License-Identifier: Apache-2.0 */
/* Environments as launchers leave them, and as they must not be. */
#include "test.h"

#include "team_env.h"

static enum status place(struct team_place *p, const char *const *env, struct team_place_options o, struct error *err)
{
	struct environment e = team_env(env);

	error_clear(err);
	return team_place(p, &o, &e, err);
}
#define ENV(...) (const char *const[]) { __VA_ARGS__, NULL }
#define NOTHING (struct team_place_options){0}

static void found(const char *const *env, enum team_launcher by, unsigned rank, unsigned size, const char *host, unsigned port)
{
	struct error err = {0};
	struct team_place p;

	if (place(&p, env, NOTHING, &err))
		fail_msg("%s", err.text);
	assert_int_equal(p.launcher, by);
	assert_int_equal(p.rank, rank);
	assert_int_equal(p.size, size);
	assert_string_equal(p.host, host);
	assert_int_equal(p.port, port);
}

static void test_place__each_launcher(void **state)
{
	(void)state;
	found(ENV("PATH=/bin"), TEAM_ALONE, 0, 1, "", 0);
	found(ENV("ASSAY_RANK=1", "ASSAY_SIZE=4", "ASSAY_HOST=node-a", "ASSAY_PORT=4000"), TEAM_ASSAY, 1, 4, "node-a", 4000);
	found(ENV("RANK=3", "WORLD_SIZE=8", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500"),
	      TEAM_TORCHRUN, 3, 8, "10.0.0.1", 29501);
	found(ENV("OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=2",
		  "OMPI_COMM_WORLD_LOCAL_SIZE=4"),
	      TEAM_OPENMPI, 2, 4, "127.0.0.1", 0);
	found(ENV("OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=0",
		  "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_MCA_orte_hnp_uri=77.0;tcp://10.0.0.1,192.168.1.1:38555"),
	      TEAM_OPENMPI, 2, 4, "10.0.0.1", 0);
	found(ENV("PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2"), TEAM_PMI, 0, 2, "127.0.0.1", 0);
	found(ENV("SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=7", "SLURM_LOCALID=1",
		  "SLURM_NODEID=2", "SLURM_STEP_TASKS_PER_NODE=2(x3),1", "SLURM_STEP_NODELIST=gpu[01-04]"),
	      TEAM_SLURM, 5, 7, "gpu01", 0);
	found(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_LOCALID=1", "SLURM_NODEID=0",
		  "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_STEP_NODELIST=gpu01"),
	      TEAM_SLURM, 1, 2, "127.0.0.1", 0);
}

static void test_place__no_team_where_there_is_one_rank(void **state)
{
	(void)state;
	found(ENV("RANK=0", "WORLD_SIZE=1"), TEAM_ALONE, 0, 1, "", 0);
	/* sbatch without srun, and steps that are none */
	found(ENV("SLURM_JOB_ID=7", "SLURM_PROCID=0", "SLURM_NTASKS=8"), TEAM_ALONE, 0, 1, "", 0);
	found(ENV("SLURM_STEP_ID=batch", "SLURM_PROCID=0", "SLURM_NTASKS=8"), TEAM_ALONE, 0, 1, "", 0);
	found(ENV("SLURM_STEP_ID=4294967291", "SLURM_PROCID=0", "SLURM_NTASKS=8"), TEAM_ALONE, 0, 1, "", 0);
	/* A host alone in a profile makes no team. */
	found(ENV("MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500"), TEAM_ALONE, 0, 1, "", 0);
}

static void test_place__the_user_may_say_where_rank_0_is(void **state)
{
	(void)state;
	found(ENV("OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "ASSAY_HOST=gpu1"), TEAM_OPENMPI, 1, 4, "gpu1", 0);
	found(ENV("PMI_RANK=1", "PMI_SIZE=4", "ASSAY_HOST=gpu1"), TEAM_PMI, 1, 4, "gpu1", 0);
	/* What the launcher itself says counts. */
	found(ENV("RANK=1", "WORLD_SIZE=4", "MASTER_ADDR=gpu2", "MASTER_PORT=1000", "ASSAY_HOST=gpu1"), TEAM_TORCHRUN, 1, 4,
	      "gpu2", 1001);
}

static void test_place__who_started_whom(void **state)
{
	(void)state;
	/* srun starts torchrun once a node: Slurm's rank is the node's. */
	found(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2", "RANK=5", "WORLD_SIZE=8", "MASTER_ADDR=n1",
		  "MASTER_PORT=1000"),
	      TEAM_TORCHRUN, 5, 8, "n1", 1001);
	/* srun --mpi=pmi2: the same rank, and Slurm knows the host. */
	found(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=n[3-4]", "PMI_RANK=1",
		  "PMI_SIZE=2"),
	      TEAM_PMI, 1, 2, "n3", 0);
	/* mpirun in an allocation of Slurm's, one rank a node of its own daemons */
	found(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_NTASKS=1", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2",
		  "OMPI_COMM_WORLD_LOCAL_RANK=1", "OMPI_COMM_WORLD_LOCAL_SIZE=2"),
	      TEAM_OPENMPI, 1, 2, "127.0.0.1", 0);
}

static void refused(const char *const *env, struct team_place_options o, const char *one, const char *other)
{
	struct error err = {0};
	struct team_place p;

	assert_int_equal(place(&p, env, o, &err), STATUS_BAD_INPUT);
	if (!strstr(err.text, one) || !strstr(err.text, other))
		fail_msg("%s", err.text);
}

static void test_place__refused_with_the_variable(void **state)
{
	(void)state;
	refused(ENV("RANK=0"), NOTHING, "RANK", "WORLD_SIZE");
	refused(ENV("RANK=0", "WORLD_SIZE=0"), NOTHING, "WORLD_SIZE is 0", "at least one rank");
	refused(ENV("WORLD_SIZE=2"), NOTHING, "WORLD_SIZE is set", "RANK is not");
	refused(ENV("RANK=0", "WORLD_SIZE=2"), NOTHING, "MASTER_ADDR", "--master");
	refused(ENV("RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=a"), NOTHING, "RANK is 2", "WORLD_SIZE, 2");
	refused(ENV("RANK=-1", "WORLD_SIZE=2", "MASTER_ADDR=a"), NOTHING, "RANK", "-1");
	refused(ENV("RANK=1x", "WORLD_SIZE=2", "MASTER_ADDR=a"), NOTHING, "RANK", "1x");
	refused(ENV("RANK=0", "WORLD_SIZE=99999999999999999999", "MASTER_ADDR=a"), NOTHING, "WORLD_SIZE", "9999");
	refused(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65535"), NOTHING, "MASTER_PORT", "65535");
	refused(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=0x5"), NOTHING, "MASTER_PORT", "0x5");
	refused(ENV("RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=a", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"), NOTHING,
		"torchrun and Open MPI disagree", "OMPI_COMM_WORLD_RANK");
	refused(ENV("ASSAY_RANK=0", "ASSAY_SIZE=4", "ASSAY_HOST=a", "RANK=1", "WORLD_SIZE=4"), NOTHING, "assay launch", "RANK");
	refused(ENV("RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=a", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=2"), NOTHING, "LOCAL_RANK is 2",
		"LOCAL_WORLD_SIZE");
	refused(ENV("RANK=0", "WORLD_SIZE=4", "MASTER_ADDR=a", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=8"), NOTHING,
		"LOCAL_WORLD_SIZE", "8");
	refused(ENV("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=4"), NOTHING, "the host of rank 0 is not known", "--master");
	refused(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_STEP_NODELIST=n[1-"), NOTHING, "node list",
		"not closed");
	refused(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=0"), NOTHING, "SLURM_PROCID is set", "SLURM_NTASKS is not");
	refused(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_LOCALID=2", "SLURM_NODEID=1",
		    "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_STEP_NODELIST=n[1-2]"),
		NOTHING, "SLURM_LOCALID is 2", "2 tasks");
	refused(ENV("SLURM_STEP_ID=0", "SLURM_PROCID=3", "SLURM_NTASKS=4", "SLURM_LOCALID=1", "SLURM_NODEID=7",
		    "SLURM_STEP_TASKS_PER_NODE=2(x2)", "SLURM_STEP_NODELIST=n[1-2]"),
		NOTHING, "2(x2)", "node 7");
}

static void test_place__options_outrank_the_environment(void **state)
{
	const char *const *env = ENV("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=9");
	struct error err = {0};
	struct team_place p;

	(void)state;
	assert_int_equal(place(&p, env, (struct team_place_options){"2", "3", "[fe80::1%eth0]:77", "here"}, &err), STATUS_OK);
	assert_int_equal(p.launcher, TEAM_TOLD);
	assert_int_equal(p.rank, 2);
	assert_string_equal(p.host, "fe80::1%eth0");
	assert_int_equal(p.port, 77);
	assert_string_equal(p.node, "here");
	assert_int_equal(place(&p, env, (struct team_place_options){.master = "b:12"}, &err), STATUS_OK);
	assert_int_equal(p.launcher, TEAM_TORCHRUN);
	assert_string_equal(p.host, "b");
	assert_int_equal(p.port, 12);
	assert_int_equal(place(&p, env, (struct team_place_options){.master = "fe80::2"}, &err), STATUS_OK);
	assert_string_equal(p.host, "fe80::2");
	assert_int_equal(p.port, 10);
	refused(env, (struct team_place_options){.rank = "0"}, "--rank", "--size");
	refused(env, (struct team_place_options){.size = "4"}, "--rank", "--size");
	refused(env, (struct team_place_options){"4", "4", "a", NULL}, "--rank is 4", "--size");
	refused(env, (struct team_place_options){"one", "4", "a", NULL}, "--rank", "one");
	refused(env, (struct team_place_options){"0", "4", NULL, NULL}, "is not known", "--master");
	refused(env, (struct team_place_options){.master = ""}, "--master", "no host name");
	refused(env, (struct team_place_options){.master = "[::1"}, "--master", "ADDRESS");
	refused(env, (struct team_place_options){.master = "a:0"}, "--master", "0");
	refused(env, (struct team_place_options){.master = "a:70000"}, "--master", "70000");
}

static void test_place__jobs_have_names_that_are_files(void **state)
{
	struct error err = {0};
	struct team_place p;

	(void)state;
	assert_int_equal(place(&p, ENV("RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=9", "TORCHELASTIC_RUN_ID=../x y"),
			       NOTHING, &err),
			 STATUS_OK);
	assert_string_equal(p.job, "_._x_y.10");
	assert_int_equal(place(&p, ENV("SLURM_STEP_ID=3", "SLURM_JOB_ID=77", "SLURM_PROCID=1", "SLURM_NTASKS=2",
				       "SLURM_STEP_NODELIST=n[1-2]", "SLURMD_NODENAME=n2"),
			       NOTHING, &err),
			 STATUS_OK);
	assert_string_equal(p.job, "77.3");
	assert_string_equal(p.node, "n2");
	assert_int_equal(place(&p, ENV("OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0",
				       "OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_MCA_ess_base_jobid=1234"),
			       NOTHING, &err),
			 STATUS_OK);
	assert_string_equal(p.job, "1234");
	assert_string_equal(p.from, "Open MPI (OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE)");
	assert_int_equal(place(&p, ENV("ASSAY_JOB=mine", "PMI_RANK=0", "PMI_SIZE=2", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=2"),
			       NOTHING, &err),
			 STATUS_OK);
	assert_string_equal(p.job, "mine"); /* told by a user, of a launcher that has no name for it */
	assert_int_equal(place(&p, ENV("ASSAY_JOB=mine"), (struct team_place_options){.rank = "0", .size = "2", .master = "a:9"},
			       &err),
			 STATUS_OK);
	assert_string_equal(p.job, "mine.9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_place__each_launcher),
		cmocka_unit_test(test_place__no_team_where_there_is_one_rank),
		cmocka_unit_test(test_place__the_user_may_say_where_rank_0_is),
		cmocka_unit_test(test_place__who_started_whom),
		cmocka_unit_test(test_place__refused_with_the_variable),
		cmocka_unit_test(test_place__options_outrank_the_environment),
		cmocka_unit_test(test_place__jobs_have_names_that_are_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
