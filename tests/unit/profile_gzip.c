/* SPDX-License-Identifier: Apache-2.0 */
/* A gzip stream: what is read back, that it is the same every time, and a disk that is full. */
#include "test.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include "profile/trace/gzip_out.h"
#include "scratch.h"

enum { WORDS = 300000, PART = 1000 };

/* Numbers that compress badly: the file is longer than one block. */
static uint32_t *make_words(void)
{
	uint32_t *word = calloc(WORDS, sizeof(*word)), state = 1;

	assert_non_null(word);
	for (size_t i = 0; i < WORDS; i++)
		word[i] = state = state * 1664525u + 1013904223u;
	return word;
}

static int write_words(const char *path, const uint32_t *word)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), code = 0;
	struct gzip_out *g = gzip_out_begin(fd);

	assert_true(fd >= 0);
	assert_non_null(g);
	for (size_t i = 0; i < WORDS; i += PART)
		code = gzip_out_add(g, word + i, PART * sizeof(*word));
	assert_int_equal(code | gzip_out_end(g), code);
	close(fd);
	return code;
}

static void read_all(const char *path, void *out, size_t size)
{
	gzFile file = gzopen(path, "rb");
	char one;

	assert_non_null(file);
	assert_int_equal(gzread(file, out, (unsigned)size), size);
	assert_int_equal(gzread(file, &one, 1), 0);
	assert_int_equal(gzclose(file), Z_OK);
}

static void test_gzip__what_goes_in_comes_out(void **state)
{
	uint32_t *word = make_words(), *back = calloc(WORDS, sizeof(*back));
	char path[256];

	snprintf(path, sizeof(path), "%s/a.gz", (const char *)*state);
	assert_non_null(back);
	assert_int_equal(write_words(path, word), 0);
	read_all(path, back, WORDS * sizeof(*back));
	assert_memory_equal(word, back, WORDS * sizeof(*back));
	free(word);
	free(back);
}

static void read_head(const char *path, unsigned char head[10], off_t *size)
{
	int fd = open(path, O_RDONLY);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, head, 10), 10);
	assert_int_equal(fstat(fd, &st), 0);
	*size = st.st_size;
	close(fd);
}

/* RFC 1952: no flags, so no name; no time. */
static void test_gzip__a_file_says_nothing_of_its_making(void **state)
{
	static const unsigned char plain[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0};
	uint32_t *word = make_words();
	unsigned char head[2][10];
	off_t size[2];
	char path[256];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d.gz", (const char *)*state, i);
		assert_int_equal(write_words(path, word), 0);
		read_head(path, head[i], &size[i]);
	}
	assert_memory_equal(head[0], plain, sizeof(plain));
	assert_memory_equal(head[0], head[1], sizeof(head[0]));
	assert_true(size[0] == size[1] && size[0] > 65536);
	free(word);
}

static void test_gzip__a_full_disk_is_told(void **state)
{
	uint32_t *word = make_words();
	struct gzip_out *g;
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write_words("/dev/full", word), ENOSPC);
	/* Little enough that nothing is written before the end. */
	g = gzip_out_begin(fd);
	assert_non_null(g);
	assert_int_equal(gzip_out_add(g, "a", 1), 0);
	assert_int_equal(gzip_out_end(g), ENOSPC);
	close(fd);
	free(word);
}

static void test_gzip__no_stream_is_no_memory(void **state)
{
	(void)state;
	assert_int_equal(gzip_out_end(NULL), ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_gzip__what_goes_in_comes_out),
		scratch_test(test_gzip__a_file_says_nothing_of_its_making),
		cmocka_unit_test(test_gzip__a_full_disk_is_told),
		cmocka_unit_test(test_gzip__no_stream_is_no_memory),
	};

	return cmocka_run_group_tests_name("profile_gzip", tests, NULL, NULL);
}
