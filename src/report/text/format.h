/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader sees for what the journal holds: case names, quantities, reasons. No number that is not
 * finite is shown. */
#ifndef REPORT_TEXT_FORMAT_H
#define REPORT_TEXT_FORMAT_H
#include <stddef.h>
#include <stdint.h>
#include "core/text/text.h"
#include "journal/record/record.h"

#define FORMAT_NONE "–"

/* "689 TFLOPS", "4.28 TB/s", "12.3 us": three digits or more, the prefix of `like` (0: the value's own).
 * FORMAT_NONE where the value is not finite. */
void format_quantity(char *out, size_t size, double value, double like, const char *unit);
/* "670–800 TFLOPS": one prefix for both. */
void format_range(char *out, size_t size, double low, double high, const char *unit);
/* "64.4 %", "0.03 %"; FORMAT_NONE where it is not finite. */
void format_share(char *out, size_t size, double share);
/* "BF16 GEMM 8192, cuBLASLt" from probe, engine and options. */
void format_title(char *out, size_t size, const struct record_case *c);
/* Of a case of probe collective: what it does, "all-reduce, bf16", and how it is run where that was asked
 * for, "window buffers, graph"; both are appended. */
void format_collective(struct text *what, struct text *how, const struct record_case *c);
/* "cuBLASLt" from "cublaslt"; the name itself where it is not known. */
const char *format_engine(const char *engine);
/* "BF16" from "bf16", "compute.bf16"; the name in capitals where it is not known. `out` of >= 16 bytes. */
const char *format_type(const char *type, char *out, size_t size);
/* "power limit, thermal (software)" of NVML's clock event bits; "none" for 0. */
void format_clock_reasons(char *out, size_t size, uint64_t bits);
/* "4 GiB", "512 KiB", "1000 B" */
void format_bytes(char *out, size_t size, double bytes);
#endif
