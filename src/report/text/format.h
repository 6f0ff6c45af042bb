/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for values of the journal: case titles, quantities, reasons. A value that is not finite becomes
 * FORMAT_NONE. */
#ifndef REPORT_TEXT_FORMAT_H
#define REPORT_TEXT_FORMAT_H
#include <stddef.h>
#include <stdint.h>
#include "core/text/text.h"
#include "journal/record/record.h"

#define FORMAT_NONE "–"

/* Writes a quantity with three digits or more: "689 TFLOPS", "4.28 TB/s", "12.3 us". The unit's prefix is
 * that of `like`; 0: that of the value. */
void format_quantity(char *out, size_t size, double value, double like, const char *unit);
/* Writes "670–800 TFLOPS", with one prefix for both ends. */
void format_range(char *out, size_t size, double low, double high, const char *unit);
/* Writes a share as "64.4 %" or "0.03 %". */
void format_share(char *out, size_t size, double share);
/* Writes a case's title, "BF16 GEMM 8192, cuBLASLt", from its probe, engine and options. */
void format_title(char *out, size_t size, const struct record_case *c);
/* For a case of probe collective: appends what it does to `what`, "all-reduce, bf16", and its settings other
 * than the defaults to `how`, "window buffers, graph". */
void format_collective(struct text *what, struct text *how, const struct record_case *c);
/* "cuBLASLt" for "cublaslt"; the name itself if it is unknown. */
const char *format_engine(const char *engine);
/* "BF16" for "bf16" or "compute.bf16"; the name in capitals if it is unknown. Returns `out`, which has at
 * least 16 bytes. */
const char *format_type(const char *type, char *out, size_t size);
/* Writes NVML's clock event bits in words, "power or current limit, thermal (software)"; "none" for 0. */
void format_clock_reasons(char *out, size_t size, uint64_t bits);
/* Writes "4 GiB", "512 KiB", "1000 B". */
void format_bytes(char *out, size_t size, double bytes);
#endif
