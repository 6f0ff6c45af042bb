/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

const struct ref_row *ref_find(const char *entry)
{
	static const struct ref_row *const files[] = {ref_attention_backward,
						      ref_attention_lists,
						      ref_attention_own,
						      ref_attention_sparse,
						      ref_bnb4,
						      ref_collective,
						      ref_memory,
						      ref_data,
						      ref_decode,
						      ref_hbm,
						      ref_link,
						      ref_operand,
						      ref_paged,
						      ref_step_rows,
						      ref_step_sample,
						      ref_skinny,
						      ref_train_attention,
						      ref_train_attention_f32,
						      ref_train_flat,
						      ref_train_fp8,
						      ref_train_loss,
						      ref_train_loss_f32,
						      ref_train_norm,
						      ref_train_norm_f32,
						      ref_train_rows,
						      ref_train_rows_f32,
						      ref_train_states};

	for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
		for (const struct ref_row *r = files[f]; r->entry; r++) {
			size_t length = strlen(r->entry);
			bool family = r->entry[length - 1] == '_';

			if (family ? !strncmp(entry, r->entry, length) : !strcmp(entry, r->entry))
				return r;
		}
	}
	return NULL;
}

bool ref_run(const char *entry, struct ref_grid grid, const void *args)
{
	const struct ref_row *r = ref_find(entry);

	if (r)
		r->run(entry, grid, args);
	return r;
}
