/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, as a program has its driver do them. */
#ifndef TESTS_FAKE_CUPTI_LAUNCH_H
#define TESTS_FAKE_CUPTI_LAUNCH_H
#include "profile/inject/launch.h"

enum { FAKE_CUPTI_DRIVER_LAUNCH = 307, FAKE_CUPTI_DRIVER_GRAPH = 514 };

int cuptiSubscribe(void **out, launch_callback *visit, void *arg);
int cuptiEnableCallback(uint32_t enable, void *of, int domain, uint32_t cbid);
int cuptiGetDeviceId(void *context, uint32_t *device);
/* The kernel ran for so long; whoever follows launches is told before and behind it. */
void fake_cupti_launch(const char *kernel, uint32_t correlation, double ns);
void fake_cupti_graph(void);
/* The program's one context was made, or is about to go. */
void fake_cupti_context(bool made);
#endif
