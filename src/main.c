/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the subcommand; owns signals and exit codes; nothing else. */
#include "cmd/command.h"

int main(int argc, char **argv)
{
	(void)argc, (void)argv;
	return EXIT_USAGE;
}
