/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks on recorded machines are given in their environment, and why. */
#include "test.h"
#include "launch/env.h"
#include "machine/source/source.h"

#define REPLAY SOURCE_DIR "/tests/replay/"

static struct machine *recorded(const char *name)
{
	char path[512];
	struct machine *m = NULL;
	struct error err = {0};

	snprintf(path, sizeof(path), REPLAY "%s", name);
	if (machine_read(&m, LAYER_SOFTWARE, path, NULL, &err))
		fail_msg("%s", err.text);
	return m;
}

/* A recorded machine whose facts are changed: "/cpu/usable" and its like, NULL ends. */
static struct machine *changed(const char *name, json_t *changes)
{
	struct machine *m = recorded(name), *other = NULL;
	json_t *facts = json_deep_copy(machine_json(m));
	struct error err = {0};

	assert_int_equal(source_derive(facts, changes, &err), STATUS_OK);
	assert_int_equal(machine_from_json(&other, facts, &err), STATUS_OK);
	json_decref(facts);
	json_decref(changes);
	machine_free(m);
	return other;
}

static struct env_rows derived(struct machine *m, struct env_setting wish)
{
	struct env_rows rows;

	env_derive(&rows, m, &wish);
	machine_free(m);
	return rows;
}

static const struct env_row *row(const struct env_rows *rows, const char *name)
{
	for (size_t i = 0; i < rows->count; i++)
		if (!strcmp(rows->row[i].name, name))
			return &rows->row[i];
	return NULL;
}

static void assert_row(const struct env_rows *rows, const char *name, enum env_kind kind, const char *value,
		       const char *why)
{
	const struct env_row *r = row(rows, name);

	assert_non_null(r);
	assert_int_equal(r->kind, kind);
	assert_string_equal(r->value, value);
	if (!strstr(r->reason, why))
		fail_msg("\"%s\" does not say \"%s\"", r->reason, why);
	assert_true(*r->source);
}

static void test_env__threads_are_the_cores_divided_by_the_ranks(void **state)
{
	struct env_rows rows =
		derived(recorded("derived-h100-sxm-8"), (struct env_setting){.ranks = 8, .nodes = 1});

	(void)state;
	assert_row(&rows, "OMP_NUM_THREADS", ENV_SET, "2", "16 physical cores for 8 ranks");
	rows = derived(recorded("derived-h100-sxm-8"), (struct env_setting){.ranks = 64, .nodes = 1});
	assert_row(&rows, "OMP_NUM_THREADS", ENV_SET, "1", "16 physical cores for 64 ranks");
}

static void test_env__threads_that_are_the_default_are_not_set(void **state)
{
	struct env_rows rows =
		derived(recorded("derived-h100-sxm-8"), (struct env_setting){.ranks = 1, .nodes = 1});

	(void)state;
	assert_row(&rows, "OMP_NUM_THREADS", ENV_DEFAULT, "", "16 physical cores for 1 rank ");
}

static void test_env__hardware_threads_and_quotas_are_no_cores(void **state)
{
	struct machine *m = changed("derived-h100-sxm-8", json_pack("{s:i,s:i,s:i}", "/cpu/cores", 48,
								    "/cpu/threads", 96, "/cpu/usable", 96));
	struct env_rows rows = derived(m, (struct env_setting){.ranks = 8, .nodes = 1});

	(void)state;
	assert_row(&rows, "OMP_NUM_THREADS", ENV_SET, "6", "48 physical cores for 8 ranks");
	m = changed("derived-h100-sxm-8", json_pack("{s:f}", "/cpu/quota", 4.0));
	rows = derived(m, (struct env_setting){.ranks = 2, .nodes = 1});
	assert_row(&rows, "OMP_NUM_THREADS", ENV_SET, "2", "4 physical cores for 2 ranks");
}

static void test_env__the_interface_is_told_where_there_is_a_choice(void **state)
{
	const struct env_setting wish = {.ranks = 8, .nodes = 2, .route = "eno2"};
	struct env_rows rows = derived(recorded("derived-fabric-storage"), wish);

	(void)state;
	assert_row(&rows, "NCCL_SOCKET_IFNAME", ENV_SET, "=eno2", "2 are up (eno1, eno2)");
	rows = derived(recorded("derived-fabric-storage"), (struct env_setting){.ranks = 8, .nodes = 2});
	assert_row(&rows, "NCCL_SOCKET_IFNAME", ENV_DEFAULT, "", "is not known");
	rows = derived(recorded("derived-fabric-storage"),
		       (struct env_setting){.ranks = 8, .nodes = 1, .route = "eno2"});
	assert_row(&rows, "NCCL_SOCKET_IFNAME", ENV_DEFAULT, "", "one node");
	rows = derived(recorded("derived-fabric-roce"), wish);
	assert_row(&rows, "NCCL_SOCKET_IFNAME", ENV_DEFAULT, "", "only one choice: eno1 is up");
}

static void test_env__ports_of_storage_are_left_out(void **state)
{
	const struct env_setting wish = {.ranks = 8, .nodes = 2, .mpi = true};
	struct env_rows rows = derived(recorded("derived-fabric-storage"), wish);

	(void)state;
	assert_row(&rows, "NCCL_IB_HCA", ENV_SET,
		   "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1",
		   "mlx5_8:1 (roce, 100 Gbit/s)");
	assert_row(&rows, "UCX_NET_DEVICES", ENV_SET,
		   "mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1", "UCX");
	assert_null(row(&rows, "NCCL_IB_GID_INDEX"));
	rows = derived(recorded("derived-fabric-storage"), (struct env_setting){.ranks = 8, .nodes = 2});
	assert_null(row(&rows, "UCX_NET_DEVICES"));
	rows = derived(recorded("derived-fabric-storage"), (struct env_setting){.ranks = 8, .nodes = 1});
	assert_null(row(&rows, "NCCL_IB_HCA"));
}

static void test_env__ports_that_are_down_need_no_variable(void **state)
{
	struct env_rows rows =
		derived(recorded("derived-fabric-port-down"), (struct env_setting){.ranks = 8, .nodes = 2});

	(void)state;
	assert_row(&rows, "NCCL_IB_HCA", ENV_DEFAULT, "",
		   "6 of 8 ports are up and alike (infiniband, 400 Gbit/s); NCCL skips the others: "
		   "mlx5_3:1 is DOWN, "
		   "mlx5_7:1 is DOWN");
}

static void test_env__locked_memory_that_is_limited_is_warned_of(void **state)
{
	const struct env_setting wish = {.ranks = 8, .nodes = 2};
	struct env_rows rows = derived(recorded("derived-fabric-storage"), wish);

	(void)state;
	assert_row(&rows, "memlock", ENV_WARNING, "8192 KiB", "ulimit -l unlimited");
	rows = derived(recorded("derived-fabric-port-down"), wish);
	assert_null(row(&rows, "memlock"));
}

static void test_env__the_gid_is_told_to_an_old_nccl_alone(void **state)
{
	const struct env_setting wish = {.ranks = 8, .nodes = 2};
	struct machine *m = recorded("derived-fabric-roce");
	struct env_rows rows;

	(void)state;
	assert_true(env_wants_nccl(m, &wish));
	rows = derived(m, wish);
	assert_row(&rows, "NCCL_IB_GID_INDEX", ENV_SET, "3", "NCCL 2.19.4 would use GID 0");
	rows = derived(recorded("derived-fabric-roce-nccl-2-27"), wish);
	assert_row(&rows, "NCCL_IB_GID_INDEX", ENV_DEFAULT, "", "NCCL 2.27.3 finds the RoCE v2 GID itself");
	m = changed("derived-fabric-roce", json_pack("{s:i}", "/ports/1/gid_roce_v2", 1));
	rows = derived(m, wish);
	assert_row(&rows, "NCCL_IB_GID_INDEX", ENV_DEFAULT, "", "have no common index");
	m = changed("derived-fabric-roce", json_pack("{s:n}", "/software/nccl"));
	rows = derived(m, wish);
	assert_row(&rows, "NCCL_IB_GID_INDEX", ENV_DEFAULT, "", "no NCCL was found");
}

static void test_env__what_the_user_set_is_left(void **state)
{
	json_t *changes = json_pack("{s:s,s:s,s:s,s:s}", "/environment/OMP_NUM_THREADS", "3",
				    "/environment/NCCL_SOCKET_IFNAME", "eno1", "/environment/NCCL_IB_HCA",
				    "mlx5_8", "/environment/NCCL_NVLS_ENABLE", "0");
	struct env_rows rows = derived(changed("derived-fabric-storage", changes),
				       (struct env_setting){.ranks = 8, .nodes = 2, .route = "eno2"});

	(void)state;
	assert_row(&rows, "OMP_NUM_THREADS", ENV_INHERITED, "3", "set before");
	assert_row(&rows, "NCCL_SOCKET_IFNAME", ENV_INHERITED, "eno1", "set before");
	assert_row(&rows, "NCCL_IB_HCA", ENV_INHERITED, "mlx5_8", "set before");
	assert_row(&rows, "NCCL_NVLS_ENABLE", ENV_INHERITED, "0", "set before");
	rows = derived(recorded("derived-fabric-storage"), (struct env_setting){.ranks = 8, .nodes = 2});
	assert_null(row(&rows, "NCCL_NVLS_ENABLE"));
}

static void test_env__a_machine_without_fabric_has_no_rows_of_it(void **state)
{
	struct env_rows rows = derived(recorded("cpu-vm-2core"), (struct env_setting){.ranks = 2, .nodes = 2});

	(void)state;
	assert_row(&rows, "OMP_NUM_THREADS", ENV_SET, "1", "2 physical cores for 2 ranks");
	assert_null(row(&rows, "NCCL_IB_HCA"));
	assert_null(row(&rows, "NCCL_IB_GID_INDEX"));
	assert_null(row(&rows, "memlock"));
}

static void test_env__a_row_is_one_line_with_its_reason(void **state)
{
	struct env_rows rows =
		derived(recorded("derived-fabric-roce"), (struct env_setting){.ranks = 8, .nodes = 2});
	struct text t = {0};

	(void)state;
	env_explain(&t, row(&rows, "OMP_NUM_THREADS"));
	assert_string_equal(
		text_str(&t),
		"OMP_NUM_THREADS=2: 16 physical cores for 8 ranks on this node; OpenMP would start "
		"16 threads in each (cpu: cores, affinity, quota)");
	text_release(&t);
	env_explain(&t, row(&rows, "NCCL_SOCKET_IFNAME"));
	assert_string_equal(text_str(&t),
			    "NCCL_SOCKET_IFNAME [not set]: only one choice: eno1 is up (ports, route to rank 0)");
	text_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_env__threads_are_the_cores_divided_by_the_ranks),
		cmocka_unit_test(test_env__threads_that_are_the_default_are_not_set),
		cmocka_unit_test(test_env__hardware_threads_and_quotas_are_no_cores),
		cmocka_unit_test(test_env__the_interface_is_told_where_there_is_a_choice),
		cmocka_unit_test(test_env__ports_of_storage_are_left_out),
		cmocka_unit_test(test_env__ports_that_are_down_need_no_variable),
		cmocka_unit_test(test_env__locked_memory_that_is_limited_is_warned_of),
		cmocka_unit_test(test_env__the_gid_is_told_to_an_old_nccl_alone),
		cmocka_unit_test(test_env__what_the_user_set_is_left),
		cmocka_unit_test(test_env__a_machine_without_fabric_has_no_rows_of_it),
		cmocka_unit_test(test_env__a_row_is_one_line_with_its_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
