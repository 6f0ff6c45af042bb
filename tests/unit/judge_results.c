/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every recorded run below results/, judged again: no clean one fails; what a range says of the cards that it
 * rests on is what the runs hold; and the figures of each machine pass a range that was made of the others
 * alone, because the runs that made a range cannot test it. METHODS "Verdicts" derives the numbers.
 */
#include <ftw.h>
#include <math.h>
#include <string.h>
#include "judge/case/context.h"
#include "judge/judge.h"
#include "judge/case/range.h"
#include "judge/judge_run.h"
#include "machine/machine.h"
#include "scratch.h"

enum { RUNS_MAX = 1024, FIGURES_MAX = 16384, CARDS_MAX = 64 };

/* One case's figure that a range judged. */
struct judged {
	const struct band_row *row;
	char card[40], machine[40], run[96];
	double value;
};

static struct {
	char path[RUNS_MAX][256];
	size_t count;
	struct expectations *e;
	struct judged *figure;
	size_t figures, failed, judged;
} all;

static int on_file(const char *path, const struct stat *info, int type, struct FTW *at)
{
	const char *name = path + at->base;

	(void)info;
	if (type == FTW_F && !strncmp(name, "journal.jsonl", 13) && !strstr(path, "/nodes/")) {
		assert_true(all.count < RUNS_MAX);
		snprintf(all.path[all.count++], sizeof(all.path[0]), "%.*s", at->base - 1, path);
	}
	return 0;
}

/* Runs with a planted fault, as results/README.md tells. */
static bool planted(const char *run)
{
	static const char *const faults[] = {"/busy1", "/wrong1", "/scaling_late"};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		size_t n = strlen(run), k = strlen(faults[i]);

		if (n > k && !strcmp(run + n - k, faults[i]))
			return true;
	}
	return false;
}

static const struct band_row *row_of(const struct band *b)
{
	char place[96];

	for (size_t i = 0; i < all.e->band_count; i++) {
		snprintf(place, sizeof(place), "%.80s:%d", all.e->band[i].file, all.e->band[i].line);
		if (!strcmp(place, b->place))
			return &all.e->band[i];
	}
	return NULL;
}

/* A figure that may stand behind a range: sound, judged by the rate or the time, and to be trusted. */
static bool counts(const struct record_case *c, const struct judgement *j)
{
	return c->status == STATUS_OK && !c->reading && j->has_figure && j->has_band &&
	       (j->verdict == VERDICT_PASS || j->verdict == VERDICT_WARN || j->verdict == VERDICT_MEASURED);
}

/* Of a case on one GPU that GPU; else the machine, which is its first GPU. */
static void collect(const struct record *r, const struct machine *m, const struct judgements *j,
		    const char *run)
{
	const char *host = m && machine_gpu_count(m) ? machine_gpu(m, 0)->serial : "";

	for (size_t i = 0; *host && i < r->case_count; i++) {
		const struct band_row *row =
			counts(&r->cases[i], &j->of_case[i]) ? row_of(&j->of_case[i].band) : NULL;
		const char *card = host;
		unsigned number;
		int used = 0;
		struct judged *f;

		if (!row || row->slot > BAND_TIME)
			continue;
		if (sscanf(r->cases[i].target, "gpu%u%n", &number, &used) == 1 && !r->cases[i].target[used])
			card = machine_gpu(m, number)->serial;
		assert_true(all.figures < FIGURES_MAX);
		f = &all.figure[all.figures++];
		*f = (struct judged){.row = row, .value = j->of_case[i].figure};
		snprintf(f->card, sizeof(f->card), "%s", card);
		snprintf(f->machine, sizeof(f->machine), "%s", host);
		snprintf(f->run, sizeof(f->run), "%.90s", run);
	}
}

static void judge(const char *path)
{
	struct judgements j = {0};
	struct machine *m = NULL;
	struct record r = {0};
	struct error err = {0};
	const json_t *facts;

	if (record_read(&r, path, &err) || judge_record(&j, &r, all.e, NULL, &err))
		fail_msg("%s: %s", path, err.text);
	facts = context_facts(&r);
	if (facts && machine_from_json(&m, facts, &err))
		fail_msg("%s: %s", path, err.text);
	all.judged++;
	if (planted(path)) {
		all.failed += j.exit_code == 1;
	} else {
		if (j.exit_code == 1)
			fail_msg("%s, a clean run, fails: %s", path, j.headline);
		collect(&r, m, &j, path);
	}
	machine_free(m);
	judgements_release(&j);
	record_release(&r);
}

static int begin(void **state)
{
	struct error err = {0};

	(void)state;
	all.figure = calloc(FIGURES_MAX, sizeof(*all.figure));
	if (!all.figure || expectations_load(&all.e, NULL, &err))
		return -1;
	return nftw(SOURCE_DIR "/results", on_file, 16, FTW_PHYS);
}

static int end(void **state)
{
	(void)state;
	expectations_free(all.e);
	free(all.figure);
	return 0;
}

static void test_results__no_clean_run_fails_and_planted_faults_do(void **state)
{
	(void)state;
	for (size_t i = 0; i < all.count; i++)
		judge(all.path[i]);
	assert_true(all.judged >= 60);
	assert_int_equal(all.failed, 4); /* busy and wrong GPUs; a late rank is a warning */
	assert_true(all.figures >= 400);
}

/* Means of the cards behind a row; `but`: without that machine. */
struct cards {
	char name[CARDS_MAX][40];
	double mean[CARDS_MAX], low, high; /* of single figures */
	unsigned of[CARDS_MAX], runs;
	size_t count;
};

static void cards_of(struct cards *c, const struct band_row *row, const char *but)
{
	const char *last = "";

	*c = (struct cards){.low = INFINITY};
	for (size_t i = 0; i < all.figures; i++) {
		const struct judged *f = &all.figure[i];
		size_t k = 0;

		if (f->row != row || (but && !strcmp(f->machine, but)))
			continue;
		while (k < c->count && strcmp(c->name[k], f->card))
			k++;
		assert_true(k < CARDS_MAX);
		if (k == c->count)
			snprintf(c->name[c->count++], sizeof(c->name[0]), "%s", f->card);
		c->mean[k] += f->value;
		c->of[k]++;
		c->low = fmin(c->low, f->value);
		c->high = fmax(c->high, f->value);
		c->runs += strcmp(last, f->run) != 0;
		last = f->run;
	}
	for (size_t k = 0; k < c->count; k++)
		c->mean[k] /= c->of[k];
}

static double scatter(const struct cards *c)
{
	double low = INFINITY, high = 0;

	for (size_t k = 0; k < c->count; k++) {
		low = fmin(low, c->mean[k]);
		high = fmax(high, c->mean[k]);
	}
	return 1 - low / high;
}

static size_t machines_of(const struct band_row *row, char name[CARDS_MAX][40])
{
	size_t count = 0;

	for (size_t i = 0; i < all.figures; i++) {
		size_t k = 0;

		if (all.figure[i].row != row)
			continue;
		while (k < count && strcmp(name[k], all.figure[i].machine))
			k++;
		assert_true(k < CARDS_MAX);
		if (k == count)
			snprintf(name[count++], 40, "%s", all.figure[i].machine);
	}
	return count;
}

/* The margin is only as good as the cards that are claimed: number and scatter are what the runs hold. */
static void test_results__ranges_rest_on_the_cards_that_they_claim(void **state)
{
	char machine[CARDS_MAX][40];
	size_t rows = 0, wrong = 0;

	(void)state;
	for (size_t i = 0; i < all.e->band_count; i++) {
		const struct band_row *row = &all.e->band[i];
		struct cards c;

		if (row->basis.cards < 2)
			continue;
		rows++;
		cards_of(&c, row, NULL);
		if (c.count != row->basis.cards || fabs(scatter(&c) - row->basis.scatter) > 0.0006) {
			print_error("%s:%d: %s claims %u cards and a scatter of %.3f; the runs hold %zu and "
				    "%.4f\n",
				    row->file, row->line, row->name, row->basis.cards, row->basis.scatter,
				    c.count, scatter(&c));
			wrong++;
		}
		if (machines_of(row, machine) < 2)
			fail_msg("%s rests on one machine alone", row->name);
	}
	assert_int_equal(wrong, 0);
	assert_true(rows >= 60);
}

/* How a range is made of L .. H (METHODS "Bands"), without the publications that widen some. */
static double widened(const struct band_row *row, unsigned runs)
{
	const char *name = row->name;

	if (strstr(name, "-memory-"))
		return 0.03;
	if (row->slot == BAND_TIME)
		return 0.10;
	if (strstr(name, "-p2p") || strstr(name, "-all") || strstr(name, "-reduce") ||
	    strstr(name, "-broadcast") || strstr(name, "-sendrecv"))
		return runs > 2 ? 0.03 : 0.05;
	return runs > 1 ? 0.05 : 0.07;
}

static bool fails_without(const struct band_row *row, const char *machine, double by[static 1])
{
	bool time = row->slot == BAND_TIME, fails = false;
	struct basis basis;
	struct cards others;
	double edge, wide;

	cards_of(&others, row, machine);
	basis = (struct basis){.cards = (unsigned)others.count,
			       .scatter = others.count > 1 ? scatter(&others) : 0};
	wide = widened(row, others.runs);
	edge = time ? others.high * (1 + wide) * (1 + range_margin(&basis))
		    : others.low * (1 - wide) * (1 - range_margin(&basis));
	for (size_t i = 0; i < all.figures; i++) {
		double value = all.figure[i].value;

		if (all.figure[i].row != row || strcmp(all.figure[i].machine, machine))
			continue;
		*by = fmin(*by, time ? edge / value : value / edge);
		fails |= time ? value > edge : value < edge;
	}
	return fails;
}

static void test_results__each_machine_passes_the_range_of_the_others(void **state)
{
	char machine[CARDS_MAX][40];
	double by = INFINITY;
	size_t held = 0;

	(void)state;
	for (size_t i = 0; i < all.e->band_count; i++) {
		const struct band_row *row = &all.e->band[i];
		size_t count = machines_of(row, machine);

		for (size_t k = 0; count >= 2 && k < count; k++) {
			if (fails_without(row, machine[k], &by))
				fail_msg("%s: machine %s fails the range that the other %zu make", row->name,
					 machine[k], count - 1);
			held++;
		}
	}
	assert_true(held >= 180);
	assert_true(by > 1 && by < 1.2); /* the check has teeth: the nearest machine is that near */
}

/* A figure 15 % below the slowest of its range fails each of them: the check above could fail. */
static void test_results__fifteen_percent_less_fails_every_range_of_two_cards(void **state)
{
	(void)state;
	for (size_t i = 0; i < all.e->band_count; i++) {
		const struct band_row *row = &all.e->band[i];
		struct cards c;
		double slow, edge;

		if (row->basis.cards < 3 || row->slot != BAND_RATE || strstr(row->name, "memory-write"))
			continue;
		cards_of(&c, row, NULL);
		slow = 0.85 * c.low;
		edge = row->low * (1 - range_margin(&row->basis));
		if (!(slow < edge))
			fail_msg("%s: %g, 15 %% below what its cards reach, is above %g", row->name, slow,
				 edge);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results__no_clean_run_fails_and_planted_faults_do),
		cmocka_unit_test(test_results__ranges_rest_on_the_cards_that_they_claim),
		cmocka_unit_test(test_results__each_machine_passes_the_range_of_the_others),
		cmocka_unit_test(test_results__fifteen_percent_less_fails_every_range_of_two_cards),
	};

	return cmocka_run_group_tests_name("judge_results", tests, begin, end);
}
