/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/schedule/treap.h"

#include <stdbool.h>

#define NONE ((uint32_t)TREAP_NONE)

/* A bijection of 32-bit numbers without visible order (lowbias32, C. Wellons). */
static uint32_t weight(uint32_t node)
{
	node = (node ^ (node >> 16)) * 0x7feb352d;
	node = (node ^ (node >> 15)) * 0x846ca68b;
	return node ^ (node >> 16);
}

static bool before(const struct treap_node *nodes, uint32_t a, uint32_t b)
{
	const struct treap_node *x = nodes + a, *y = nodes + b;

	if (x->key[0] != y->key[0])
		return x->key[0] < y->key[0];
	if (x->key[1] != y->key[1])
		return x->key[1] < y->key[1];
	return a < b;
}

void treap_insert(struct treap_node *nodes, uint32_t *root, uint32_t node)
{
	uint32_t *left = &nodes[node].left, *right = &nodes[node].right, rest;

	while (*root != NONE && weight(*root) >= weight(node))
		root = before(nodes, node, *root) ? &nodes[*root].left : &nodes[*root].right;
	rest = *root;
	*root = node;
	while (rest != NONE) {
		if (before(nodes, rest, node)) {
			*left = rest;
			left = &nodes[rest].right;
			rest = *left;
		} else {
			*right = rest;
			right = &nodes[rest].left;
			rest = *right;
		}
	}
	*left = *right = NONE;
}

void treap_remove(struct treap_node *nodes, uint32_t *root, uint32_t node)
{
	uint32_t left = nodes[node].left, right = nodes[node].right;

	while (*root != node)
		root = before(nodes, node, *root) ? &nodes[*root].left : &nodes[*root].right;
	while (left != NONE && right != NONE) {
		if (weight(left) >= weight(right)) {
			*root = left;
			root = &nodes[left].right;
			left = *root;
		} else {
			*root = right;
			root = &nodes[right].left;
			right = *root;
		}
	}
	*root = left != NONE ? left : right;
}

uint32_t treap_first(const struct treap_node *nodes, uint32_t root)
{
	if (root == NONE)
		return NONE;
	while (nodes[root].left != NONE)
		root = nodes[root].left;
	return root;
}
