/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered set of numbered nodes in memory of the caller (a treap; Seidel and Aragon, Algorithmica 1996).
 * A node's weight is a hash of its number, so the same operations give the same tree. Operations take
 * O(log count), expected. */
#ifndef ENGINE_SCHEDULE_TREAP_H
#define ENGINE_SCHEDULE_TREAP_H
#include <stdint.h>

enum { TREAP_NONE = UINT32_MAX };

struct treap_node {
	uint64_t key[2]; /* the order: key[0], then key[1], then the node's number */
	uint32_t left, right;
};

/* `root` is TREAP_NONE for an empty set. The node's key must be set, and it must be in no set. */
void treap_insert(struct treap_node *nodes, uint32_t *root, uint32_t node);
/* The node must be in the set, with the key that it had when it was inserted. */
void treap_remove(struct treap_node *nodes, uint32_t *root, uint32_t node);
/* The first node; TREAP_NONE if the set is empty. */
uint32_t treap_first(const struct treap_node *nodes, uint32_t root);
#endif
