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

/* The place of a row's target; -1: another rank has it. */
static int64_t part_target(const struct train_loss_part_args *a, int64_t i)
{
	const int64_t at = (int64_t)AT(const int32_t, a->target)[AT(const int32_t, a->row)[i]] - a->first;

	return at < a->vocab ? at : -1;
}

static void loss_part(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_loss_part_args *a = args;

	(void)entry, (void)grid;
	for (int64_t i = 0; i < a->rows; i++) {
		float *const out = AT(float, a->part) + i * a->ld_part;
		const int64_t target = part_target(a, i);
		double most = -INFINITY, sum = 0;

		for (int64_t j = 0; j < a->vocab; j++)
			most = fmax(most, ref_number(a->logits, i * a->ld + j));
		for (int64_t j = 0; j < a->vocab; j++)
			sum += exp(ref_number(a->logits, i * a->ld + j) - most);
		out[0] = (float)most;
		out[1] = (float)sum;
		out[2] = target < 0 ? 0 : (float)ref_number(a->logits, i * a->ld + target);
	}
}

static void loss_join(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_loss_part_args *a = args;

	(void)entry, (void)grid;
	for (int64_t i = 0; i < a->rows; i++) {
		const float *const part = AT(const float, a->part) + i * a->ld_part;
		const int64_t next = a->rows * a->ld_part, target = part_target(a, i);
		double most = -INFINITY, sum = 0, z = 0;

		for (int64_t r = 0; r < a->ranks; r++)
			most = fmax(most, (double)part[r * next]);
		for (int64_t r = 0; r < a->ranks; r++) {
			sum += (double)part[r * next + 1] * exp((double)part[r * next] - most);
			z += (double)part[r * next + 2];
		}
		AT(float, a->loss)[i * a->ld_loss] = (float)(most + log(sum) - z);
		for (int64_t j = 0; a->grad_scale != 0 && j < a->vocab; j++)
			ref_put_number(a->logits, i * a->ld + j,
				       (double)a->grad_scale *
					       (exp(ref_number(a->logits, i * a->ld + j) - most) / sum -
						(j == target ? 1 : 0)));
	}
}

const struct ref_row REF_TRAIN_ROWS(ref_train_loss)[] = {
	{REF_TRAIN_ENTRY("train_cross_entropy"), cross_entropy, sizeof(struct train_loss_args),
	 offsetof(struct train_loss_args, logits)},
	{REF_TRAIN_ENTRY("train_loss_part"), loss_part, sizeof(struct train_loss_part_args),
	 offsetof(struct train_loss_part_args, part)},
	{REF_TRAIN_ENTRY("train_loss_join"), loss_join, sizeof(struct train_loss_part_args),
	 offsetof(struct train_loss_part_args, logits)},
	{NULL, NULL, 0, 0},
};
