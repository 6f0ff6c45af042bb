/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are enqueued as a graph where the same were before: the same bits, whatever comes between, and where no graph can be had. */
#include "fake_gpu.h"
#include "model_gpu_bed.h"

static const char adapter[] = "lora: {r: 4, alpha: 6}";
static const int half[] = {16, 16, 32, 0};
static const int *const documents[] = {packed, half, packed, equal, packed, half, packed, equal, packed, equal, half, packed, equal, packed};
/* More sizes than graphs are known at once: those of the first are gone when it comes again. */
static const int lengths[][2] = {{5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}};
#define OTHERS lengths[1], lengths[1], lengths[2], lengths[2], lengths[3], lengths[3], lengths[4], lengths[4], lengths[5], lengths[5], lengths[6], lengths[6], lengths[7], lengths[7]
static const int *const sizes[] = {lengths[0], lengths[0], lengths[0], lengths[0], lengths[0], lengths[0], OTHERS, lengths[0], lengths[0]};
enum { BATCHES = sizeof(documents) / sizeof(documents[0]), SIZES = sizeof(sizes) / sizeof(sizes[0]), STEPS = 2 };
static const int *const *batches = documents;
static int batch_count = BATCHES;

static char refused[512]; /* why the last training had no graphs; "": it had them, or none was to be */

/* Gradient and loss after the last of some steps of all batches; or the first error. */
static enum status train(const char *settings, const char *staged, float **out, size_t *length, double *flop)
{
	struct step_part part = {0};
	struct rows r[BATCHES > SIZES ? BATCHES : SIZES];
	struct error err = {0};
	enum status st = STATUS_OK;
	double norm, loss = 0;
	struct work w;

	open_work(&w, true, FAMILY_QWEN2, adapter, settings);
	*length = w.s.model->params.length;
	*out = malloc(*length * sizeof(**out));
	for (int i = 0; i < batch_count; i++)
		make(&r[i], batches[i], w.s.model->shape.vocab);
	setenv("FAKE_CUDA", staged, 1);
	for (uint64_t step = 0; !st && step < STEPS; step++) {
		st = stepper_begin(&w.s, &err);
		for (int i = 0; !st && i < batch_count; i++)
			st = stepper_micro(&w.s, &r[i].b, step, 100, &part, &err);
		if (!st)
			st = stepper_end(&w.s, 1e-2, step, &loss, &norm, &err);
	}
	unsetenv("FAKE_CUDA");
	text_copy(refused, sizeof(refused), gpu_backend_graphs_refused(&w.s.back) ? gpu_backend_graphs_refused(&w.s.back) : "");
	if (!st)
		must(w.s.back.ops->get(&w.s.back, w.s.model->params.master, *out, &err), &err);
	*flop = part.flop;
	close_work(&w);
	return st;
}

static void same_as_without(const char *without, const char *with, const char *staged)
{
	float *plain, *graphs;
	double flop, flop_graphs;
	size_t length;

	assert_int_equal(train(without, "", &plain, &length, &flop), STATUS_OK);
	assert_int_equal(train(with, staged, &graphs, &length, &flop_graphs), STATUS_OK);
	assert_memory_equal(graphs, plain, length * sizeof(*plain));
	assert_true(flop_graphs == flop);
	free(plain);
	free(graphs);
}

static void graphs_change_no_bit(void **state)
{
	(void)state;
	skip_without_kernels();
	same_as_without("deterministic: true, graphs: false", "deterministic: true, graphs: true", "");
	same_as_without("deterministic: true, graphs: false", "deterministic: true, graphs: true", "late=1");
	same_as_without("tune: false, graphs: false", "tune: false, graphs: true", ""); /* the library's attention */
	same_as_without("deterministic: true, recompute: full, graphs: false", "deterministic: true, recompute: full, graphs: true", "");
	assert_string_equal(refused, "");
}

/* The graph that was used longest ago makes room, once the device is through with it. */
static void more_sizes_than_graphs_change_no_bit(void **state)
{
	(void)state;
	skip_without_kernels();
	batches = sizes;
	batch_count = SIZES;
	same_as_without("deterministic: true, graphs: false", "deterministic: true, graphs: true", "late=1");
	batches = documents;
	batch_count = BATCHES;
	assert_string_equal(refused, "");
}

/* A driver that takes no capture, or loses it: all goes on without, and why is told. */
static void without_a_graph_it_goes_on(void **state)
{
	static const struct {
		const char *fault, *told;
	} faults[] = {{"cuStreamBeginCapture_v2=900", "cuStreamBeginCapture"}, {"cuStreamEndCapture=901", "cuStreamEndCapture"}, {"cuGraphInstantiateWithFlags=2", "cuGraphInstantiate"}};

	(void)state;
	skip_without_kernels();
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		same_as_without("deterministic: true, graphs: false", "deterministic: true, graphs: true", faults[i].fault);
		if (!strstr(refused, faults[i].told))
			fail_msg("%s: %s", faults[i].fault, refused);
	}
}

/* Graphs are what runs; small micro-batches alone, and not where each operation is timed. */
static void a_launch_that_fails_is_told(void **state)
{
	float *out;
	size_t length;
	double flop;

	(void)state;
	skip_without_kernels();
	assert_int_not_equal(train("deterministic: true, graphs: true", "cuGraphLaunch=719@3", &out, &length, &flop), STATUS_OK);
	free(out);
	assert_int_equal(train("deterministic: true, graphs: false", "cuGraphLaunch=719", &out, &length, &flop), STATUS_OK);
	free(out);
	assert_int_equal(train("deterministic: true, graphs: true, step_parts: true", "cuGraphLaunch=719", &out, &length, &flop), STATUS_OK);
	free(out);
}

static void step(struct work *w, const struct rows *r, int micros, uint64_t number)
{
	struct step_part part = {0};
	struct error err = {0};
	double norm, loss;

	must(stepper_begin(&w->s, &err), &err);
	for (int i = 0; i < micros; i++)
		must(stepper_micro(&w->s, &r->b, number, 100, &part, &err), &err);
	must(stepper_end(&w->s, 1e-3, number, &loss, &norm, &err), &err);
}

/* A run that goes on has its products from the one before and holds its first step, however many micro-batches that has: it
 * is by other attention, and the way of the second step's is timed before anything is captured. */
static void a_held_step_is_no_step_of_a_graph(void **state)
{
	enum { MOST = 64 };
	struct gpu_choice products[MOST];
	struct gpu_attention_choice way = {0};
	struct error err = {0};
	size_t count = 0;
	bool timed = false;
	struct work w;
	struct rows r;

	(void)state;
	skip_without_kernels();
	head_dim = 64;
	open_work(&w, true, FAMILY_QWEN2, adapter, "tune: true, graphs: true");
	make(&r, equal, w.s.model->shape.vocab);
	step(&w, &r, 1, 0);
	while (count < MOST && gpu_backend_choice(&w.s.back, count, &products[count]))
		count++;
	assert_true(count > 0 && count < MOST);
	close_work(&w);
	open_work(&w, true, FAMILY_QWEN2, adapter, "tune: true, graphs: true");
	must(gpu_backend_recall(&w.s.back, products, count, NULL, 0, &err), &err);
	w.s.begun = false;
	step(&w, &r, 6, 0); /* three by each of the lists' two places */
	step(&w, &r, 2, 1);
	for (size_t i = 0; !timed && gpu_backend_attention_choice(&w.s.back, i, &way); i++)
		timed = way.docs == 2 && way.length == 32;
	assert_true(timed);
	assert_null(gpu_backend_graphs_refused(&w.s.back));
	close_work(&w);
	head_dim = 8;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_change_no_bit),
		cmocka_unit_test(more_sizes_than_graphs_change_no_bit),
		cmocka_unit_test(without_a_graph_it_goes_on),
		cmocka_unit_test(a_launch_that_fails_is_told),
		cmocka_unit_test(a_held_step_is_no_step_of_a_graph),
	};

	fakes_take();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
