/* SPDX-License-Identifier: Apache-2.0 */
/* The total rate of a machine's network ports. */
#ifndef MACHINE_LINK_NETWORK_H
#define MACHINE_LINK_NETWORK_H
#include <jansson.h>

struct network {
	double rate;	/* B/s in one direction, all ports together; 0: unknown */
	unsigned ports; /* number of ports in that sum */
};

/* Sums the rates of the facts' `ports`: the active ports of RDMA devices (InfiniBand, RoCE), or all Ethernet
 * ports that are up if their sum is larger (a bond of RDMA ports reports the rate of one port). The rate is
 * unknown if a port that is up reports no rate, or if NVLinks may lead to other machines. Functions that
 * share the hardware port of another one are not counted. */
void network_of(struct network *out, const json_t *facts);
#endif
