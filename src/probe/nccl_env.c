/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that steer NCCL and CUDA. One that is not set reads as empty: that is how it should be. */
#include <string.h>
#include "machine/nccl/settings.h"
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(NCCL_P2P_DISABLE, "", TEXT, 0, "1 forbids NVLink and PCIe peers")                                  \
	X(NCCL_P2P_DIRECT_DISABLE, "", TEXT, 0, "1 forbids direct access between GPUs of one process")       \
	X(NCCL_P2P_LEVEL, "", TEXT, 0, "how far apart peers may be")                                         \
	X(NCCL_SHM_DISABLE, "", TEXT, 0, "1 forbids shared memory")                                          \
	X(NCCL_NVLS_ENABLE, "", TEXT, 0, "0 forbids reduction in the switch")                                \
	X(NCCL_NVB_DISABLE, "", TEXT, 0, "1 forbids the way over a third GPU's NVLinks")                     \
	X(NCCL_CUMEM_ENABLE, "", TEXT, 0, "0 forbids what needs the driver's virtual memory calls")          \
	X(NCCL_IB_DISABLE, "", TEXT, 0, "1 forbids InfiniBand and RoCE")                                     \
	X(NCCL_NET, "", TEXT, 0, "which network is used")                                                    \
	X(NCCL_NET_GDR_LEVEL, "", TEXT, 0, "how far a network card may be for direct memory access")         \
	X(NCCL_PXN_DISABLE, "", TEXT, 0, "1 forbids the use of another GPU's network card")                  \
	X(NCCL_ALGO, "", TEXT, 0, "forces an algorithm")                                                     \
	X(NCCL_PROTO, "", TEXT, 0, "forces a protocol")                                                      \
	X(NCCL_MIN_NCHANNELS, "", TEXT, 0, "fewest channels, and so fewest multiprocessors")                 \
	X(NCCL_MAX_NCHANNELS, "", TEXT, 0, "most channels, and so most multiprocessors")                     \
	X(NCCL_NTHREADS, "", TEXT, 0, "threads a block")                                                     \
	X(NCCL_BUFFSIZE, "", TEXT, 0, "bytes of the buffer between two GPUs")                                \
	X(NCCL_LAUNCH_MODE, "", TEXT, 0, "how one process launches on many GPUs")                            \
	X(NCCL_GRAPH_REGISTER, "", TEXT, 0, "0 does not register the buffers of captured calls")             \
	X(NCCL_LOCAL_REGISTER, "", TEXT, 0, "0 does not register buffers although asked")                    \
	X(NCCL_CHECK_POINTERS, "", TEXT, 0, "1 checks every pointer given to a call")                        \
	X(NCCL_DEBUG, "", TEXT, 0, "how much is printed")                                                    \
	X(NCCL_PROFILER_PLUGIN, "", TEXT, 0, "a plug-in that is told of each operation")                     \
	X(NCCL_SOCKET_IFNAME, "", TEXT, 0, "network interfaces of sockets")                                  \
	X(NCCL_IB_HCA, "", TEXT, 0, "InfiniBand adapters to use")                                            \
	X(CUDA_LAUNCH_BLOCKING, "", TEXT, 0, "1 serialises every launch")                                    \
	X(CUDA_DEVICE_MAX_CONNECTIONS, "", TEXT, 0, "hardware queues of a context")
/* What of a value is not here; the name of the variable with "_missing" behind it. */
#define MISSING(X)                                                                                           \
	X(NCCL_SOCKET_IFNAME_missing, "", TEXT, 0, "interfaces that it names and that are not here or down") \
	X(NCCL_IB_HCA_missing, "", TEXT, 0, "ports that it names and that are not here or down")

static const struct field fields[] = {FIELDS(FIELD_ROW) MISSING(FIELD_ROW)};
enum { FIELDS(READING_PLACE) MISSING(READING_PLACE) COUNT, VARIABLES = AT_NCCL_SOCKET_IFNAME_missing };

/* Of the environment and NCCL's files the one that counts; CUDA reads the environment alone. */
static const char *value_of(const char *name, const json_t *environment, const json_t *settings)
{
	const char *value = strncmp(name, "NCCL_", 5) ? json_string_value(json_object_get(environment, name))
						      : nccl_setting(settings, name);

	return value ? value : "";
}

static void add_missing(struct result *out, int at, int variable, const struct machine *m,
			const json_t *settings)
{
	const char *name = fields[variable].name, *value = nccl_setting(settings, name);
	struct text missing = {0};

	if (value)
		nccl_missing(&missing, name, value, machine_json(m));
	result_text(out, &fields[at], text_str(&missing));
	text_release(&missing);
}

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const json_t *environment = json_object_get(machine_json(m), "environment");
	json_t *settings;
	size_t i;

	(void)t, (void)opts;
	if (!reading_has_gpus(m, "environment of NCCL and CUDA", err))
		return STATUS_UNSUPPORTED;
	if (!json_is_object(environment))
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_UNSUPPORTED,
				       "environment of NCCL and CUDA: the facts do not hold it");
	settings = nccl_settings(environment, json_object_get(machine_json(m), "nccl_files"));
	for (i = 0; i < VARIABLES; i++) {
		char value[1024];

		nccl_value_normal(fields[i].name, value_of(fields[i].name, environment, settings), value,
				  sizeof(value));
		result_text(out, &fields[i], value);
	}
	add_missing(out, AT_NCCL_SOCKET_IFNAME_missing, AT_NCCL_SOCKET_IFNAME, m, settings);
	add_missing(out, AT_NCCL_IB_HCA_missing, AT_NCCL_IB_HCA, m, settings);
	json_decref(settings);
	return STATUS_OK;
}

const struct probe probe_nccl_env = {
	.name = "nccl_env",
	.summary = "environment variables that steer NCCL and CUDA",
	.kind = PROBE_READING,
	.reads = TARGET_NODE,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
