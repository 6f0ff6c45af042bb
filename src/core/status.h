/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four closed lists: how a call ended, how a case ended, what it is worth, why. Each is one table;
 * names, texts, exit codes and the reference page are expansions of it.
 */
#ifndef CORE_STATUS_H
#define CORE_STATUS_H

/* name, text */
/* clang-format off */
#define STATUS_LIST(X)                                               \
	X(OK, "ok", "it worked")                                     \
	X(UNAVAILABLE, "unavailable", "library, symbol, permission or device is absent") \
	X(UNSUPPORTED, "unsupported", "present, but cannot do this") \
	X(NO_RESOURCE, "no_resource", "out of memory, handles, disk or time") \
	X(BAD_INPUT, "bad_input", "option, file or environment")     \
	X(VENDOR, "vendor", "a vendor call failed")                  \
	X(LOST, "lost", "the device went away")                      \
	X(MISMATCH, "mismatch", "the answer is wrong")               \
	X(CANCELLED, "cancelled", "stopped on request")              \
	X(BUG, "bug", "our own invariant broke")
/* clang-format on */

/* How the supervisor saw a case end. DONE carries the worker's status. */
/* clang-format off */
#define ENDING_LIST(X)                                                     \
	X(DONE, "done", "the worker reported its end")                     \
	X(CRASHED, "crashed", "the worker died of a signal or left without a word") \
	X(TIMED_OUT, "timed_out", "over its limit; TERM or KILL ended it") \
	X(STUCK, "stuck", "KILL did not end it; its devices are quarantined") \
	X(CANCELLED, "cancelled", "the run was stopped on request")        \
	X(NOT_RUN, "not_run", "its device or its worker's library was lost before") \
	X(CUT, "cut", "the journal ends inside this case")
/* clang-format on */

/*
 * name, exit code it asks for where the case is required (a fail outranks the rest), weight, meaning. Of
 * several verdicts the weightiest counts: what was judged tells more of a device than what was measured
 * alone.
 */
/* clang-format off */
#define VERDICT_LIST(X)                                                     \
	X(PASS, "pass", 0, 2, "checked, judged, within its limits")         \
	X(MEASURED, "measured", 0, 1, "a sound figure that nothing was asked to judge") \
	X(WARN, "warn", 0, 3, "sound; something deserves a look")           \
	X(FAIL, "fail", 1, 7, "the answer or the rate is wrong")            \
	X(UNKNOWN, "unknown", 2, 4, "to be judged, but by nothing sound; or it could not be looked at") \
	X(SKIP, "skip", 0, 0, "not applicable here, or not asked for")      \
	X(UNTRUSTED, "untrusted", 2, 5, "ran, but do not use the figures")  \
	X(ERROR, "error", 2, 6, "we cannot tell; see the reason")
/* clang-format on */

/* name, text, meaning, what to do ("" = nothing). docs/reference.md and the report print these rows. */
/* clang-format off */
#define CAUSE_LIST(X)                                                                                  \
	X(NONE, "", "", "")                                                                            \
	X(NO_HARDWARE, "no_hardware", "no such hardware on this machine", "")                          \
	X(NOT_ASKED, "not_asked", "not part of what was asked for", "")                                \
	X(RECORDED, "recorded", "a recorded machine is never measured", "run it on the machine itself") \
	X(UNSUPPORTED, "unsupported", "present, but cannot do this", "")                               \
	X(NO_REFERENCE, "no_reference", "nothing sound to judge it by", "compare with a healthy sibling: assay compare") \
	X(LOW_CONFIDENCE, "low_confidence", "judged by a band with thin evidence", "")                 \
	X(DRIVER_MISSING, "driver_missing", "GPU on the PCI bus, no working NVIDIA driver", "install the NVIDIA driver, or load its module") \
	X(DRIVER_OLD, "driver_old", "the driver is older than what is needed", "update the NVIDIA driver") \
	X(LIBRARY_MISSING, "library_missing", "a library or one of its functions was not found", "install it (again) or name its path; see assay info software") \
	X(PERMISSION, "permission", "reading it needs rights that we lack", "run with the right named, or ask the operator") \
	X(NO_LOG, "no_log", "the kernel log could not be read", "let the user read the kernel log (group adm or systemd-journal), or run as root") \
	X(BUSY, "busy", "another process uses the device", "free the device, or --wait, or --beside") \
	X(GPU_SHARED, "gpu_shared", "several ranks share one GPU", "give each rank its own GPU (LOCAL_RANK, CUDA_VISIBLE_DEVICES)") \
	X(NOT_GRANTED, "not_granted", "the device is not granted to us", "ask for it: CUDA_VISIBLE_DEVICES, cgroup, container runtime") \
	X(GPU_MISSING, "gpu_missing", "fewer GPUs answer than stand on the PCI bus or were bought", "read the kernel log, then reboot; if it stays missing and the log names its slot, reseat the GPU") \
	X(GPU_LOST, "gpu_lost", "listed, but does not answer", "read the kernel log, then reboot; if it is lost again and an Xid names it, replace the GPU") \
	X(CONFIG_MISMATCH, "config_mismatch", "the machine is not what was stated", "compare with the order: --expect or the site file") \
	X(WRONG_RESULT, "wrong_result", "the computed answer is wrong", "stop using this device; repeat with assay probe stress") \
	X(UNVERIFIED, "unverified", "the result was not checked", "report it with the run directory") \
	X(INACCURATE, "inaccurate", "errs more than the library does on the same data", "compare kernels with search=exhaustive; report it with the run directory") \
	X(NAN, "nan", "NaN or infinity where a finite number belongs", "stop using this device; repeat with assay probe stress") \
	X(HBM_DATA, "hbm_data", "device memory returned other data than was written", "stop using this device; repeat with assay probe hbm; replace it if an ECC error or an Xid agrees") \
	X(SLOW_SM, "slow_sm", "one multiprocessor is slower than its siblings", "repeat with assay probe sm; replace the GPU if wrong results, an ECC error or an Xid agree") \
	X(BELOW_BAND, "below_band", "slower than healthy devices of this kind", "see the gap; compare siblings") \
	X(BELOW_BOUND, "below_bound", "a small share of what its links allow, where no band is known", "see who is named; compare with a healthy sibling: assay compare") \
	X(BELOW_CEILING, "below_ceiling", "far under this machine's own ceiling", "see the gap")       \
	X(BLAS_KERNEL, "blas_kernel", "the BLAS library chose slow kernels for this CPU; others reach the range", "run with the setting named") \
	X(LOW_EFFICIENCY, "low_efficiency", "slow at the clock that was held", "check library versions; compare siblings") \
	X(LOW_CLOCK, "low_clock", "held clock is low for this power limit", "check cooling and power delivery") \
	X(FLEET_LOW, "fleet_low", "all GPUs of a node are below their ranges in two classes", "check the clocks, power, cooling, firmware and settings of the whole node; no single GPU is to blame") \
	X(CLOCK_LOCKED, "clock_locked", "the clock stays low under load without a limit that explains it", "ask the operator for locked clocks (nvidia-smi -q -d CLOCK); if they are meant, state sm_clock in the site file") \
	X(BAND_STALE, "band_stale", "faster than the band's top: the band is old", "tell us, with the run directory") \
	X(ABOVE_BOUND, "above_bound", "faster than physics allows: the figure is wrong", "do not use the figure; report it as a defect") \
	X(ABOVE_LINK, "above_link", "faster than the links alone allow: the switch adds (NVLS), or the network (SHARP)", "")  \
	X(UNEXPLAINED, "unexplained", "the factors do not reproduce the measurement", "see the gap's residual") \
	X(UNSETTLED, "unsettled", "clock, power or rate had not settled", "repeat with a longer --seconds") \
	X(WIDE_SPREAD, "wide_spread", "the samples scatter too widely", "repeat on a quiet machine")   \
	X(CPU_CONTENDED, "cpu_contended", "other work took the CPUs during the case", "stop other work, or pin the run") \
	X(CPU_CROWDED, "cpu_crowded", "ranks of one node outnumber its CPUs and take turns", "start as many ranks a node as it has CPUs (--ranks-per-node)") \
	X(CPU_QUOTA, "cpu_quota", "a cgroup quota limits the CPUs", "raise the quota (cpu.max; cgroup v1: cpu.cfs_quota_us)")       \
	X(POWER_LIMIT_LOWERED, "power_limit_lowered", "the enforced power limit is below the default", "ask the operator to restore the default power limit") \
	X(POWER_BRAKE, "power_brake", "the external power brake slowed the GPU", "check power supplies and the brake signal") \
	X(THERMAL_SW, "thermal_sw", "the driver slowed the GPU for its temperature", "check cooling")  \
	X(THERMAL_HW, "thermal_hw", "the hardware slowed the GPU for its temperature", "check cooling now: fans, coolant, heat sink") \
	X(TEMPERATURE_STOP, "temperature_stop", "stopped at its slowdown temperature or by its thermal protection", "check cooling now: fans, coolant, heat sink") \
	X(TELEMETRY_LOST, "telemetry_lost", "the sampler stopped answering", "read the kernel log; restart the driver") \
	X(TELEMETRY_GAP, "telemetry_gap", "readings are missing inside the window", "")                \
	X(COUNTER_RESET, "counter_reset", "a counter ran backwards", "")                               \
	X(COUNTER_STUCK, "counter_stuck", "the energy counter stood still for two seconds while power was drawn", "take power from power_integral_w") \
	X(PCIE_WIDTH, "pcie_width", "fewer PCIe lanes than the device has", "compare with lspci -vv (LnkSta) after a reboot; reseat the card or riser if it agrees") \
	X(PCIE_GEN, "pcie_gen", "slower PCIe generation under load than possible", "check BIOS settings, riser and slot") \
	X(PCIE_ERRORS, "pcie_errors", "PCIe errors were counted or logged", "repeat under load; reseat the card or riser if they rise again and the kernel logs AER errors") \
	X(NUMA_FAR, "numa_far", "host memory on a far NUMA node", "bind the process to the GPU's node") \
	X(NVLINK_COUNT, "nvlink_count", "fewer NVLinks are up than the device has", "read the kernel log, then reset the GPU; replace it if the link stays down and an Xid names it") \
	X(NVLINK_ERRORS, "nvlink_errors", "NVLink errors rose", "repeat under load; reseat or replace the GPU if the same link errs again and is slow or down") \
	X(LINK_SLOW, "link_slow", "one link is slower than the others", "see the pair and direction named") \
	X(SLOW_RANK, "slow_rank", "one rank holds up the others", "look at the GPU named, and at what else runs on it; repeat without it to confirm") \
	X(NODE_SLOW, "node_slow", "one node holds up the others", "look at the node named; repeat without it to confirm") \
	X(NCCL_ENV, "nccl_env", "an NCCL variable slows the collectives", "unset it")                  \
	X(FABRIC_STATE, "fabric_state", "the NVSwitch fabric is not ready", "start or wait for the fabric manager") \
	X(SIBLING_OUTLIER, "sibling_outlier", "differs from its siblings", "see the part named; repeat without it to confirm") \
	X(ECC, "ecc", "memory errors were counted or logged", "reset the GPU; replace it if they return and a remap failed or an Xid names it")     \
	X(ECC_OFF, "ecc_off", "ECC is switched off", "ask the operator to switch ECC on")              \
	X(REMAP_PENDING, "remap_pending", "a row remap waits for a reset", "reset the GPU or reboot")  \
	X(REMAP_FAILED, "remap_failed", "a row could not be remapped, or no spare row is left", "reset the GPU and run NVIDIA's field diagnostic; replace the GPU if it agrees")              \
	X(RETIRED_PAGES, "retired_pages", "memory pages were retired", "reset the GPU; replace it if they grow and ECC errors or an Xid agree") \
	X(RECOVERY_ACTION, "recovery_action", "the driver asks for an action", "do what it names")     \
	X(XID, "xid", "the driver logged an Xid", "see the Xid's action")                              \
	X(VERSION_MISMATCH, "version_mismatch", "driver and libraries do not fit together", "install matching releases, then reload the driver's module or reboot") \
	X(TEAM_LATE, "team_late", "a rank did not come in time", "see the rank named; --join where nodes start slowly") \
	X(TEAM_LOST, "team_lost", "a rank of the team was lost", "see the rank and the node named") \
	X(TEAM_REFUSED, "team_refused", "the ranks do not make one team", "see what is named: rank, size, secret or port") \
	X(LIMIT_LOW, "limit_low", "a system limit is too low", "raise the limit named")                \
	X(MIG_MODE, "mig", "the GPU is in MIG mode", "")                                               \
	X(CRASHED, "crashed", "the worker crashed", "see the signal and the worker's last words")      \
	X(TIMED_OUT, "timed_out", "over its time limit", "raise the limit, or look for what hangs")    \
	X(STUCK, "stuck", "beyond KILL: a thread waits inside the kernel", "reboot; the device is quarantined until then") \
	X(QUARANTINED, "quarantined", "its device was lost, stuck or too hot before", "see the case that lost it") \
	X(NO_MEMORY, "no_memory", "out of memory", "free memory, or use a smaller size")               \
	X(DISK_FULL, "disk_full", "no space left in the run directory", "free space, or --out elsewhere") \
	X(BAD_INPUT, "bad_input", "an option or file is wrong", "see the place named")                 \
	X(VENDOR_CALL, "vendor_call", "a vendor call failed", "see the call and its error")            \
	X(INTERRUPTED, "interrupted", "stopped on request", "--resume DIR goes on")        \
	X(CUT, "cut", "the record ends inside this case", "--resume DIR goes on")          \
	X(REBOOTED, "rebooted", "the machine was started anew before the run went on", "read the log of the boot before (journalctl -b -1) and the service processor's") \
	X(OPERATOR_INPUT, "operator_input", "only the operator knows", "state it: --expect or a site file") \
	X(DEFECT, "defect", "assay broke its own invariant", "report it with the run directory")
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

/* Names as journals and reports write them: "ok", "timed_out", "pass", "driver_missing". Never NULL. */
const char *status_name(enum status status);
const char *ending_name(enum ending ending);
const char *verdict_name(enum verdict verdict);
const char *cause_name(enum cause cause);
const char *status_text(enum status status);
const char *ending_text(enum ending ending);
const char *verdict_text(enum verdict verdict);
const char *cause_text(enum cause cause);
const char *cause_action(enum cause cause);
/* Back from a name; false where it is not in the list (a journal from a stranger). */
int status_from_name(const char *name, enum status *out);
int ending_from_name(const char *name, enum ending *out);
int verdict_from_name(const char *name, enum verdict *out);
int cause_from_name(const char *name, enum cause *out);
/* 0, 1 or 2: what a required case with this verdict asks of the exit code. */
int verdict_exit_code(enum verdict verdict);
/* Which of two verdicts counts: 0 (skip) to VERDICT_WEIGHT_MOST (fail, and what is not in the list). */
enum { VERDICT_WEIGHT_MOST = 7 };
int verdict_weight(enum verdict verdict);
#endif
