/* SPDX-License-Identifier: Apache-2.0 */
#include "probe/collective/host.h"
#include <math.h>
#include <string.h>

enum { LOOKED = 4096 }; /* wrong elements for which verification looks for the rank at fault */

bool collective_host_type(enum operand_type type)
{
	return type == OPERAND_F32 || type == OPERAND_F64 || type == OPERAND_S8 || type == OPERAND_S32;
}

static void put(enum operand_type type, void *element, double value)
{
	const float single = (float)value;
	const int32_t whole = (int32_t)value;
	const int8_t small = (int8_t)value;

	if (type == OPERAND_F64)
		memcpy(element, &value, sizeof(value));
	else if (type == OPERAND_F32)
		memcpy(element, &single, sizeof(single));
	else if (type == OPERAND_S32)
		memcpy(element, &whole, sizeof(whole));
	else
		memcpy(element, &small, sizeof(small));
}

void collective_host_fill(const struct collective_inputs *in, const struct collective_part *gift, void *out)
{
	unsigned bytes = collective_type_bytes(in->type);
	unsigned char *at = (unsigned char *)out + gift->offset * bytes;

	for (uint64_t i = 0; i < gift->count; i++, at += bytes) {
		if (in->rule == COLLECTIVE_MOVE) {
			uint64_t bits = collective_moved(in, gift->from, gift->to, gift->first + i);

			memcpy(at, &bits, bytes); /* little-endian: the low bytes */
		} else {
			put(in->type, at, collective_given(in, gift->from, gift->first + i));
		}
	}
}

/* Counts the ranks whose missing or doubled share explains the difference between the found value and the
 * correct one. */
static void suspect_ranks(const struct collective_inputs *in, uint64_t i, double found,
			  unsigned long long *suspect)
{
	double off = found - collective_answer(in, i);

	suspect[2 * in->ranks]++;
	for (unsigned r = 0; r < in->ranks; r++) {
		double share = collective_given(in, r, i);

		suspect[r] += fabs(share) > 0 && !(off < -share) && !(off > -share);
		suspect[in->ranks + r] += fabs(share) > 0 && !(off < share) && !(off > share);
	}
}

static bool right(const struct collective_inputs *in, const struct collective_part *p, uint64_t i,
		  const unsigned char *element)
{
	unsigned bytes = collective_type_bytes(in->type);
	double found, answer;
	uint64_t bits;

	if (in->rule == COLLECTIVE_MOVE) {
		bits = collective_moved(in, p->from, p->to, p->first + i);
		return !memcmp(element, &bits, bytes);
	}
	found = collective_number(in->type, element);
	answer = collective_answer(in, p->first + i);
	return found >= answer && found <= answer; /* false for a NaN */
}

void collective_host_check(const struct collective_inputs *in, const struct collective_part *part,
			   const void *data, struct wrong *w, unsigned long long *suspect)
{
	unsigned bytes = collective_type_bytes(in->type);
	const unsigned char *at = (const unsigned char *)data + part->offset * bytes;

	for (uint64_t i = 0; i < part->count; i++, at += bytes) {
		double found;

		if (right(in, part, i, at))
			continue;
		found = collective_number(in->type, at);
		if (!w->count)
			collective_place_wrong(in, part, i, at, w);
		collective_blame_sender(in, part, 1, w);
		w->count++;
		w->nan |= !isfinite(found);
		if (in->rule == COLLECTIVE_SUM && suspect[2 * in->ranks] < LOOKED)
			suspect_ranks(in, part->first + i, found, suspect);
	}
	w->checked += part->count;
	w->total += part->count;
}
