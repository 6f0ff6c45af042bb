/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of the node: environment variables that change the behaviour of NCCL and CUDA. A variable that is
 * not set reads as the empty string, which is the expected value. */
#include <string.h>
#include "machine/nccl/settings.h"
#include "probe/shared/reading.h"

#define FIELDS(X)                                                                                            \
	X(NCCL_P2P_DISABLE, "", TEXT, 0, "1 disables direct transfers between GPUs over NVLink and PCIe")    \
	X(NCCL_P2P_DIRECT_DISABLE, "", TEXT, 0, "1 disables direct access between GPUs of one process")      \
	X(NCCL_P2P_LEVEL, "", TEXT, 0, "largest distance between GPUs that transfer directly")               \
	X(NCCL_SHM_DISABLE, "", TEXT, 0, "1 disables transfers through shared memory")                       \
	X(NCCL_NVLS_ENABLE, "", TEXT, 0, "0 disables reduction in the NVSwitch (NVLS)")                      \
	X(NCCL_NVB_DISABLE, "", TEXT, 0, "1 disables the path over a third GPU's NVLinks")                   \
	X(NCCL_CUMEM_ENABLE, "", TEXT, 0,                                                                    \
	  "0 disables features that need the driver's virtual memory functions")                             \
	X(NCCL_IB_DISABLE, "", TEXT, 0, "1 disables InfiniBand and RoCE")                                    \
	X(NCCL_NET, "", TEXT, 0, "name of the network to use")                                               \
	X(NCCL_NET_GDR_LEVEL, "", TEXT, 0,                                                                   \
	  "largest distance between GPU and network card for GPUDirect RDMA")                                \
	X(NCCL_PXN_DISABLE, "", TEXT, 0, "1 disables the use of another GPU's network card")                 \
	X(NCCL_ALGO, "", TEXT, 0, "algorithms that NCCL may use")                                            \
	X(NCCL_PROTO, "", TEXT, 0, "protocols that NCCL may use")                                            \
	X(NCCL_MIN_NCHANNELS, "", TEXT, 0, "minimum number of channels, and so of SMs")                      \
	X(NCCL_MAX_NCHANNELS, "", TEXT, 0, "maximum number of channels, and so of SMs")                      \
	X(NCCL_NTHREADS, "", TEXT, 0, "threads per block")                                                   \
	X(NCCL_BUFFSIZE, "", TEXT, 0, "size in bytes of the buffer between two GPUs")                        \
	X(NCCL_LAUNCH_MODE, "", TEXT, 0, "how one process launches kernels on several GPUs")                 \
	X(NCCL_GRAPH_REGISTER, "", TEXT, 0,                                                                  \
	  "0 disables the registration of buffers of calls captured in a graph")                             \
	X(NCCL_LOCAL_REGISTER, "", TEXT, 0,                                                                  \
	  "0 disables the registration of buffers that a program requests")                                  \
	X(NCCL_CHECK_POINTERS, "", TEXT, 0, "1 checks every pointer given to a call")                        \
	X(NCCL_DEBUG, "", TEXT, 0, "level of NCCL's messages")                                               \
	X(NCCL_PROFILER_PLUGIN, "", TEXT, 0, "plug-in that receives an event for each operation")            \
	X(NCCL_SOCKET_IFNAME, "", TEXT, 0, "network interfaces for sockets")                                 \
	X(NCCL_IB_HCA, "", TEXT, 0, "InfiniBand adapters to use")                                            \
	X(CUDA_LAUNCH_BLOCKING, "", TEXT, 0, "1 makes every kernel launch wait for its end")                 \
	X(CUDA_DEVICE_MAX_CONNECTIONS, "", TEXT, 0, "number of hardware queues per context")
/* Parts of a variable's value that do not exist on this machine. The field has the variable's name plus
 * "_missing". */
#define MISSING(X)                                                                                           \
	X(NCCL_SOCKET_IFNAME_missing, "", TEXT, 0,                                                           \
	  "interfaces in NCCL_SOCKET_IFNAME that do not exist or are down")                                  \
	X(NCCL_IB_HCA_missing, "", TEXT, 0, "ports in NCCL_IB_HCA that do not exist or are down")

static const struct field fields[] = {FIELDS(FIELD_ROW) MISSING(FIELD_ROW)};
enum { FIELDS(READING_PLACE) MISSING(READING_PLACE) COUNT, VARIABLES = AT_NCCL_SOCKET_IFNAME_missing };

/* The effective value, from the environment and NCCL's configuration files. CUDA reads only the
 * environment. */
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
				       "environment of NCCL and CUDA: the facts do not contain it");
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
	.summary = "environment variables that change the behaviour of NCCL and CUDA",
	.kind = PROBE_READING,
	.reads = TARGET_NODE,
	.fields = fields,
	.field_count = COUNT,
	.observe = observe,
};
