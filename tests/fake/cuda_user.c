/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has CUDA's libraries from somewhere and no CUPTI: loads those that it is told, then, as its
 * driver would at cuInit, CUDA_INJECTION64_PATH. usage: cuda_user LIBRARY...
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *load(const char *path)
{
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;

	if (!library) {
		fprintf(stderr, "cuda_user: %s\n", path ? dlerror() : "no CUDA_INJECTION64_PATH");
		exit(99);
	}
	return library;
}

int main(int argc, char **argv)
{
	int (*begin)(void);
	void *found;

	for (int i = 1; i < argc; i++)
		load(argv[i]);
	found = dlsym(load(getenv("CUDA_INJECTION64_PATH")), "InitializeInjection");
	memcpy(&begin, &found, sizeof(begin));
	return found && begin() ? 0 : 98;
}
