/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/train/cross_entropy.cu in double. */
#include "kernel/train/cross_entropy.h"
#include "ref_train.h"

static void loss_row(const struct train_loss_args *a, int64_t i)
{
	const int32_t target = AT(const int32_t, a->target)[AT(const int32_t, a->row)[i]];
	const int64_t at = i * a->ld;
	double most = -INFINITY, sum = 0;

	if (target < 0 || (uint32_t)target >= a->vocab) {
		AT(float, a->loss)[i * a->ld_loss] = 0;
		for (int64_t j = 0; a->grad_scale != 0 && j < a->vocab; j++)
			ref_put_number(a->logits, at + j, 0);
		return;
	}
	for (int64_t j = 0; j < a->vocab; j++)
		most = fmax(most, ref_number(a->logits, at + j));
	for (int64_t j = 0; j < a->vocab; j++)
		sum += exp(ref_number(a->logits, at + j) - most);
	AT(float, a->loss)[i * a->ld_loss] = (float)(most + log(sum) - ref_number(a->logits, at + target));
	for (int64_t j = 0; a->grad_scale != 0 && j < a->vocab; j++)
		ref_put_number(a->logits, at + j,
			       (double)a->grad_scale * (exp(ref_number(a->logits, at + j) - most) / sum -
							(j == target ? 1 : 0)));
}

static void cross_entropy(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_loss_args *a = args;

	(void)entry, (void)grid;
	for (int64_t i = 0; i < a->rows; i++)
		loss_row(a, i);
}

const struct ref_row REF_TRAIN_ROWS(ref_train_loss)[] = {
	{REF_TRAIN_ENTRY("train_cross_entropy"), cross_entropy, sizeof(struct train_loss_args),
	 offsetof(struct train_loss_args, logits)},
	{NULL, NULL, 0, 0},
};
