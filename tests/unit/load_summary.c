/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a load test beside brute force. */
#include "load_bed.h"

#include "load/measure/fields.h"
#include "load/measure/goodput.h"

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* numpy's percentile, by its definition. */
static double percentile(double *x, size_t n, double share)
{
	double at = share * (double)(n - 1);
	size_t i = (size_t)at;

	qsort(x, n, sizeof(*x), compare);
	return i + 1 < n ? x[i] + (at - (double)i) * (x[i + 1] - x[i]) : x[n - 1];
}

enum { REQUESTS = 6000 };

/* 100 requests/s for 60 s with different times. */
static void open_varied(struct load_bed *b)
{
	load_bed_open(b, 6, 60, 100);
	for (uint64_t i = 0; i < REQUESTS; i++) {
		const double u = load_bed_uniform(3 * i), v = load_bed_uniform(3 * i + 1);

		load_bed_add(b, (double)i * 0.01, 0.05 - 0.02 * log(u), 2000 + (uint32_t)(3000 * v),
			     1 + (uint32_t)(40 * load_bed_uniform(3 * i + 2)));
	}
	/* the order of ends is not that of the schedule */
	for (size_t i = 0; i + 3 < b->all.count; i += 3) {
		struct load_record r = b->all.record[i];

		b->all.record[i] = b->all.record[i + 3];
		b->all.record[i + 3] = r;
	}
	load_bed_measure(b);
}

static const char *const fields[] = {
#define X(name, ...) #name,
	LOAD_FIELDS(X)
#undef X
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static bool is_field(const char *name)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (!strcmp(fields[i], name))
			return true;
	return false;
}

static void test_fields__are_unique_and_hold_every_value(void **state)
{
	struct load_bed b;
	const char *name;
	json_t *value;

	(void)state;
	for (size_t i = 0; i < FIELDS; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(fields[i], fields[j]);
	open_varied(&b);
	json_object_foreach(b.out, name, value) if (json_is_number(value) && !is_field(name))
		fail_msg("%s is not in LOAD_FIELDS", name);
	for (int e = 1; e < LOAD_ERROR_COUNT; e++) {
		char key[64];

		snprintf(key, sizeof(key), "errors_%s", load_error_word((enum load_error)e));
		assert_true(is_field(key));
	}
	load_bed_close(&b);
}

static void test_latencies__are_those_of_brute_force(void **state)
{
	static const struct {
		const char *word;
		double share;
	} parts[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};
	static double ttft[REQUESTS], tpot[REQUESTS], e2e[REQUESTS];
	size_t n = 0, m = 0;
	struct load_bed b;

	(void)state;
	open_varied(&b);
	for (size_t i = 0; i < b.all.count; i++) {
		const struct load_record *r = &b.all.record[i];

		if (r->scheduled_ns < ns_of(6) || r->scheduled_ns >= ns_of(60))
			continue;
		ttft[n] = 1e-9 * (double)(r->first_token_ns - r->scheduled_ns);
		e2e[n++] = 1e-9 * (double)(r->end_ns - r->scheduled_ns);
		if (r->output_usage > 1)
			tpot[m++] = 1e-9 * (double)(r->last_token_ns - r->first_token_ns) /
				    (double)(r->output_usage - 1);
	}
	assert_int_equal(n, 5400);
	load_bed_expect(&b, "requests", 5400, 0);
	load_bed_expect(&b, "ttft_samples", 5400, 0);
	load_bed_expect(&b, "tpot_samples", (double)m, 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char key[64];

		snprintf(key, sizeof(key), "ttft_%s_s", parts[i].word);
		load_bed_expect(&b, key, percentile(ttft, n, parts[i].share), 1e-12);
		snprintf(key, sizeof(key), "e2e_send_%s_s", parts[i].word);
		load_bed_expect(&b, key, percentile(e2e, n, parts[i].share), 1e-12);
		snprintf(key, sizeof(key), "tpot_%s_s", parts[i].word);
		load_bed_expect(&b, key, percentile(tpot, m, parts[i].share), 1e-12);
	}
	load_bed_expect(&b, "ttft_min_s", ttft[0], 1e-12);
	load_bed_expect(&b, "ttft_max_s", ttft[n - 1], 1e-12);
	/* the distribution is known: 0.05 + 0.02 Exp(1) */
	assert_true(load_bed_value(&b, "ttft_p99_low_s") < 0.05 + 0.02 * log(100));
	assert_true(load_bed_value(&b, "ttft_p99_high_s") > 0.05 + 0.02 * log(100));
	assert_true(load_bed_value(&b, "ttft_mean_low_s") < 0.07 &&
		    load_bed_value(&b, "ttft_mean_high_s") > 0.07);
	load_bed_close(&b);
}

static void test_throughput__is_that_of_brute_force(void **state)
{
	double tokens = 0, prompts = 0, ended = 0;
	struct load_bed b;

	(void)state;
	open_varied(&b);
	for (size_t i = 0; i < b.all.count; i++) {
		const struct load_record *r = &b.all.record[i];
		uint64_t at = r->first_token_ns;

		prompts += at >= ns_of(6) && at < ns_of(60) ? 100 : 0;
		ended += r->end_ns >= ns_of(6) && r->end_ns < ns_of(60);
		for (uint32_t c = 0; c < r->chunks; c++) {
			tokens += at >= ns_of(6) && at < ns_of(60);
			at += c < r->gap_count ? 1000ull * r->gap_us[c] : 0;
		}
	}
	load_bed_expect(&b, "output_tokens_per_s", tokens / 54, 1e-6);
	load_bed_expect(&b, "total_tokens_per_s", (tokens + prompts) / 54, 1e-6);
	load_bed_expect(&b, "completed_rate", ended / 54, 1e-9);
	load_bed_expect(&b, "due_rate", 100, 1e-9);
	load_bed_expect(&b, "achieved_rate", 100, 1e-9);
	load_bed_expect(&b, "offered_rate", 100, 0);
	assert_true(load_bed_value(&b, "output_tokens_per_s_low") < tokens / 54);
	assert_true(load_bed_value(&b, "output_tokens_per_s_high") > tokens / 54);
	load_bed_close(&b);
}

static void test_latency__from_schedule_holds_the_delay_of_the_send(void **state)
{
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 10, 10);
	for (int i = 0; i < 100; i++) {
		struct load_record *r = load_bed_add(&b, 0.1 * i, 0.25, 1000, 5);

		r->handed_ns += ns_of(0.03);
		r->connected_ns += ns_of(0.05); /* 20 ms to connect are not the client's */
		r->sent_ns += ns_of(0.05);
	}
	load_bed_measure(&b);
	load_bed_expect(&b, "ttft_p50_s", 0.25, 1e-12);
	load_bed_expect(&b, "ttft_send_p50_s", 0.2, 1e-12);
	load_bed_expect(&b, "e2e_p50_s", 0.254, 1e-12);
	load_bed_expect(&b, "e2e_send_p50_s", 0.204, 1e-12);
	load_bed_expect(&b, "client_lag_p50_s", 0.03, 1e-12);
	load_bed_expect(&b, "late_sends", 100, 0);
	load_bed_close(&b);
}

static void test_gaps__are_itl_only_if_chunks_are_tokens(void **state)
{
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 10, 10);
	for (int i = 0; i < 100; i++)
		load_bed_add(&b, 0.1 * i, 0.1, 7000, 20)->output_usage = 21; /* an end token */
	load_bed_measure(&b);
	load_bed_expect(&b, "itl_p50_s", 0.007, 1e-12);
	load_bed_expect(&b, "itl_samples", 1900, 0);
	assert_false(load_bed_has(&b, "chunk_gap_p50_s"));
	for (size_t i = 0; i < 100; i++)
		b.all.record[i].output_usage = 40;
	load_bed_measure(&b);
	load_bed_expect(&b, "chunk_gap_p50_s", 0.007, 1e-12);
	load_bed_expect(&b, "tokens_per_chunk", 2, 1e-12);
	load_bed_expect(&b, "tpot_p50_s", 0.133 / 39, 1e-12);
	assert_false(load_bed_has(&b, "itl_p50_s"));
	for (size_t i = 0; i < 100; i++)
		b.all.record[i].output_usage = b.all.record[i].output_counted = LOAD_UNKNOWN;
	load_bed_measure(&b);
	assert_false(load_bed_has(&b, "itl_p50_s") || load_bed_has(&b, "tpot_p50_s"));
	assert_false(load_bed_has(&b, "output_tokens_per_s") || load_bed_has(&b, "output_tokens"));
	load_bed_close(&b);
}

static void test_whole_answers__have_their_tokens_at_the_end(void **state)
{
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 10, 10);
	for (int i = 0; i < 100; i++) {
		struct load_record *r = load_bed_add(&b, 0.1 * i, 0.1, 1000, 11);

		r->first_token_ns = r->last_token_ns = LOAD_NEVER;
		r->chunks = r->gap_count = 0;
	}
	load_bed_measure(&b);
	/* the last one ends at 10.01 s */
	load_bed_expect(&b, "output_tokens_per_s", 99 * 11 / 10.0, 1e-9);
	load_bed_expect(&b, "total_tokens_per_s", 99 * 111 / 10.0, 1e-9);
	load_bed_expect(&b, "ttft_samples", 0, 0);
	load_bed_expect(&b, "e2e_p50_s", 0.11, 1e-12);
	assert_false(load_bed_has(&b, "tpot_p50_s"));
	load_bed_close(&b);
}

static void test_errors__are_counted_by_class(void **state)
{
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 100, 10);
	for (int e = 1; e < LOAD_ERROR_COUNT; e++)
		for (int i = 0; i < e; i++)
			load_bed_fail(&b, e + 0.01 * i, 1, (enum load_error)e);
	load_bed_add(&b, 50, 0.1, 1000, 3);
	load_bed_measure(&b);
	for (int e = 1; e < LOAD_ERROR_COUNT; e++) {
		const char *word = load_error_word((enum load_error)e);
		char key[64];

		snprintf(key, sizeof(key), "errors_%s", word);
		load_bed_expect(&b, key, e, 0);
		assert_int_equal(json_integer_value(json_object_get(json_object_get(b.out, "errors"), word)),
				 e);
	}
	load_bed_expect(&b, "answered", 1, 0);
	load_bed_expect(&b, "failed", LOAD_ERROR_COUNT * (LOAD_ERROR_COUNT - 1) / 2 - LOAD_ERROR_CANCELLED,
			0);
	load_bed_expect(&b, "ttft_samples", 1, 0);
	assert_false(load_bed_has(&b, "ttft_p50_s"));
	load_bed_close(&b);
}

/* What had come of an answer that the end of the run cancelled has been served. */
static void test_cancelled__tokens_count_in_the_rate(void **state)
{
	struct load_record *r;
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 10, 10);
	load_bed_add(&b, 1, 0.1, 1000, 10)->output_usage = 20;
	r = load_bed_add(&b, 2, 0.1, 1000, 30);
	r->error = LOAD_ERROR_CANCELLED;
	r->output_usage = r->output_counted = LOAD_UNKNOWN;
	r = load_bed_add(&b, 3, 0.1, 1000, 50);
	r->error = LOAD_ERROR_CUT;
	load_bed_measure(&b);
	load_bed_expect(&b, "output_tokens_per_s", (20 + 30 * 2) / 10.0, 1e-9);
	load_bed_expect(&b, "output_tokens", 20, 0);
	load_bed_close(&b);
}

static void test_goodput__counts_the_requests_within_all_limits(void **state)
{
	static const struct load_slo sets[] = {{.name = "a", .ttft_s = 0.1, .tpot_s = 0.004},
					       {.name = "b", .e2e_s = 100}};
	double met = 0, share;
	struct load_bed b;
	const json_t *set;

	(void)state;
	open_varied(&b);
	load_bed_fail(&b, 59.995, 1, LOAD_ERROR_RESET);
	b.spec.slo = sets;
	b.spec.slo_count = 2;
	load_bed_measure(&b);
	for (size_t i = 0; i < b.all.count; i++) {
		const struct load_record *r = &b.all.record[i];
		const double ttft = 1e-9 * (double)(r->first_token_ns - r->scheduled_ns);
		const double length = 1e-9 * (double)(r->last_token_ns - r->first_token_ns);

		met += r->scheduled_ns >= ns_of(6) && !r->error && ttft <= 0.1 &&
		       (r->output_usage == 1 || length / (double)(r->output_usage - 1) <= 0.004);
	}
	share = met / 5401;
	load_bed_expect(&b, "goodput", met / 54, 1e-9);
	load_bed_expect(&b, "slo_met", 0, 0); /* one of two sets */
	load_bed_expect(&b, "slo_share", share, 1e-12);
	assert_true(load_bed_value(&b, "slo_share_low") < share &&
		    share < load_bed_value(&b, "slo_share_high"));
	set = json_array_get(json_object_get(b.out, "slo"), 0);
	assert_true(json_is_false(json_object_get(set, "met")));
	assert_null(json_object_get(set, "e2e_s"));
	set = json_array_get(json_object_get(b.out, "slo"), 1);
	assert_true(json_is_true(json_object_get(set, "met")));
	assert_float_equal(json_number_value(json_object_get(set, "share")), 5400 / 5401.0, 1e-12);
	load_bed_close(&b);
}

/* At the end of a run, unanswered requests took too long; after Ctrl-C they say nothing. */
static void test_goodput__of_cancelled_requests(void **state)
{
	static const struct load_slo set = {.name = "a", .ttft_s = 1};
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 10, 1);
	b.spec.slo = &set;
	b.spec.slo_count = 1;
	for (int i = 0; i < 9; i++)
		load_bed_add(&b, i, 0.1, 1000, 3);
	load_bed_fail(&b, 9, 5, LOAD_ERROR_CANCELLED);
	load_bed_measure(&b);
	load_bed_expect(&b, "slo_share", 0.9, 1e-12);
	load_bed_expect(&b, "slo_met", 0, 0);
	b.spec.attainment = 0.9;
	load_bed_measure(&b);
	load_bed_expect(&b, "slo_met", 1, 0);
	b.spec.cut = true;
	load_bed_measure(&b);
	load_bed_expect(&b, "slo_share", 1, 0);
	load_bed_close(&b);
}

static void test_slo__an_absent_time_does_not_meet_its_limit(void **state)
{
	struct load_slo ttft = {.ttft_s = 10}, tpot = {.tpot_s = 10}, none = {0};
	struct load_record *r;
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 10, 1);
	r = load_bed_add(&b, 1, 0.1, 1000, 1);
	assert_true(load_slo_met(&tpot, r) && load_slo_met(&ttft, r));
	r->output_usage = r->output_counted = LOAD_UNKNOWN;
	assert_true(!load_slo_met(&tpot, r) && load_slo_met(&ttft, r));
	r->first_token_ns = LOAD_NEVER;
	assert_true(!load_slo_met(&ttft, r) && load_slo_met(&none, r));
	r->error = LOAD_ERROR_SERVER;
	assert_false(load_slo_met(&none, r));
	load_bed_close(&b);
}

static void test_slo__sets_and_texts(void **state)
{
	static const char *const wrong[] = {"",
					    "chta",
					    "ttft=",
					    "ttft=0",
					    "ttft=-1s",
					    "ttft=1x",
					    "ttft=1s,",
					    "ttft=1s,,",
					    "ttft=1s,ttft=2s",
					    "itl=1s",
					    "ttft=1s;tpot=1s",
					    "ttft=0000000000000000000000000000000001s"};
	struct load_slo slo;
	struct error err = {0};

	(void)state;
	for (const struct load_slo *s = load_slo_sets; s->name; s++) {
		assert_int_equal(load_slo_read(&slo, s->name, &err), STATUS_OK);
		assert_true(slo.ttft_s == s->ttft_s && slo.tpot_s == s->tpot_s && slo.e2e_s == s->e2e_s);
		assert_true(slo.ttft_s > 0 || slo.e2e_s > 0);
	}
	assert_int_equal(load_slo_read(&slo, "e2e=1min,ttft=2s,tpot=100ms", &err), STATUS_OK);
	assert_true(slo.ttft_s == 2 && slo.tpot_s == 0.1 && slo.e2e_s == 60);
	assert_string_equal(slo.name, "e2e=1min,ttft=2s,tpot=100ms");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		error_clear(&err);
		if (load_slo_read(&slo, wrong[i], &err) != STATUS_BAD_INPUT)
			fail_msg("not refused: %s", wrong[i]);
		assert_non_null(strstr(err.text, wrong[i]));
	}
	error_clear(&err);
	load_slo_read(&slo, "chta", &err);
	assert_non_null(strstr(err.text, "did you mean \"chat\""));
}

/* ---- curves ---- */

static double sum_of(const json_t *list)
{
	double sum = 0;
	json_t *item;
	size_t i;

	json_array_foreach((json_t *)list, i, item) sum += json_number_value(item);
	return sum;
}

static void test_curves__keep_the_sums(void **state)
{
	static const char *const lists[] = {"ttft_p50_s",	   "ttft_p99_s", "ttft_max_s",
					    "e2e_p50_s",	   "e2e_max_s",	 "in_flight",
					    "output_tokens_per_s", "due_per_s",	 "errors"};
	double tokens = 0, flight = 0;
	const json_t *curves;
	size_t parts;
	struct load_bed b;

	(void)state;
	open_varied(&b);
	for (size_t i = 0; i < b.all.count; i++) {
		tokens += (double)b.all.record[i].output_usage;
		flight += 1e-9 * (double)(b.all.record[i].end_ns - b.all.record[i].sent_ns);
	}
	curves = json_object_get(b.out, "curves");
	parts = json_array_size(json_object_get(curves, "t_s"));
	assert_true(parts == 60 || parts == 61);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		assert_int_equal(json_array_size(json_object_get(curves, lists[i])), parts);
	assert_true(json_number_value(json_object_get(curves, "part_s")) == 1);
	/* the last event is at the end of the last part or before it */
	assert_true(fabs(sum_of(json_object_get(curves, "output_tokens_per_s")) - tokens) <= 41);
	assert_float_equal(sum_of(json_object_get(curves, "in_flight")), flight, 1e-6);
	assert_float_equal(sum_of(json_object_get(curves, "due_per_s")), REQUESTS, 1e-9);
	/* Little's law: requests in flight = rate x time, over the whole run */
	assert_float_equal(load_bed_value(&b, "in_flight_mean"), 100 * load_bed_value(&b, "e2e_send_mean_s"),
			   0.2);
	load_bed_close(&b);
}

static void test_curves__a_long_run_has_few_points(void **state)
{
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 4000, 1);
	for (int i = 0; i < 4000; i++)
		load_bed_add(&b, i, 0.1, 1000, 2);
	load_bed_measure(&b);
	assert_true(json_array_size(json_object_get(json_object_get(b.out, "curves"), "t_s")) <= 600);
	assert_true(json_number_value(json_object_get(json_object_get(b.out, "curves"), "part_s")) == 7);
	load_bed_close(&b);
}

static void test_cdf__rises_to_one(void **state)
{
	const json_t *cdf;
	const char *name;
	struct load_bed b;
	json_t *list;

	(void)state;
	open_varied(&b);
	cdf = json_object_get(json_object_get(b.out, "curves"), "cdf");
	assert_int_equal(json_object_size(cdf), 6);
	json_object_foreach((json_t *)cdf, name, list)
	{
		double before = 0, share = 0;
		json_t *point;
		size_t i;

		assert_int_equal(json_array_size(list), 200);
		json_array_foreach(list, i, point)
		{
			assert_true(json_number_value(json_array_get(point, 0)) >= before);
			assert_true(json_number_value(json_array_get(point, 1)) > share);
			before = json_number_value(json_array_get(point, 0));
			share = json_number_value(json_array_get(point, 1));
		}
		assert_true(share == 1);
	}
	load_bed_close(&b);
}

static void test_nothing__gives_no_figures(void **state)
{
	struct load_bed b;

	(void)state;
	load_bed_open(&b, 0, 10, 10);
	load_bed_measure(&b);
	load_bed_expect(&b, "requests", 0, 0);
	assert_false(load_bed_has(&b, "ttft_p50_s") || load_bed_has(&b, "error_share"));
	assert_false(load_bed_has(&b, "slo_met"));
	assert_int_equal(json_array_size(json_object_get(b.out, "untrusted")), 0);
	load_bed_add(&b, 20, 0.1, 1000, 2);
	b.spec.to_ns = b.spec.from_ns; /* an empty window */
	load_bed_measure(&b);
	load_bed_expect(&b, "requests", 0, 0);
	assert_false(load_bed_has(&b, "achieved_rate"));
	load_bed_close(&b);
}

static void test_in_flight__most_is_that_of_brute_force(void **state)
{
	struct load_bed b;
	size_t most = 0;

	(void)state;
	open_varied(&b);
	for (size_t i = 0; i < b.all.count; i++) {
		const uint64_t at = b.all.record[i].sent_ns;
		size_t now = 0;

		if (at < ns_of(6) || at >= ns_of(60))
			continue;
		for (size_t j = 0; j < b.all.count; j++)
			now += b.all.record[j].sent_ns <= at && b.all.record[j].end_ns > at;
		most = now > most ? now : most;
	}
	load_bed_expect(&b, "in_flight_most", (double)most, 0);
	load_bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields__are_unique_and_hold_every_value),
		cmocka_unit_test(test_latencies__are_those_of_brute_force),
		cmocka_unit_test(test_throughput__is_that_of_brute_force),
		cmocka_unit_test(test_latency__from_schedule_holds_the_delay_of_the_send),
		cmocka_unit_test(test_gaps__are_itl_only_if_chunks_are_tokens),
		cmocka_unit_test(test_whole_answers__have_their_tokens_at_the_end),
		cmocka_unit_test(test_errors__are_counted_by_class),
		cmocka_unit_test(test_cancelled__tokens_count_in_the_rate),
		cmocka_unit_test(test_goodput__counts_the_requests_within_all_limits),
		cmocka_unit_test(test_goodput__of_cancelled_requests),
		cmocka_unit_test(test_slo__an_absent_time_does_not_meet_its_limit),
		cmocka_unit_test(test_slo__sets_and_texts),
		cmocka_unit_test(test_curves__keep_the_sums),
		cmocka_unit_test(test_curves__a_long_run_has_few_points),
		cmocka_unit_test(test_cdf__rises_to_one),
		cmocka_unit_test(test_nothing__gives_no_figures),
		cmocka_unit_test(test_in_flight__most_is_that_of_brute_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
