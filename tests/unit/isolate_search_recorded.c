/* SPDX-License-Identifier: Apache-2.0 */
/* The search on figures that were recorded, with a fault planted in them. */
#include "test.h"

#include <dirent.h>
#include <jansson.h>
#include "isolate_search_world.h"

struct spread {
	double rate[RATES_MAX];
	size_t count;
	double median;
};

/* Rates of all groups with (or without) the fault, each as a multiple of the median of the good ones of its
 * size. */
static void take_rates(struct spread *s, const json_t *groups, bool fault)
{
	const json_t *g, *rate;
	size_t i, k;

	s->count = 0;
	json_array_foreach((json_t *)groups, i, g)
	{
		const json_t *rates = json_object_get(g, "rates"), *good = NULL, *other;
		double x[RATES_MAX];
		size_t n = 0, j;

		if (json_is_true(json_object_get(g, "fault")) != fault)
			continue;
		json_array_foreach((json_t *)groups, j, other)
		{
			if (!json_is_true(json_object_get(other, "fault")) &&
			    json_equal(json_object_get(other, "members"), json_object_get(g, "members")))
				good = json_object_get(other, "rates");
		}
		assert_non_null(good);
		json_array_foreach((json_t *)good, k, rate)
		{
			assert_in_range(n, 0, RATES_MAX - 1);
			x[n++] = json_number_value(rate);
		}
		json_array_foreach((json_t *)rates, k, rate)
		{
			assert_in_range(s->count, 0, RATES_MAX - 1);
			assert_true(json_number_value(rate) > 0);
			s->rate[s->count++] = json_number_value(rate) / stats_median(x, n);
		}
	}
	s->median = s->count ? stats_median(s->rate, s->count) : 0;
}

static double deviation(const struct spread *s)
{
	double away[RATES_MAX];

	for (size_t i = 0; i < s->count; i++)
		away[i] = fabs(s->rate[i] - s->median);
	return 1.4826 * stats_median(away, s->count) / s->median;
}

/* 256 nodes, a node of 8 and one of 4 GPUs, drawn from one recording. */
static void isolate_search_recording(const char *path)
{
	static const unsigned teams[] = {4, 8, 256};
	json_error_t where;
	json_t *recording = json_load_file(path, 0, &where), *groups = json_object_get(recording, "groups");
	struct spread good, bad;
	unsigned named = 0, clean = 0;
	struct isolate_search f;

	if (!recording)
		fail_msg("%s:%d: %s", path, where.line, where.text);
	take_rates(&good, groups, false);
	take_rates(&bad, groups, true);
	assert_true(json_string_length(json_object_get(recording, "source")) > 0);
	assert_in_range(good.count, 5, RATES_MAX);
	for (unsigned trial = 0; trial < 60; trial++) {
		struct world w = {.members = teams[trial % 3],
				  .overlap = teams[trial % 3] < 256,
				  .sigma = deviation(&good),
				  .effect = 0.1,
				  .good = good.rate,
				  .good_count = good.count,
				  .bad = bad.count ? bad.rate : NULL,
				  .bad_count = bad.count,
				  .seed = trial + 1};

		plant(&w, trial % 2 && !w.overlap ? ISOLATE_SEARCH_PAIR : ISOLATE_SEARCH_MEMBER);
		search(&w, &f);
		named += is_named(&w, &f);
		if (w.members == 256 && w.planted == ISOLATE_SEARCH_MEMBER)
			assert_in_range(f.round, 1, 16);
		w.planted = ISOLATE_SEARCH_NOBODY;
		search(&w, &f);
		clean += f.found == ISOLATE_SEARCH_NOBODY;
	}
	print_message("# %s: %zu good and %zu bad figures, %u of 60 named, %u of 60 clean\n", path,
		      good.count, bad.count, named, clean);
	assert_int_equal(named, 60);
	assert_int_equal(clean, 60);
	json_decref(recording);
}

static void test_follow__recorded_figures(void **state)
{
	static const char folder[] = SOURCE_DIR "/tests/data/follow";
	DIR *dir = opendir(folder);
	unsigned files = 0;
	char path[4096];

	(void)state;
	assert_non_null(dir);
	for (const struct dirent *e; (e = readdir(dir));) {
		const char *dot = strrchr(e->d_name, '.');

		if (!dot || strcmp(dot, ".json"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		isolate_search_recording(path);
		files++;
	}
	closedir(dir);
	assert_true(files > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follow__recorded_figures),
	};

	return cmocka_run_group_tests_name("follow_recorded", tests, NULL, NULL);
}
