/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and values of the facts tree (docs/explanation/design/machine.md) as people read them. */
#ifndef REPORT_TEXT_FACT_LABEL_H
#define REPORT_TEXT_FACT_LABEL_H
#include <stddef.h>

/* "GPU 0: memory bus width" for "gpus[0].facts.bus_bits", "GPUs: .." for "gpus[]..."; "CPU: model" for
 * "cpu.model". */
void fact_label(char *out, size_t size, const char *path);
/* A leaf as people read it: ids of PCI in hexadecimal, bytes with their unit; else as it stands. */
void fact_leaf(char *out, size_t size, const char *path, const char *text);
#endif
