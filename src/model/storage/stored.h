/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the weights of the decoder's linear layers are stored (docs/explanation/design/storage.md). GEMMs read
 * a resident weight where it is stored. Any other weight is a list of struct stored, and a slot
 * (model/storage/slots.h) has it in the form that GEMMs read.
 */
#ifndef MODEL_STORAGE_STORED_H
#define MODEL_STORAGE_STORED_H
#include "model/bnb4/bnb4.h"
#include "model/tensor/arena.h"

enum storage_form {
	STORAGE_NUMBERS,   /* resident, in the back end's type or in the file's */
	STORAGE_E4M3_ROWS, /* resident, in E4M3 with a scale per row */
	STORAGE_BNB4,	   /* in slots; stored in 4 bits as by bitsandbytes */
};
struct storage {
	enum storage_form form;
	enum bnb4_type type; /* BNB4 only, as is nested: double quantization */
	bool nested;
};

/* One tensor of a linear layer, in memory of the device. Blocks never cross a tensor, so a combined layer (q,
 * k, v; gate, up) has one for each of its tensors. */
struct stored {
	int64_t begin; /* its first row in the linear layer's W */
	struct bnb4 bnb4;
};
enum { STORED_MOST = 3 }; /* tensors of a linear layer */

/* "nf4 with double quantization", for messages and for an adapter's metadata; "" for a resident form. */
const char *storage_word(const struct storage *s);
/* False: no 4-bit form has this word. */
bool storage_of_word(struct storage *s, const char *word);
static inline bool storage_is_resident(const struct storage *s)
{
	return s->form != STORAGE_BNB4;
}
/* Allocates the memory of a tensor whose rows, cols, type and nested are set. Nothing is initialized. */
enum status stored_place(struct stored *s, struct arena *a, const char *name, struct error *err);
/* Bytes of its stored form. */
uint64_t stored_bytes(const struct stored *s);

/* A linear layer of a slot (ops->slot_fill). `to` is W, as numbers or in E4M3 with scales of blocks, and only
 * an E4M3 W has `transposed`, the same bytes and scales. */
struct slot_part {
	const struct stored *from; /* the tensors of W */
	int count;		   /* 0: `to` is resident, and only `transposed` is filled */
	struct mat to, transposed;
};
#endif
