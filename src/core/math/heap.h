/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of numbered items with the least key first. Each item is in it at most once and can be
 * removed from anywhere. Operations take O(log count). An item with the greatest key so far takes constant
 * time. */
#ifndef CORE_MATH_HEAP_H
#define CORE_MATH_HEAP_H
#include <stdbool.h>
#include <stdint.h>

struct heap {
	uint32_t *items;  /* [capacity] in heap order */
	uint32_t *places; /* [capacity] index in `items` plus 1, by item; 0: not in the heap */
	uint64_t *keys;	  /* [capacity] by item */
	uint32_t count;
};

/* Items are 0 .. capacity - 1. False: no memory; then the heap is valid for heap_free. */
bool heap_create(struct heap *h, uint32_t capacity);
void heap_free(struct heap *h);
/* The item must not be in the heap. */
void heap_insert(struct heap *h, uint32_t item, uint64_t key);
/* Does nothing if the item is not in the heap. */
void heap_remove(struct heap *h, uint32_t item);
bool heap_contains(const struct heap *h, uint32_t item);
/* The item with the least key; the heap must not be empty. */
uint32_t heap_first(const struct heap *h);
/* The least key; UINT64_MAX if the heap is empty. */
uint64_t heap_first_key(const struct heap *h);
#endif
