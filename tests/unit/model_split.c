/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor parallel on ranks that are threads: loss and every gradient beside one rank, in double, and a fault
 * in each collective that the comparison finds. */
#include "unit/test.h"
#include <math.h>
#include "core/math/random.h"
#include "model/tensor/matrix.h"
#include "model/decoder/layer_tensors.h"
#include "unit/model_bed.h"
#include "unit/must.h"
#include "unit/rank_threads.h"
#include "unit/split_bed.h"

enum { ALL = (1 << PEFT_TARGET_COUNT) - 1 };

struct rank {
	struct bed bed;
	pthread_t thread;
	enum status st;
	struct error err;
	double loss;
	bool forward_only;
};

struct ranks {
	struct rank_threads threads;
	struct rank rank[RANK_THREADS_MOST];
};

static enum status work(struct bed *b, bool forward_only, double *loss, struct error *err)
{
	const struct arena_mark mark = arena_mark(&b->arena);
	enum status st = b->back.ops->zero(&b->back, b->model->params.grad, err);

	*loss = 0;
	b->pass.forward_only = forward_only;
	if (!st)
		st = model_forward(&b->pass, err);
	if (!st)
		st = forward_only ? model_loss(&b->pass, loss, err)
				  : model_backward(&b->pass, 0.5f, loss, err);
	if (!st && !forward_only)
		st = split_sum_gradient(b->model, &b->back, err);
	arena_reset(&b->arena, &mark);
	return st;
}

static void *thread(void *arg)
{
	struct rank *r = arg;

	r->st = work(&r->bed, r->forward_only, &r->loss, &r->err);
	return NULL;
}

static void run(struct ranks *all, bool forward_only)
{
	for (unsigned r = 0; r < all->threads.size; r++) {
		all->rank[r].forward_only = forward_only;
		memset(all->threads.rank[r].count, 0, sizeof(all->threads.rank[r].count));
		assert_int_equal(pthread_create(&all->rank[r].thread, NULL, thread, &all->rank[r]), 0);
	}
	for (unsigned r = 0; r < all->threads.size; r++)
		pthread_join(all->rank[r].thread, NULL);
	for (unsigned r = 0; r < all->threads.size; r++)
		must(all->rank[r].st, &all->rank[r].err);
}

/* The rank's parts of the numbers of one rank's model. */
static void copy_files(const struct bed *one, struct bed *part)
{
	struct weights_slot *from, *to;
	struct named *from_names, *to_names;
	struct error err = {0};
	size_t count, same;

	must(model_weight_slots(one->model, &from, &from_names, &count, &err), &err);
	must(model_weight_slots(part->model, &to, &to_names, &same, &err), &err);
	assert_int_equal(count, same);
	for (size_t i = 0; i < count; i++)
		for (int64_t row = 0; row < to[i].to.rows; row++)
			for (int64_t col = 0; col < to[i].to.cols; col++)
				bed_set(&to[i].to, (size_t)(row * to[i].to.ld + col),
					split_number(&from[i].to, to[i].row + row, to[i].col + col));
	free(from);
	free(to);
	free(from_names);
	free(to_names);
}

static void copy_params(const struct bed *one, struct bed *part)
{
	const struct params *p = &part->model->params;

	for (int i = 0; i < p->count; i++) {
		const struct split_part at = split_place(part, i);
		const struct mat from = params_view(&one->model->params.master, &one->model->params.table[i]);
		const struct mat to = params_view(&p->master, &p->table[i]);

		assert_string_equal(p->table[i].name, one->model->params.table[i].name);
		for (int64_t row = 0; row < at.rows; row++)
			for (int64_t col = 0; col < at.cols; col++)
				bed_set(&to, (size_t)(row * to.ld + col),
					split_number(&from, at.row + row, at.col + col));
	}
}

/* Loading makes the rows beyond the vocabulary 0. The CPU has no random numbers in double. */
static void load(struct bed *b)
{
	const struct weight *ends[] = {&b->model->embed, &b->model->head};
	struct error err = {0};

	if (!b->options.wide) {
		must(model_load(b->model, &b->back, &(struct model_source){.random = true}, &err), &err);
		return;
	}
	for (size_t i = 0; i < 2; i++)
		must(b->back.ops->zero(&b->back, ends[i]->master.rows ? ends[i]->master : ends[i]->w, &err),
		     &err);
}

static void open_ranks(struct ranks *all, const struct bed *one, unsigned ranks)
{
	rank_threads_open(&all->threads, ranks);
	for (unsigned r = 0; r < ranks; r++) {
		struct bed *b = &all->rank[r].bed;
		struct bed_options options = one->options;

		options.split = (struct model_split){.rank = r, .ranks = ranks};
		options.threads = 1;
		bed_open(b, &options);
		load(b);
		copy_files(one, b);
		copy_params(one, b);
		b->model->split.comm = &all->threads.rank[r].comm;
	}
}

static void close_ranks(struct ranks *all)
{
	for (unsigned r = 0; r < all->threads.size; r++)
		bed_close(&all->rank[r].bed);
	rank_threads_close(&all->threads);
}

/* The largest difference of a gradient between the rank and one rank, as a share of the tensor's largest
 * number. */
static double difference(const struct bed *one, const struct bed *part)
{
	const struct params *p = &part->model->params;
	double worst = 0;

	for (int i = 0; i < p->count; i++) {
		const struct split_part at = split_place(part, i);
		const struct mat all = params_view(&one->model->params.grad, &one->model->params.table[i]);
		const struct mat own = params_view(&p->grad, &p->table[i]);
		double most = 0, apart = 0;

		for (int64_t row = 0; row < all.rows; row++)
			for (int64_t col = 0; col < all.cols; col++)
				most = fmax(most, fabs(split_number(&all, row, col)));
		for (int64_t row = 0; row < own.rows; row++)
			for (int64_t col = 0; col < own.cols; col++) {
				const bool used = row < at.rows && col < at.cols;
				const double expected =
					used ? split_number(&all, at.row + row, at.col + col) : 0;
				const double d = fabs(split_number(&own, row, col) - expected);

				apart = d > apart || isnan(d) ? d : apart;
			}
		assert_true(most > 0); /* a gradient of zeros proves nothing */
		worst = !(apart / most <= worst) ? apart / most : worst;
	}
	return worst;
}

static double worst_of(const struct bed *one, const struct ranks *all, double loss)
{
	double worst = 0;

	for (unsigned r = 0; r < all->threads.size; r++) {
		const double d = difference(one, &all->rank[r].bed),
			     l = fabs(all->rank[r].loss - loss) / loss;

		worst = !(d <= worst) ? d : worst;
		worst = !(l <= worst) ? l : worst;
	}
	return worst;
}

static void check(const struct bed_options *options, unsigned ranks, double most)
{
	struct bed one;
	struct ranks all;
	double loss, worst;

	bed_open(&one, options);
	open_ranks(&all, &one, ranks);
	loss = bed_loss(&one, true);
	run(&all, false);
	worst = worst_of(&one, &all, loss);
	if (!(worst <= most))
		fail_msg("%u ranks differ from one by a share of %g", ranks, worst);
	run(&all, true);
	for (unsigned r = 0; r < ranks; r++)
		assert_true(fabs(all.rank[r].loss - loss) <= most * loss);
	close_ranks(&all);
	bed_close(&one);
}

/* 8 heads with 2 key-value heads, which four ranks share; 57 ids are not divisible. */
static struct bed_options options_of(enum family family)
{
	return (struct bed_options){
		.family = family, .heads = 8, .kv_heads = 2, .vocab = 57, .wide = true, .head_chunk = 7};
}

static const unsigned sizes[] = {2, 4};
static const double exact = 1e-9, single = 1e-5;

static void test_split__every_parameter(void **state)
{
	(void)state;
	for (int family = 0; family < FAMILY_COUNT; family++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int tied = 0; tied < 2; tied++) {
				struct bed_options o = options_of(family);

				o.full = true;
				o.tied = tied;
				check(&o, sizes[i], exact);
			}
}

static void test_split__adapters_with_and_without_dropout(void **state)
{
	(void)state;
	for (int family = 0; family < FAMILY_COUNT; family++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int drop = 0; drop < 2; drop++) {
				struct bed_options o = options_of(family);

				o.targets = ALL;
				o.dropout = drop ? 0.3f : 0;
				o.ffn = drop ? 48 : 0;
				check(&o, sizes[i], exact);
			}
}

static void test_split__eight_ranks_and_modules_that_are_trained_whole(void **state)
{
	struct bed_options o = options_of(FAMILY_LLAMA);

	(void)state;
	o.targets = 1 << PEFT_K | 1 << PEFT_DOWN;
	o.save = PEFT_SAVE_EMBED | PEFT_SAVE_HEAD;
	check(&o, 8, exact);
	o.tied = true;
	check(&o, 4, exact);
}

/* Partial sums travel in chunks of columns, the last one smaller. */
static void test_split__chunks_of_columns(void **state)
{
	(void)state;
	for (int chunks = 2; chunks <= 4; chunks++)
		for (int full = 0; full < 2; full++) {
			struct bed_options o = options_of(chunks == 3 ? FAMILY_QWEN3 : FAMILY_LLAMA);

			o.chunks = chunks;
			o.full = full;
			o.targets = full ? 0 : ALL;
			o.dropout = chunks == 4 && !full ? 0.3f : 0;
			o.ffn = 48;
			o.mode = chunks == 2 ? RECOMPUTE_FULL : RECOMPUTE_NONE;
			check(&o, 4, exact);
		}
}

static void test_split__every_level_of_recomputation(void **state)
{
	static const enum recompute modes[] = {RECOMPUTE_NONE, RECOMPUTE_CHEAP, RECOMPUTE_FULL};

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		struct bed_options o = options_of(FAMILY_QWEN2);

		o.mode = modes[i];
		o.mlp_tile = 13; /* of one rank alone */
		o.full = true;
		check(&o, 4, exact);
		o.full = false;
		o.targets = ALL;
		check(&o, 4, exact);
	}
}

static void test_split__in_float(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bed_options o = options_of(FAMILY_QWEN3);

		o.wide = false;
		o.full = true;
		check(&o, sizes[i], single);
		o.full = false;
		o.targets = ALL;
		check(&o, sizes[i], single);
	}
}

/* Each collective of a step in turn loses what one rank gives. */
static void faults_of(struct ranks *all, const struct bed *one, double loss, enum rank_collective kind)
{
	const unsigned count = all->threads.rank[0].count[kind];

	assert_true(count > 0);
	for (unsigned at = 0; at < count; at++) {
		all->threads.fault_kind = kind;
		all->threads.fault_rank = at % all->threads.size;
		all->threads.fault_at = at;
		run(all, false);
		if (!(worst_of(one, all, loss) > exact))
			fail_msg("a fault in call %u of kind %d is not found", at, kind);
	}
	all->threads.fault_kind = RANK_COLLECTIVES;
	run(all, false);
	assert_true(worst_of(one, all, loss) <= exact);
}

static void test_split__a_fault_in_each_collective_is_found(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++) {
		struct bed_options o = options_of(FAMILY_QWEN2);
		struct bed one;
		struct ranks all;
		double loss;

		o.full = full;
		o.targets = full ? 0 : ALL;
		o.mode = RECOMPUTE_FULL;
		bed_open(&one, &o);
		open_ranks(&all, &one, 2);
		loss = bed_loss(&one, true);
		for (enum rank_collective kind = RANK_ALL_REDUCE; kind <= RANK_ALL_GATHER; kind++) {
			run(&all, false);
			faults_of(&all, &one, loss, kind);
		}
		close_ranks(&all);
		bed_close(&one);
	}
}

/* Random weights and A are parts of those of one rank. */
static void test_split__random_numbers_are_those_of_one_rank(void **state)
{
	const struct model_source from = {.random = true, .seed = 5};
	struct bed_options o = options_of(FAMILY_QWEN2);
	struct error err = {0};
	struct bed one, part;

	(void)state;
	o.targets = ALL;
	o.wide = false;
	bed_open(&one, &o);
	must(model_load(one.model, &one.back, &from, &err), &err);
	must(model_init_adapter(one.model, &one.back, 6, &err), &err);
	for (unsigned r = 0; r < 4; r++) {
		struct weights_slot *whole, *own;
		struct named *whole_names, *own_names;
		size_t count;

		o.split = (struct model_split){.rank = r, .ranks = 4};
		bed_open(&part, &o);
		must(model_load(part.model, &part.back, &from, &err), &err);
		must(model_init_adapter(part.model, &part.back, 6, &err), &err);
		must(model_weight_slots(one.model, &whole, &whole_names, &count, &err), &err);
		must(model_weight_slots(part.model, &own, &own_names, &count, &err), &err);
		for (size_t i = 0; i < count; i++)
			for (int64_t row = 0; row < own[i].to.rows; row++)
				for (int64_t col = 0; col < own[i].to.cols; col++)
					assert_true(split_number(&own[i].to, row, col) ==
						    split_number(&whole[i].to, own[i].row + row,
								 own[i].col + col));
		for (int i = 0; i < part.model->params.count; i++) {
			const struct split_part at = split_place(&part, i);
			const struct mat all =
				params_view(&one.model->params.master, &one.model->params.table[i]);
			const struct mat mine =
				params_view(&part.model->params.master, &part.model->params.table[i]);

			for (int64_t row = 0; row < at.rows; row++)
				for (int64_t col = 0; col < at.cols; col++)
					assert_true(split_number(&mine, row, col) ==
						    split_number(&all, at.row + row, at.col + col));
		}
		free(whole);
		free(own);
		free(whole_names);
		free(own_names);
		bed_close(&part);
	}
	bed_close(&one);
}

/* Each element of a tensor is counted once in the norm. */
static void test_split__the_norm_counts_each_tensor_once(void **state)
{
	struct bed_options o = options_of(FAMILY_QWEN2);
	size_t sum = 0, whole = 0;

	(void)state;
	o.full = true;
	for (unsigned r = 0; r < 4; r++) {
		struct bed part;

		o.split = (struct model_split){.rank = r, .ranks = 4};
		bed_open(&part, &o);
		for (int i = 0; i < part.model->params.count; i++) {
			const struct split_part at = split_place(&part, i);

			sum += part.model->params.table[i].elsewhere ? 0 : (size_t)(at.rows * at.cols);
		}
		whole = part.model->whole->params.length;
		bed_close(&part);
	}
	assert_int_equal(sum, whole);
}

/* model_create with these options fails with these words. */
static void refused(const struct shape *s, const struct model_options *o, enum status expected,
		    const char *words)
{
	struct model *m = NULL;
	struct error err = {0};

	assert_int_equal(model_create(&m, s, o, &err), expected);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
}

static void test_split__what_cannot_be_divided_is_refused(void **state)
{
	struct peft_config lora = {.rank = 4, .alpha = 4, .targets = ALL};
	struct model_options o = {.full = true, .positions = 64, .split = {.ranks = 4}};
	struct shape s;
	struct error err = {0};

	(void)state;
	must(shape_by_name(&s, "qwen2-7b", &err), &err);
	o.split.ranks = 3;
	refused(&s, &o, STATUS_BAD_INPUT,
		"3 ranks cannot divide a model with 28 heads, 4 key-value heads and 18944 features of the MLP; "
		"these can: 2, 4");
	o.split.ranks = 4;
	o.inference = true;
	refused(&s, &o, STATUS_UNSUPPORTED, "text generation");
	o.inference = false;
	o.states.moments = MOMENTS_8BIT;
	refused(&s, &o, STATUS_UNSUPPORTED, "moments in 8 bits");
	o.states.moments = MOMENTS_F32;
	o.states.master = MASTER_SPLIT;
	refused(&s, &o, STATUS_UNSUPPORTED, "master_weights");
	o.states.master = MASTER_F32;
	o.full = false;
	o.lora = &lora;
	o.storage.form = STORAGE_BNB4;
	refused(&s, &o, STATUS_UNSUPPORTED, "load_in_4bit");
	o.storage.form = STORAGE_NUMBERS;
	lora.dropout = 0.1;
	s.heads = 4;
	s.kv_heads = 4;
	s.head_dim = 2;
	s.ffn = 24;
	refused(&s, &o, STATUS_UNSUPPORTED, "multiple of 4 columns");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split__every_parameter),
		cmocka_unit_test(test_split__adapters_with_and_without_dropout),
		cmocka_unit_test(test_split__eight_ranks_and_modules_that_are_trained_whole),
		cmocka_unit_test(test_split__chunks_of_columns),
		cmocka_unit_test(test_split__every_level_of_recomputation),
		cmocka_unit_test(test_split__in_float),
		cmocka_unit_test(test_split__a_fault_in_each_collective_is_found),
		cmocka_unit_test(test_split__random_numbers_are_those_of_one_rank),
		cmocka_unit_test(test_split__the_norm_counts_each_tensor_once),
		cmocka_unit_test(test_split__what_cannot_be_divided_is_refused),
	};

	return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
