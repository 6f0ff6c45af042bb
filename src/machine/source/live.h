/* SPDX-License-Identifier: Apache-2.0 */
/* Live readings that are no files: one function a key of live.c's table. On refusal {"error": "why"}.
 */
#ifndef MACHINE_SOURCE_LIVE_H
#define MACHINE_SOURCE_LIVE_H
#include <jansson.h>

/* {"error": "what: no such file or directory"}; `what` may be empty. Owner: caller, as of all here. */
json_t *live_refusal(const char *what, int errnum);
/* [{"device", "mount", "type", "total_bytes", "free_bytes"}]: file systems that hold data. */
json_t *live_filesystems(void);
/* {"output", "home", "temporary"}: folders that we and the libraries write to; `output` is the working
 * folder. */
json_t *live_places(void);
/* Lines of the kernel's log that name GPUs, links, PCIe errors, machine checks or killed processes. */
json_t *live_kernel_log(void);
/* Memory modules as dmi_memory_parse gives them; what udev kept of them where the table is closed to us. */
json_t *live_memory(void);
#endif
