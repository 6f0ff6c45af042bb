/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the GGUF file of unit/base_gguf.h for shell tests. usage: base_gguf FILE SEED */
#include "unit/base_gguf.h"
#include <stdlib.h>

int main(int argc, char **argv)
{
	struct shape s;
	struct error err = {0};

	if (argc != 3 || shape_by_name(&s, "tiny", &err)) {
		fprintf(stderr, "usage: base_gguf FILE SEED\n");
		return 64;
	}
	base_gguf_write(argv[1], &s, strtoull(argv[2], NULL, 10));
	return 0;
}
