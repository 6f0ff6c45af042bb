/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/gemm/gemm.h"
