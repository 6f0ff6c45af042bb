/* SPDX-License-Identifier: Apache-2.0 */
/* Four closed lists: the status of a call, the ending of a case, the verdict of a case, and the cause.
 * Each list is one table. Names, texts, exit codes and the reference page are generated from it. */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

/* name, text */
/* clang-format off */
#define STATUS_LIST(X)                                               \
	X(OK, "ok", "success")                                     \
	X(UNAVAILABLE, "unavailable", "a library, function, permission or device is missing") \
	X(UNSUPPORTED, "unsupported", "present, but does not support this") \
	X(NO_RESOURCE, "no_resource", "out of memory, handles, disk space or time") \
	X(BAD_INPUT, "bad_input", "an option, a file or the environment is wrong")     \
	X(VENDOR, "vendor", "a vendor call failed")                  \
	X(LOST, "lost", "the device went away")                      \
	X(MISMATCH, "mismatch", "the result is wrong")               \
	X(CANCELLED, "cancelled", "stopped on request")              \
	X(BUG, "bug", "a defect of assay")
/* clang-format on */

/* How a case ended, as seen by the supervisor. DONE comes with the worker's status. */
/* clang-format off */
#define ENDING_LIST(X)                                                     \
	X(DONE, "done", "the worker reported its end")                     \
	X(CRASHED, "crashed", "a signal ended the worker, or it exited without a report") \
	X(TIMED_OUT, "timed_out", "over its time limit; TERM or KILL ended it") \
	X(STUCK, "stuck", "KILL did not end it; the run no longer uses its devices") \
	X(CANCELLED, "cancelled", "the run was stopped on request")        \
	X(NOT_RUN, "not_run", "an earlier case lost its device or its worker's library") \
	X(CUT, "cut", "the journal ends within this case")
/* clang-format on */

/* Columns: name, exit code if the case is required (1, a fail, outranks 2), weight, meaning. Of several
 * verdicts the one with the largest weight counts: a judged result says more about a device than one that
 * was only measured. */
/* clang-format off */
#define VERDICT_LIST(X)                                                     \
	X(PASS, "pass", 0, 2, "the result is correct, and the figure agrees with the reference") \
	X(MEASURED, "measured", 0, 1, "a valid figure that assay does not judge") \
	X(WARN, "warn", 0, 3, "a valid figure, but something needs attention")           \
	X(FAIL, "fail", 1, 7, "the result is wrong, or the rate is too low")            \
	X(UNKNOWN, "unknown", 2, 4, "a verdict was required, but assay has no reference, or the check could not run") \
	X(SKIP, "skip", 0, 0, "this machine cannot run the case, or it was not requested") \
	X(UNTRUSTED, "untrusted", 2, 5, "the case ran, but its figures are not valid") \
	X(ERROR, "error", 2, 6, "the case ended without a result; see the reason")
/* clang-format on */

/* Columns: name, text, meaning, what to do ("" = nothing). docs/reference/lists.md and the report print
 * these rows. */
/* clang-format off */
#define CAUSE_LIST(X)                                                                                  \
	X(NONE, "", "", "")                                                                            \
	X(NO_HARDWARE, "no_hardware", "no such hardware on this machine", "")                          \
	X(NOT_ASKED, "not_asked", "not requested", "")                                \
	X(RECORDED, "recorded", "assay never measures a recorded machine", "run assay on the machine itself") \
	X(UNSUPPORTED, "unsupported", "present, but does not support this", "")                               \
	X(NO_REFERENCE, "no_reference", "no sound reference to judge it by", "compare with a healthy sibling: assay compare") \
	X(LOW_CONFIDENCE, "low_confidence", "judged by an expected range from few devices", "")                 \
	X(DRIVER_MISSING, "driver_missing", "a GPU is on the PCI bus, but no NVIDIA driver works", "install the NVIDIA driver, or load its kernel module") \
	X(DRIVER_OLD, "driver_old", "the NVIDIA driver is too old", "update the NVIDIA driver") \
	X(LIBRARY_MISSING, "library_missing", "a library or one of its functions was not found", "install the library that the reason names, or set its path; assay info software lists what was found") \
	X(PERMISSION, "permission", "missing permission to read it", "run with the permission that the message names, or ask the operator") \
	X(NO_LOG, "no_log", "the kernel log could not be read", "add the user to group adm or systemd-journal, or run as root") \
	X(BUSY, "busy", "another process uses the device", "stop the other process, or use --wait or --beside") \
	X(GPU_SHARED, "gpu_shared", "several ranks share one GPU", "give each rank its own GPU (LOCAL_RANK, CUDA_VISIBLE_DEVICES)") \
	X(NOT_GRANTED, "not_granted", "assay has no access to the device", "grant access: CUDA_VISIBLE_DEVICES, cgroup, container runtime") \
	X(GPU_MISSING, "gpu_missing", "fewer GPUs answer than are on the PCI bus or were ordered", "read the kernel log, then reboot; if it stays missing and the log names its slot, reseat the GPU") \
	X(GPU_LOST, "gpu_lost", "the GPU is listed, but does not answer", "read the kernel log, then reboot; if it is lost again and an Xid names it, replace the GPU") \
	X(CONFIG_MISMATCH, "config_mismatch", "the machine differs from the stated configuration", "compare the machine with the order (--expect or the site file)") \
	X(WRONG_RESULT, "wrong_result", "the computed result is wrong", "stop using this device; repeat with assay probe stress") \
	X(UNVERIFIED, "unverified", "the result was not checked", "report it with the run directory") \
	X(INACCURATE, "inaccurate", "larger errors than the library's on the same data", "compare kernels with search=exhaustive; report it with the run directory") \
	X(NAN, "nan", "NaN or infinity instead of a finite number", "stop using this device; repeat with assay probe stress") \
	X(HBM_DATA, "hbm_data", "device memory did not return the data that was written", "stop using this device; repeat with assay probe hbm; replace the GPU if an ECC error or an Xid confirms it") \
	X(SLOW_SM, "slow_sm", "one multiprocessor (SM) is slower than its siblings", "repeat with assay probe sm; replace the GPU if wrong results, an ECC error or an Xid confirm it") \
	X(BELOW_BAND, "below_band", "below the expected range of healthy devices of this kind", "see \"Gap to the bound\" in REPORT.md; compare with siblings: assay compare") \
	X(BELOW_BOUND, "below_bound", "a small share of its links' limit; no expected range is known", "see the ranks or GPUs named; compare with a healthy sibling: assay compare") \
	X(BELOW_CEILING, "below_ceiling", "far below this machine's own measured maximum", "see \"Gap to the bound\" in REPORT.md")       \
	X(BLAS_KERNEL, "blas_kernel", "the BLAS library chose slow kernels for this CPU; others reach the expected range", "run with the setting that the report names") \
	X(LOW_EFFICIENCY, "low_efficiency", "slow for the clock that it ran at", "check library versions; compare with siblings: assay compare") \
	X(LOW_CLOCK, "low_clock", "the clock under load is low for this power limit", "check cooling and power delivery") \
	X(FLEET_LOW, "fleet_low", "all GPUs of a node are below their expected ranges in two classes", "check the clocks, power, cooling, firmware and settings of the whole node; no single GPU is to blame") \
	X(CLOCK_LOCKED, "clock_locked", "the clock stays low under load without a limit that explains it", "ask the operator for locked clocks (nvidia-smi -q -d CLOCK); if they are intended, set sm_clock in the site file") \
	X(BAND_STALE, "band_stale", "above the expected range, which is probably outdated", "report it with the run directory") \
	X(ABOVE_BOUND, "above_bound", "faster than the hardware's physical limit: the figure is wrong", "do not use the figure; report it as a defect") \
	X(ABOVE_LINK, "above_link", "faster than the links alone allow: the switch (NVLS) or the network (SHARP) adds data too", "")  \
	X(UNEXPLAINED, "unexplained", "the known factors do not explain the measurement", "see the residual in the gap section") \
	X(UNSETTLED, "unsettled", "clock, power or rate was not yet stable", "repeat with a longer --seconds") \
	X(WIDE_SPREAD, "wide_spread", "the samples vary too much", "repeat on a quiet machine")   \
	X(CPU_CONTENDED, "cpu_contended", "other work used the CPUs during the case", "stop other work, or pin the run") \
	X(CPU_CROWDED, "cpu_crowded", "a node has more ranks than CPUs, so ranks share CPUs", "start at most one rank per CPU (--ranks-per-node)") \
	X(CPU_QUOTA, "cpu_quota", "a cgroup quota limits the CPUs", "raise the quota (cpu.max; cgroup v1: cpu.cfs_quota_us)")       \
	X(POWER_LIMIT_LOWERED, "power_limit_lowered", "the enforced power limit is below the default", "ask the operator to restore the default power limit") \
	X(POWER_BRAKE, "power_brake", "the external power brake slowed the GPU", "check power supplies and the brake signal") \
	X(THERMAL_SW, "thermal_sw", "the driver slowed the GPU because of its temperature", "check cooling")  \
	X(THERMAL_HW, "thermal_hw", "the hardware slowed the GPU because of its temperature", "check cooling now: fans, coolant, heat sink") \
	X(TEMPERATURE_STOP, "temperature_stop", "stopped at the GPU's slowdown temperature or by its thermal protection", "check cooling now: fans, coolant, heat sink") \
	X(TELEMETRY_LOST, "telemetry_lost", "the telemetry sampler stopped answering", "read the kernel log; restart the driver") \
	X(TELEMETRY_GAP, "telemetry_gap", "telemetry readings are missing within the measured window", "")                \
	X(COUNTER_RESET, "counter_reset", "a counter ran backwards", "")                               \
	X(COUNTER_STUCK, "counter_stuck", "the energy counter did not change for two seconds while the GPU drew power", "use power_integral_w for the power") \
	X(ENERGY_DIFFERS, "energy_differs", "the energy counter and the power readings differ by more than 5 %", "do not use this energy; measure a longer window (--seconds)") \
	X(PCIE_WIDTH, "pcie_width", "fewer PCIe lanes in use than the device has", "compare with lspci -vv (LnkSta) after a reboot; reseat the card or riser if lspci agrees") \
	X(PCIE_GEN, "pcie_gen", "under load, the PCIe generation is below the possible one", "check BIOS settings, riser and slot") \
	X(PCIE_ERRORS, "pcie_errors", "PCIe errors were counted or logged", "repeat under load; reseat the card or riser if they rise again and the kernel logs AER errors") \
	X(NUMA_FAR, "numa_far", "host memory is on a remote NUMA node", "bind the process to the GPU's NUMA node") \
	X(NVLINK_COUNT, "nvlink_count", "fewer NVLinks are up than the device has", "read the kernel log, then reset the GPU; replace the GPU if the link stays down and an Xid names it") \
	X(NVLINK_ERRORS, "nvlink_errors", "NVLink error counters rose", "repeat under load; reseat or replace the GPU if the same link has errors again and is slow or down") \
	X(LINK_SLOW, "link_slow", "one link is slower than the others", "see the pair and direction named") \
	X(SLOW_RANK, "slow_rank", "one rank slows down the others (straggler)", "check the GPU named and other processes on it; repeat the check without this device") \
	X(NODE_SLOW, "node_slow", "one node slows down the others", "check the node named; repeat the check without this device") \
	X(NCCL_ENV, "nccl_env", "an NCCL variable slows the collectives", "unset the variable")                  \
	X(FABRIC_STATE, "fabric_state", "the NVSwitch fabric is not ready", "start the fabric manager, or wait until it is ready") \
	X(SIBLING_OUTLIER, "sibling_outlier", "differs from its siblings", "check the device named; repeat the check without this device") \
	X(ECC, "ecc", "memory errors were counted or logged", "reset the GPU; replace the GPU if they return and a remap failed or an Xid names it")     \
	X(ECC_OFF, "ecc_off", "ECC is switched off", "ask the operator to switch ECC on")              \
	X(REMAP_PENDING, "remap_pending", "a row remap waits for a reset", "reset the GPU or reboot")  \
	X(REMAP_FAILED, "remap_failed", "a row could not be remapped, or no spare row is left", "reset the GPU and run NVIDIA's field diagnostic; replace the GPU if the diagnostic agrees")              \
	X(RETIRED_PAGES, "retired_pages", "memory pages were retired", "reset the GPU; replace the GPU if their number grows and ECC errors or an Xid confirm it") \
	X(RECOVERY_ACTION, "recovery_action", "the driver requests an action", "do what the message says")     \
	X(XID, "xid", "the driver logged an Xid", "do what the message says for this Xid")                              \
	X(VERSION_MISMATCH, "version_mismatch", "driver and libraries have incompatible versions", "install matching versions, then reload the driver's kernel module or reboot") \
	X(TEAM_LATE, "team_late", "a rank did not join in time", "check the rank named; use --join if nodes start slowly") \
	X(TEAM_LOST, "team_lost", "a rank of the run was lost", "check the rank and the node named") \
	X(TEAM_REFUSED, "team_refused", "the ranks do not belong to one run", "check what the message names: rank, size, secret or port") \
	X(LIMIT_LOW, "limit_low", "a system limit is too low", "raise the limit that the message names")                \
	X(MIG_MODE, "mig", "the GPU is in MIG mode", "")                                               \
	X(SERVER_UNREACHABLE, "server_unreachable", "the server could not be reached, or does not serve requests", "check the address, and that the server runs: curl URL/v1/models") \
	X(SLO_MISSED, "slo_missed", "the server did not meet the limits that were asked for", "lower the rate, or raise the server's capacity; assay load --sweep finds the highest rate that meets them") \
	X(SLO_UNDECIDED, "slo_undecided", "too few requests to decide whether the limits are met", "repeat with a longer --duration or a higher --rate") \
	X(NO_ANSWER, "no_answer", "no request was answered within the measured window", "repeat with a longer --duration, and see the server's log") \
	X(REQUESTS_FAILED, "requests_failed", "more than 1 % of the requests failed", "see the errors by class in the report, and the server's log") \
	X(CLIENT_LIMITED, "client_limited", "the load test's own client was too slow, so the figures are not the server's", "give the client more CPUs or --threads, lower the rate, or run it on another machine") \
	X(CACHED_PROMPTS, "cached_prompts", "the server had prompts in its cache that should be new", "repeat the run; if the cache may be warm, use --warm-cache") \
	X(USAGE_WRONG, "usage_wrong", "the server's token counts differ from its texts", "check that --tokenizer is the model's; then report it to the server's makers") \
	X(STREAM_FAULTY, "stream_faulty", "the server's event streams are cut or have events twice", "check the server, and any proxy before it") \
	X(CRASHED, "crashed", "the worker crashed", "see the signal and the worker's last output")      \
	X(TIMED_OUT, "timed_out", "over its time limit", "raise the limit, or find what hangs")    \
	X(STUCK, "stuck", "KILL does not end it: a thread waits inside the kernel", "reboot; do not use the device until then") \
	X(QUARANTINED, "quarantined", "an earlier case left its device lost, stuck or too hot", "see the earlier case that lost the device") \
	X(NO_MEMORY, "no_memory", "out of memory", "free memory, or use a smaller size")               \
	X(DISK_FULL, "disk_full", "no space left in the run directory", "free space, or use --out with another disk") \
	X(BAD_INPUT, "bad_input", "an option or file is wrong", "see the place that the message names")                 \
	X(VENDOR_CALL, "vendor_call", "a vendor call failed", "see the call and its error")            \
	X(INTERRUPTED, "interrupted", "stopped on request", "continue with --resume DIR")        \
	X(CUT, "cut", "the journal ends within this case", "continue with --resume DIR")          \
	X(REBOOTED, "rebooted", "the machine was rebooted before the run continued", "read the log of the previous boot (journalctl -b -1) and the service processor's log") \
	X(OPERATOR_INPUT, "operator_input", "only the operator can know this", "state it with --expect or in a site file") \
	X(DEFECT, "defect", "a defect of assay", "report it with the run directory")
/* clang-format on */

#define X(name, ...) STATUS_##name,
enum status { STATUS_LIST(X) STATUS_COUNT };
#undef X
#define X(name, ...) ENDING_##name,
enum ending { ENDING_LIST(X) ENDING_COUNT };
#undef X
#define X(name, ...) VERDICT_##name,
enum verdict { VERDICT_LIST(X) VERDICT_COUNT };
#undef X
#define X(name, ...) CAUSE_##name,
enum cause { CAUSE_LIST(X) CAUSE_COUNT };
#undef X

/* Names in journals and reports: "ok", "timed_out", "pass", "driver_missing". Never NULL. */
const char *status_name(enum status status);
const char *ending_name(enum ending ending);
const char *verdict_name(enum verdict verdict);
const char *cause_name(enum cause cause);
const char *status_text(enum status status);
const char *ending_text(enum ending ending);
const char *verdict_text(enum verdict verdict);
const char *cause_text(enum cause cause);
const char *cause_action(enum cause cause);
/* Finds a value by its name. False if the name is not in the list (a journal may come from another
 * version). */
int status_from_name(const char *name, enum status *out);
int ending_from_name(const char *name, enum ending *out);
int verdict_from_name(const char *name, enum verdict *out);
int cause_from_name(const char *name, enum cause *out);
/* The exit code that a required case with this verdict demands: 0, 1 or 2. */
int verdict_exit_code(enum verdict verdict);
/* The larger weight counts among verdicts: 0 (skip) to VERDICT_WEIGHT_MOST (fail, and any value outside
 * the list). */
enum { VERDICT_WEIGHT_MOST = 7 };
int verdict_weight(enum verdict verdict);
#endif
