/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a training run's configuration: refused with a sentence, or written as it was understood and read back
 * to the same. */
#include "fuzz.h"

#include "train/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct config c, again;
	struct text first = {0}, second = {0};
	enum status st;

	if (memmem(data, size, "deepspeed", 9)) /* it may name a file */
		return 0;
	st = config_parse(&c, "f", (const char *)data, size, &err);
	FUZZ_CHECK(st == err.status);
	FUZZ_CHECK(st == STATUS_OK || *err.text);
	if (st)
		return 0;
	config_write(&first, &c);
	FUZZ_CHECK(!config_parse(&again, "g", text_str(&first), first.size, &err));
	config_write(&second, &again);
	FUZZ_CHECK(!strcmp(text_str(&first), text_str(&second)));
	config_release(&c);
	config_release(&again);
	text_release(&first);
	text_release(&second);
	return 0;
}
