/* SPDX-License-Identifier: Apache-2.0 */
/* One line a probe, sorted. The name is the file's (or folder's) and the symbol's (probe_NAME). */
#define PROBES(X) \
	X(gemm)   \
	X(memory) \
	X(null)   \
	X(peak)   \
	X(sm)
