/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine's network ports carry together. */
#ifndef MACHINE_LINK_NETWORK_H
#define MACHINE_LINK_NETWORK_H
#include <jansson.h>

struct network {
	double rate;	/* B/s one way, all ports together; 0: not known */
	unsigned ports; /* that are in it */
};

/*
 * Of the facts' `ports`: those of RDMA devices (InfiniBand, RoCE) that are active, or all Ethernet ports that
 * are up where these carry more (a bond of RDMA ports tells the rate of one). A port that is up and tells no
 * rate leaves the whole unknown; so does a machine whose NVLinks may lead to other machines. Functions of
 * another port are not counted: they share it.
 */
void network_of(struct network *out, const json_t *facts);
#endif
