/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libnvidia-ml.so.1 that answers from a file in the form of a recording's nvml.json
 * (docs/explanation/design/machine.md), so any recorded machine and any failure can be staged. Without
 * FAKE_NVML_FILE it is one healthy H100 (tests/fake/h100.json). Switches, each an environment variable; KEY
 * is a key of the file: "power", "reasons", "fabric", "energy_total": FAKE_NVML_INIT=9            nvmlInit
 * answers 9 (driver not loaded) FAKE_NVML_COUNT=7           fewer (or more) devices than the file has
 * FAKE_NVML_RET=KEY=15,... that call answers the code FAKE_NVML_VALUE=KEY=72,...  that call answers 0 and the
 * number FAKE_NVML_RATE=KEY=5e6,...  that number grows by so much a second (negative: runs backwards)
 *   FAKE_NVML_AFTER=0.5         RET, VALUE, LOST and HANG begin so many seconds after nvmlInit
 *   FAKE_NVML_BEFORE=3          they end so many seconds after nvmlInit
 *   FAKE_NVML_IN=__sample       they are for processes that have this word on their command line
 *   FAKE_NVML_FROM=2 with FAKE_NVML_COUNTED=FILE   they are for those processes from the second one on, as
 *                               FILE counts them
 *   FAKE_NVML_LOST=1            every call on device 1 answers 15 (GPU is lost)
 *   FAKE_NVML_LOST_NAMED=1      except for its PCI address, which the driver may still know
 *   FAKE_NVML_HANG=KEY          that call never returns ("init" too)
 *   FAKE_NVML_HANG_ON=3         HANG is for device 3 alone
 *   FAKE_NVML_BUSY=KEY=5,...    that call takes 5 ms of CPU time
 *   FAKE_NVML_CRASH=KEY         that call kills the process
 *   FAKE_NVML_XID=94@0.3        an Xid event on device 0, 0.3 s after nvmlInit; 48,94@0.3: one after the other
 *   FAKE_NVML_DOWN=1:12-17      device 1's NVLinks 12 to 17 are not up
 *   FAKE_NVML_ERRORS=2:7        device 2's NVLink 7 replays once for each MiB that the device sends
 *   FAKE_NVML_LINKWISE=1        throughput counters know no sum over all links
 * Energy: "energy_total" and "energy" grow with "power_instant", in steps of 0.1 s as on the real cards.
 */
#ifndef TESTS_FAKE_NVML_FAKE_H
#define TESTS_FAKE_NVML_FAKE_H
#include <jansson.h>
#include <stdbool.h>
#include "vendor/nvml.h"

#define X(need, ret, field, symbol, params) ret symbol params;
NVML_FUNCTIONS(X)
#undef X

struct nvmlDevice_st {
	unsigned index;
};

/* Not the program's: its functions of the same names stay its own. */
#pragma GCC visibility push(hidden)
/* 64 devices, and behind them the MIG instances of each: "mig": [{"calls": ..}] of a device. */
enum { FAKE_INSTANCES = 8 };
extern struct nvmlDevice_st fake_devices[64 + 64 * FAKE_INSTANCES];
extern double fake_began; /* nvmlInit, seconds of the monotonic clock; 0: not yet */
double fake_now(void);
/* The text after "KEY=" in a comma-separated list, or NULL. */
const char *fake_listed(const char *variable, const char *key);
bool fake_active(void);
void fake_stage(const char *key);
const json_t *fake_file(void);
const json_t *fake_device(nvmlDevice_t d);
/* The code of one answer [code, value?]; the value, lent, in *value. Absent: not supported. */
nvmlReturn_t fake_answer(nvmlDevice_t d, const json_t *map, const char *key, const json_t **value);
/* The number of an answer, with the switches that alter it. */
double fake_number(nvmlDevice_t d, const char *key, double value);
nvmlReturn_t fake_get_number(nvmlDevice_t d, const char *key, double *out);
nvmlReturn_t fake_get_uint(nvmlDevice_t d, const char *key, unsigned *out);
nvmlReturn_t fake_get_u64(nvmlDevice_t d, const char *key, unsigned long long *out);
/* What does not fit is all ones. */
static inline unsigned long long fake_u64(double value)
{
	return value < 18446744073709551615.0 ? (unsigned long long)value : ~0ull;
}
nvmlReturn_t fake_copy_text(const json_t *value, char *out, unsigned size);
nvmlReturn_t fake_get_text(nvmlDevice_t d, const char *key, char *out, unsigned size);
/* `count` numbers of a list answer; a number alone (FAKE_NVML_VALUE) stands for the first. */
nvmlReturn_t fake_get_list(nvmlDevice_t d, const char *key, double *out, size_t count);
/* A field that a link's traffic or staged faults change (FAKE_TRAFFIC, FAKE_NVML_ERRORS, FAKE_NVML_DOWN), of
 * one link or of all (UINT_MAX); false: the file answers. */
bool fake_link_field(nvmlDevice_t d, const char *key, nvmlFieldValue_t *f);
/* {"bus_id", "device", "subsystem"} of an answer. */
nvmlReturn_t fake_pci(const json_t *value, nvmlPciInfo_t *pci);
#pragma GCC visibility pop
#endif
