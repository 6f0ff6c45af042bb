/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and values of the facts tree (docs/explanation/design/machine.md) for people. */
#ifndef REPORT_TEXT_FACT_LABEL_H
#define REPORT_TEXT_FACT_LABEL_H
#include <stddef.h>

/* Writes a label for a path: "GPU 0: memory bus width" for "gpus[0].facts.bus_bits", "GPUs: .." for
 * "gpus[]..."; "CPU: model" for "cpu.model". */
void fact_label(char *out, size_t size, const char *path);
/* Writes a value for people: PCI ids in hexadecimal, bytes with a unit, others unchanged. */
void fact_leaf(char *out, size_t size, const char *path, const char *text);
#endif
