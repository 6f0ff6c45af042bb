/* SPDX-License-Identifier: Apache-2.0 */
/* The names and the jobs of the processes that use GPUs. */
#include "reader_bed.h"

/* The command line of one process cannot be read: the next process gets its names all the same. */
static void test_a_process_that_is_stuck(void **state)
{
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/proc/4243/cmdline", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0); /* 4243 has more memory and is asked for first */
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_process_label(&b, "4243", "comm"));
	BED_WAIT(&b, bed_process_label(&b, "4242", "command"));
	assert_null(bed_process_label(&b, "4243", "command"));
	bed_stop(&b);
}

static bool gpu_has_job(struct bed *b, unsigned number, const char *job)
{
	const struct watch_entity *e = bed_gpu(b, number);
	const char *has = e ? watch_label(e, "hpc_job") : NULL;

	return e && (job ? has && !strcmp(has, job) : !has);
}

/* Where Slurm makes no cgroups, its job stands in the environment of the process. */
static void test_a_job_of_the_environment(void **state)
{
	static const char words[] = "HOME=/x\0SLURM_JOB_ID=88\0XSLURM_JOB_ID=5";
	char path[PATH_MAX];
	struct bed b;
	FILE *f;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/proc/4243/environ", (char *)*state);
	f = fopen(path, "w");
	assert_true(f && fwrite(words, 1, sizeof(words), f) == sizeof(words) && !fclose(f));
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_process_label(&b, "4243", "hpc_job") && bed_process_label(&b, "4242", "hpc_job"));
	assert_string_equal(bed_process_label(&b, "4243", "hpc_job"), "88");
	assert_string_equal(bed_process_label(&b, "4242", "hpc_job"), "77"); /* its cgroup's */
	BED_WAIT(&b, gpu_has_job(&b, 0, NULL));				     /* two jobs share it */
	bed_stop(&b);
}

/* A prolog's files say more than processes: a GPU has its job before a process is there. */
static void test_jobs_of_files(void **state)
{
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	machine_file(*state, "jobs/0", "17\n18\n");
	machine_file(*state, "jobs/1", "a \"job\"\n");
	machine_file(*state, "jobs/other", "20\n");
	snprintf(path, sizeof(path), "%s/jobs/7", (char *)*state);
	assert_int_equal(mkfifo(path, 0600), 0); /* nothing is ever read of it */
	snprintf(path, sizeof(path), "%s/jobs", (char *)*state);
	setenv("DCGM_HPC_JOB_MAPPING_DIR", path, 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, gpu_has_job(&b, 0, "17,18"));
	BED_WAIT(&b, gpu_has_job(&b, 1, "a,\"job\""));
	snprintf(path, sizeof(path), "%s/jobs/0", (char *)*state);
	assert_int_equal(unlink(path), 0); /* the epilog: what its processes say holds again */
	BED_WAIT(&b, gpu_has_job(&b, 0, "77"));
	snprintf(path, sizeof(path), "%s/jobs/1", (char *)*state);
	assert_int_equal(unlink(path), 0);
	BED_WAIT(&b, gpu_has_job(&b, 1, NULL));
	bed_stop(&b);
	unsetenv("DCGM_HPC_JOB_MAPPING_DIR");
}

/* In an inner PID namespace, a process number of NVML means another process: it gets no name. */
static void test_a_container(void **state)
{
	uint64_t until;
	struct bed b;

	machine_make(*state);
	machine_link(*state, "proc/self/ns/pid", "pid:[4026532000]");
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	until = bed_state(&b)->readings + 20;
	BED_WAIT(&b, bed_state(&b)->readings >= until);
	assert_null(bed_process_label(&b, "4242", "comm"));
	bed_stop(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_a_process_that_is_stuck),
		scratch_test(test_a_job_of_the_environment),
		scratch_test(test_jobs_of_files),
		scratch_test(test_a_container),
	};

	return BED_MAIN(argc, argv, "watch_read_names", tests);
}
