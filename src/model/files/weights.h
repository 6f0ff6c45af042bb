/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model on disk: a folder of Hugging Face's (config.json, safetensors, sharded or not) or a GGUF file.
 * Opening it reads headers alone and holds every tensor against the shape: missing, extra, wrong size or
 * type are refused then. Numbers are taken straight from the mapped file into memory that the caller owns.
 */
#ifndef MODEL_FILES_WEIGHTS_H
#define MODEL_FILES_WEIGHTS_H
#include "model/shape/tensor_names.h"
#include "model/backend/ops.h"
#include "model/shape/shape.h"
#include "model/tensor/tensor.h"

struct gguf;
struct shards;

struct weights {
	struct shape shape;
	struct gguf *gguf;     /* NULL: a folder */
	struct shards *shards; /* NULL: a GGUF file */
	char path[4096];       /* as given: the folder, or the GGUF file */
};

/* Owner: caller, weights_release. */
enum status weights_open(struct weights *w, const char *path, struct error *err);
void weights_release(struct weights *w);
uint64_t weights_bytes(const struct weights *w); /* of its files */

/* Where a tensor goes: by Hugging Face's name, F32, BF16 or F16, or as the file has it; any ld; a vector is
 * one row. */
struct weights_slot {
	const char *name;
	struct mat to;
};

/* Each slot filled, by as many threads as there are CPUs; what was read of the file is forgotten on the way,
 * so that it does not stand in memory beside what it became. None names what the model has not, in another
 * size. Conversions round to nearest even. A NaN or infinity in the file is refused: it says which tensor. */
enum status weights_load(const struct weights *w, const struct weights_slot *slots, size_t count,
			 struct error *err);

/* The same to where a back end's matrices are. */
enum status weights_load_to(const struct weights *w, struct backend *back, const struct weights_slot *slots,
			    size_t count, struct error *err);

/* What was read of the files no longer counts as this process's memory. */
void weights_forget(const struct weights *w);

/* Rows of a tensor as floats; a vector is one row. NaN and infinity are refused as by weights_load. */
enum status weights_rows(const struct weights *w, const char *name, int64_t row, int64_t rows, float *out,
			 struct error *err);

/* A tensor as it lies in the file, for who keeps it quantised. */
struct weights_raw {
	const struct tensor *tensor;
	int64_t interleaved; /* heads; 0: rows stand in order */
};

/* False: there is none of this name (a tied head has none of its own). */
bool weights_find(struct weights_raw *raw, const struct weights *w, const char *name);
/* The bytes of the model's row `row`, wherever the file keeps it: tensor's bytes / rows long. */
const uint8_t *weights_row(const struct weights_raw *raw, int64_t row);
#endif
