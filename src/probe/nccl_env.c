/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that steer NCCL and CUDA. One that is not set reads as empty: that is how it should be. */
#include "probe/reading.h"

#define FIELDS(X)                                                                                            \
	X(NCCL_P2P_DISABLE, "", TEXT, 0, "1 forbids NVLink and PCIe peers")                                  \
	X(NCCL_P2P_LEVEL, "", TEXT, 0, "how far apart peers may be")                                         \
	X(NCCL_SHM_DISABLE, "", TEXT, 0, "1 forbids shared memory")                                          \
	X(NCCL_NVLS_ENABLE, "", TEXT, 0, "0 forbids reduction in the switch")                                \
	X(NCCL_IB_DISABLE, "", TEXT, 0, "1 forbids InfiniBand and RoCE")                                     \
	X(NCCL_NET_GDR_LEVEL, "", TEXT, 0, "how far a network card may be for direct memory access")         \
	X(NCCL_ALGO, "", TEXT, 0, "forces an algorithm")                                                     \
	X(NCCL_PROTO, "", TEXT, 0, "forces a protocol")                                                      \
	X(NCCL_MAX_NCHANNELS, "", TEXT, 0, "most channels, and so most multiprocessors")                     \
	X(NCCL_SOCKET_IFNAME, "", TEXT, 0, "network interfaces of sockets")                                  \
	X(NCCL_IB_HCA, "", TEXT, 0, "InfiniBand adapters to use")                                            \
	X(CUDA_LAUNCH_BLOCKING, "", TEXT, 0, "1 serialises every launch")                                    \
	X(CUDA_DEVICE_MAX_CONNECTIONS, "", TEXT, 0, "hardware queues of a context")

static const struct field fields[] = {FIELDS(READING_FIELD)};
enum { COUNT = sizeof(fields) / sizeof(fields[0]) };

static enum status observe(const struct machine *m, const struct target *t, const void *opts,
			   struct result *out, struct error *err)
{
	const json_t *environment = json_object_get(machine_json(m), "environment");
	size_t i;

	(void)t, (void)opts;
	if (!reading_has_gpus(m, "environment of NCCL and CUDA", err))
		return STATUS_UNSUPPORTED;
	if (!json_is_object(environment))
		return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_UNSUPPORTED,
				       "environment of NCCL and CUDA: the facts do not hold it");
	for (i = 0; i < COUNT; i++) {
		const char *value = json_string_value(json_object_get(environment, fields[i].name));

		result_text(out, &fields[i], value ? value : "");
	}
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
