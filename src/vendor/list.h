/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries whose functions we call. The header of each library holds its rows. */
#ifndef VENDOR_LIST_H
#define VENDOR_LIST_H
#include "vendor/lib.h"

#define VENDOR_LIBS(X)                                                                                       \
	X(cublaslt) X(cuda) X(cudnn) X(cupti) X(mpi_plugin) X(nccl) X(nvml) X(onednn) X(openblas)

#define X(name) extern const struct lib_spec name##_lib;
VENDOR_LIBS(X)
#undef X
#endif
