/* SPDX-License-Identifier: Apache-2.0 */
/* Live readings that are not files: one function per key of the table in live.c. If a reading fails, the
 * result is {"error": "why"}. */
#ifndef MACHINE_SOURCE_LIVE_H
#define MACHINE_SOURCE_LIVE_H
#include <jansson.h>

/* {"error": "what: no such file or directory"}; `what` may be empty. The caller decrefs the results of all
 * functions here. */
json_t *live_refusal(const char *what, int errnum);
/* [{"device", "mount", "type", "total_bytes", "free_bytes"}]: file systems that hold data. */
json_t *live_filesystems(void);
/* {"output", "home", "temporary"}: folders that assay and the libraries write to. `output` is the working
 * folder. */
json_t *live_places(void);
/* Lines of the kernel log about GPUs, links, PCIe errors, machine checks or killed processes. */
json_t *live_kernel_log(void);
/* Memory modules in the form of dmi_memory_parse; from udev's copy if the firmware's table may not be read.
 */
json_t *live_memory(void);
#endif
