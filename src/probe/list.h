/* SPDX-License-Identifier: Apache-2.0 */
/* One line a probe, sorted. The name is the file's (or folder's) and the symbol's (probe_NAME). */
/* clang-format off */
#define PROBES(X) \
	X(attention) \
	X(clock_state) \
	X(collective) \
	X(contamination) \
	X(dispatch) \
	X(ecc) \
	X(gemm) \
	X(gpu_count) \
	X(gpu_mode) \
	X(hbm) \
	X(host_state) \
	X(limits) \
	X(link) \
	X(memory) \
	X(nccl_env) \
	X(null) \
	X(numa) \
	X(nvlink_state) \
	X(pcie_state) \
	X(p2p) \
	X(peak) \
	X(remap) \
	X(scaling) \
	X(sm) \
	X(stress) \
	X(versions) \
	X(xid)
/* clang-format on */
