/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What crossed the fake NVLinks. FAKE_TRAFFIC names a file that the fake driver and the fake NVML map, in
 * whatever process they are: what one moves from GPU to GPU the other's counters show. Not set: nothing is
 * counted.
 */
#ifndef TESTS_FAKE_TRAFFIC_H
#define TESTS_FAKE_TRAFFIC_H
#include <stdint.h>

void traffic_add(int from, int to, uint64_t bytes);
/* By all its links, since the file was empty. */
uint64_t traffic_sent(int device);
uint64_t traffic_received(int device);
#endif
