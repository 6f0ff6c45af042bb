/* SPDX-License-Identifier: Apache-2.0 */
/* The division of paged attention among blocks: every column sees each of its keys once, and the blocks have about equal work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/random.h"
#include "model/gpu/paged/tiles.h"

enum { SEQUENCES = 60, STEPS = 60, PAGE = 32 };

struct step {
	int32_t begin[SEQUENCES + 1], keys[SEQUENCES];
	struct paged_work_rows rows;
	struct paged_work work;
};

static void make_step(struct step *s, uint32_t number)
{
	static const uint32_t heads[][2] = {{28, 4}, {9, 3}, {32, 8}, {8, 1}, {3, 3}};
	const uint32_t shape = random_u32(7, number, 0) % 5;
	const int64_t sequences = 1 + random_u32(7, number, 1) % SEQUENCES;

	memset(s, 0, sizeof(*s));
	for (int64_t i = 0; i < sequences; i++) {
		const uint32_t kind = random_u32(8, number, (uint64_t)i) % 8, word = random_u32(9, number, (uint64_t)i);
		const int32_t rows = kind < 5 ? 1 : kind < 7 ? 1 + (int32_t)(word % 9) : 1 + (int32_t)(word % 300);

		s->begin[i + 1] = s->begin[i] + rows;
		s->keys[i] = rows + (int32_t)(random_u32(10, number, (uint64_t)i) % (number % 3 ? 900 : 9000));
	}
	s->rows = (struct paged_work_rows){.begin = s->begin, .keys = s->keys, .sequences = sequences, .page_tokens = PAGE};
	s->work = (struct paged_work){
		.heads = heads[shape][0], .kv_heads = heads[shape][1], .blocks = 1 + random_u32(7, number, 2) % 200, .invariant = number % 2};
	s->work.room = paged_work_most(s->work.heads, s->work.kv_heads, s->begin[sequences], sequences, s->work.blocks);
	s->work.unit = calloc((size_t)s->work.room, sizeof(*s->work.unit));
	s->work.block = calloc(s->work.blocks + 1, sizeof(*s->work.block));
	s->work.first = calloc(s->work.blocks, sizeof(*s->work.first));
	assert_true(s->work.unit && s->work.block && s->work.first);
}

static void free_step(struct step *s)
{
	free(s->work.unit);
	free(s->work.block);
	free(s->work.first);
}

/* Takes the units of one sequence, KV head and range of columns from *at on, whose parts must have all keys. */
static void check_range(const struct step *s, int64_t sequence, uint32_t page, uint32_t col, uint32_t head, int64_t *at)
{
	const struct paged_work *w = &s->work;
	const uint32_t group = w->heads / w->kv_heads;
	const int32_t rows = s->begin[sequence + 1] - s->begin[sequence], position = s->keys[sequence] - rows;
	const uint32_t all = (uint32_t)rows * group, cols = all - col < PAGED_COLS ? all - col : PAGED_COLS;
	const struct paged_unit *first = &w->unit[*at];
	int32_t key = 0;

	assert_true(*at + first->parts <= w->count);
	for (uint32_t part = 0; part < first->parts; part++) {
		const struct paged_unit *u = &w->unit[(*at)++];

		assert_int_equal(u->row, s->begin[sequence]);
		assert_int_equal(u->position, position);
		assert_int_equal(u->page, page);
		assert_int_equal(u->col, col);
		assert_int_equal(u->cols, cols);
		assert_int_equal(u->kv_head, head);
		assert_int_equal(u->part, part);
		assert_int_equal(u->parts, first->parts);
		assert_int_equal(u->place, first->place);
		assert_int_equal(u->begin, key);
		assert_true(u->end > u->begin);
		assert_int_equal(u->begin % (w->invariant ? PAGED_SPLIT : PAGED_TILE), 0);
		key = u->end;
	}
	assert_int_equal(key, position + (int32_t)((col + cols - 1) / group) + 1);
	if (first->parts > 1)
		assert_true(first->place + first->parts <= paged_work_places(w->blocks));
}

static void check_places(const struct paged_work *w)
{
	uint8_t *taken = calloc(paged_work_places(w->blocks), 1);

	assert_non_null(taken);
	for (int64_t i = 0; i < w->count; i++)
		if (w->unit[i].parts > 1)
			assert_int_equal(taken[w->unit[i].place + w->unit[i].part]++, 0);
	free(taken);
}

static void check_blocks(const struct paged_work *w)
{
	assert_int_equal(w->block[0], 0);
	assert_int_equal(w->block[w->blocks], w->count);
	for (uint32_t b = 0; b < w->blocks; b++) {
		assert_true(w->block[b] <= w->block[b + 1]);
		if (w->block[b] < w->block[b + 1])
			assert_memory_equal(&w->first[b], &w->unit[w->block[b]], sizeof(*w->unit));
		else
			assert_int_equal(w->first[b].end, 0);
	}
}

static void every_key_is_seen_once(void **state)
{
	(void)state;
	for (uint32_t number = 0; number < STEPS; number++) {
		struct error err = {0};
		uint32_t page = 0;
		struct step s;
		int64_t at = 0;

		make_step(&s, number);
		assert_int_equal(paged_work_fill(&s.work, &s.rows, &err), STATUS_OK);
		for (int64_t i = 0; i < s.rows.sequences; i++) {
			const uint32_t all = (uint32_t)(s.begin[i + 1] - s.begin[i]) * (s.work.heads / s.work.kv_heads);

			for (uint32_t col = 0; col < all; col += PAGED_COLS)
				for (uint32_t head = 0; head < s.work.kv_heads; head++)
					check_range(&s, i, page, col, head, &at);
			page += (uint32_t)(s.keys[i] + PAGE - 1) / PAGE;
		}
		assert_int_equal(at, s.work.count);
		check_places(&s.work);
		check_blocks(&s.work);
		free_step(&s);
	}
}

/* Tiles of the block with most, and of all. */
static int64_t most_tiles(const struct paged_work *w, int64_t *all)
{
	int64_t most = 0;

	*all = 0;
	for (uint32_t b = 0; b < w->blocks; b++) {
		int64_t tiles = 0;

		for (uint32_t i = w->block[b]; i < w->block[b + 1]; i++)
			tiles += (w->unit[i].end - w->unit[i].begin + PAGED_TILE - 1) / PAGED_TILE;
		*all += tiles;
		most = tiles > most ? tiles : most;
	}
	return most;
}

static void decode_is_divided_evenly(void **state)
{
	static const int64_t sequences[] = {1, 32, 60};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct error err = {0};
		int64_t most, all;
		struct step s;

		make_step(&s, 0);
		free_step(&s);
		for (int64_t j = 0; j < sequences[i]; j++) {
			s.begin[j + 1] = (int32_t)j + 1;
			s.keys[j] = 4000 + (int32_t)j;
		}
		s.rows.sequences = sequences[i];
		s.work = (struct paged_work){.heads = 28, .kv_heads = 4, .blocks = 132};
		s.work.room = paged_work_most(28, 4, sequences[i], sequences[i], 132);
		s.work.unit = calloc((size_t)s.work.room, sizeof(*s.work.unit));
		s.work.block = calloc(133, sizeof(*s.work.block));
		s.work.first = calloc(132, sizeof(*s.work.first));
		assert_int_equal(paged_work_fill(&s.work, &s.rows, &err), STATUS_OK);
		most = most_tiles(&s.work, &all);
		assert_true(most * 132 <= all * 11 / 10 + 132 * 8);
		free_step(&s);
	}
}

/* Parts of a range cost time to join. So a batch of which each block gets the same number of ranges is not cut. */
static void short_sequences_stay_whole(void **state)
{
	static const int32_t sequences[] = {32, 60, 1};
	static const int64_t tiles_most[] = {38, 2 * 38, 10}; /* of a block; one sequence alone is cut */

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct error err = {0};
		int64_t all;
		struct step s;

		make_step(&s, 0);
		free_step(&s);
		for (int32_t j = 0; j < sequences[i]; j++) {
			s.begin[j + 1] = j + 1;
			s.keys[j] = 600;
		}
		s.rows.sequences = sequences[i];
		s.work = (struct paged_work){.heads = 28, .kv_heads = 4, .blocks = 132};
		s.work.room = paged_work_most(28, 4, sequences[i], sequences[i], 132);
		s.work.unit = calloc((size_t)s.work.room, sizeof(*s.work.unit));
		s.work.block = calloc(133, sizeof(*s.work.block));
		s.work.first = calloc(132, sizeof(*s.work.first));
		assert_int_equal(paged_work_fill(&s.work, &s.rows, &err), STATUS_OK);
		assert_true(most_tiles(&s.work, &all) <= tiles_most[i]);
		assert_int_equal(all, sequences[i] * 4 * 38);
		for (int64_t j = 0; j < s.work.count; j++)
			assert_int_equal(s.work.unit[j].parts > 1, sequences[i] == 1);
		check_blocks(&s.work);
		free_step(&s);
	}
}

/* Microseconds of a block on an H200 (results/2026-11-30-h200-x2/engine): a unit of more than 16 columns takes long, whatever its keys. */
static double block_us(const struct paged_work *w, uint32_t block)
{
	double us = 0;

	for (uint32_t i = w->block[block]; i < w->block[block + 1]; i++) {
		const struct paged_unit *u = &w->unit[i];
		const double tiles = (u->end - u->begin + PAGED_TILE - 1) / PAGED_TILE;

		us += u->cols > 16 ? 11 + 0.18 * tiles : 1 + 0.23 * tiles;
	}
	return us;
}

/* A short piece of a prompt has many units with few keys. They must not meet in the blocks that decoding sequences leave. */
static void pieces_of_prompts_are_divided_evenly(void **state)
{
	static const struct {
		int32_t decoding, rows, before;
	} steps[] = {{50, 32, 0}, {50, 96, 0}, {50, 96, 900}, {18, 96, 0}, {0, 127, 0}, {0, 127, 16384}, {30, 64, 4096}};

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const int32_t decoding = steps[i].decoding, rows = steps[i].rows;
		double most = 0, all = 0;
		struct error err = {0};
		struct step s;

		make_step(&s, 0);
		free_step(&s);
		for (int32_t j = 0; j < decoding; j++) {
			s.begin[j + 1] = j + 1;
			s.keys[j] = 1100 + j;
		}
		s.begin[decoding + 1] = decoding + rows;
		s.keys[decoding] = steps[i].before + rows;
		s.rows.sequences = decoding + 1;
		s.work = (struct paged_work){.heads = 28, .kv_heads = 4, .blocks = 132};
		s.work.room = paged_work_most(28, 4, decoding + rows, decoding + 1, 132);
		s.work.unit = calloc((size_t)s.work.room, sizeof(*s.work.unit));
		s.work.block = calloc(133, sizeof(*s.work.block));
		s.work.first = calloc(132, sizeof(*s.work.first));
		assert_int_equal(paged_work_fill(&s.work, &s.rows, &err), STATUS_OK);
		for (uint32_t b = 0; b < s.work.blocks; b++) {
			const double us = block_us(&s.work, b);

			all += us;
			most = us > most ? us : most;
		}
		assert_true(most <= all / s.work.blocks + 24);
		free_step(&s);
	}
}

/* The units of `all` move behind each other in one list, with other page numbers. */
static void a_division_can_be_moved(void **state)
{
	struct error err = {0};
	struct step s;

	(void)state;
	make_step(&s, 3);
	assert_int_equal(paged_work_fill(&s.work, &s.rows, &err), STATUS_OK);
	paged_work_place(&s.work, 100, 1000);
	assert_int_equal(s.work.block[0], 100);
	assert_int_equal(s.work.block[s.work.blocks], 100 + s.work.count);
	assert_int_equal(s.work.unit[0].page, 1000);
	assert_int_equal(s.work.first[0].page, 1000);
	free_step(&s);
}

static void bad_steps_are_refused(void **state)
{
	struct error err = {0};
	struct step s;

	(void)state;
	make_step(&s, 1);
	s.work.room = 1;
	assert_int_equal(paged_work_fill(&s.work, &s.rows, &err), STATUS_BUG);
	assert_string_equal(err.text, "attention has more than 1 units of work");
	error_clear(&err);
	s.begin[1] = 5;
	s.keys[0] = 4;
	assert_int_equal(paged_work_fill(&s.work, &s.rows, &err), STATUS_BUG);
	assert_string_equal(err.text, "sequence 0 of a step has 5 rows and 4 keys");
	error_clear(&err);
	free_step(&s);
}

/* -- tiles -- */

static void tiles_name_each_row_and_head_once(void **state)
{
	static const int32_t rows[] = {300, 1, 64, 63, 129, 700}, before[] = {0, 50, 1000, 0, 77, 5000};

	(void)state;
	for (uint32_t dim = 64; dim <= 128; dim += 64) {
		struct paged_part part = {9, 9, 9, 9};
		struct paged_block block[200];
		struct paged_tiles t = {.rows_least = PAGED_TILES_LEAST,
					.heads = 6,
					.head_dim = dim,
					.part = &part,
					.part_room = 1,
					.copy_blocks = 200,
					.block = block,
					.block_room = 200};
		int32_t begin[7] = {0}, keys[6];
		uint8_t seen[6][1300] = {{0}};
		struct error err = {0};
		const struct paged_work_rows r = {.begin = begin, .keys = keys, .sequences = 6, .page_tokens = PAGE};

		for (int i = 0; i < 6; i++) {
			begin[i + 1] = begin[i] + rows[i];
			keys[i] = before[i] + rows[i];
		}
		t.room = paged_tiles_most(6, dim, begin[6]);
		t.tile = calloc((size_t)t.room, sizeof(*t.tile));
		assert_non_null(t.tile);
		assert_int_equal(paged_tiles_fill(&t, &r, &err), STATUS_OK);
		for (int64_t i = 0; i < t.count; i++) {
			const struct paged_tile *u = &t.tile[i];
			int32_t last = u->first * 64 + PAGED_TILES_ROWS(dim);

			last = last < u->rows ? last : u->rows;
			for (int32_t row = u->first * 64; row < last; row++)
				seen[u->head][u->row + row]++;
			assert_int_equal(u->blocks, (uint32_t)(u->keys - u->rows + last + PAGED_TILES_KEYS(dim) - 1) /
							    PAGED_TILES_KEYS(dim));
			assert_true(i == 0 || u->blocks <= t.tile[i - 1].blocks);
		}
		assert_int_equal(t.parts, 1);
		assert_int_equal(part.tile, 0);
		assert_int_equal(part.tiles, t.count);
		assert_int_equal(part.block, 0);
		assert_int_equal(part.blocks, t.blocks);
		for (uint32_t head = 0; head < 6; head++)
			for (int s = 0; s < 6; s++)
				for (int32_t row = begin[s]; row < begin[s + 1]; row++)
					assert_int_equal(seen[head][row], rows[s] >= PAGED_TILES_LEAST);
		t.room = 5;
		assert_int_equal(paged_tiles_fill(&t, &r, &err), STATUS_BUG);
		error_clear(&err);
		free(t.tile);
	}
}

/* -- parts, whose pages are copied -- */

enum { COPIED = 7 };
static const int32_t copied_rows[COPIED] = {300, 1, 64, 63, 129, 64, 700}, copied_before[COPIED] = {0, 50, 1000, 0, 127, 960, 300};

struct copied {
	struct paged_tiles tiles;
	struct paged_work_rows rows;
	int32_t begin[COPIED + 1], keys[COPIED];
};

static void open_copied(struct copied *c, uint32_t dim)
{
	struct paged_tiles_limits most = {.heads = 2, .head_dim = dim, .sequences = COPIED};

	memset(c, 0, sizeof(*c));
	for (int i = 0; i < COPIED; i++) {
		c->begin[i + 1] = c->begin[i] + copied_rows[i];
		c->keys[i] = copied_before[i] + copied_rows[i];
		most.positions = c->keys[i] > most.positions ? c->keys[i] : most.positions;
	}
	most.rows = c->begin[COPIED];
	c->rows = (struct paged_work_rows){.begin = c->begin, .keys = c->keys, .sequences = COPIED, .page_tokens = PAGE};
	c->tiles = (struct paged_tiles){.rows_least = PAGED_TILES_LEAST,
					.heads = 2,
					.head_dim = dim,
					.room = paged_tiles_most(2, dim, most.rows),
					.part_room = paged_tiles_parts_most(most.rows),
					.block_room = paged_tiles_blocks_most(&most),
					.copy_blocks = (most.positions + PAGED_TILES_KEYS(dim) - 1) / PAGED_TILES_KEYS(dim)};
	c->tiles.tile = calloc((size_t)c->tiles.room, sizeof(*c->tiles.tile));
	c->tiles.part = calloc((size_t)c->tiles.part_room, sizeof(*c->tiles.part));
	c->tiles.block = calloc((size_t)c->tiles.block_room, sizeof(*c->tiles.block));
	assert_true(c->tiles.tile && c->tiles.part && c->tiles.block);
	assert_true(paged_tiles_copy_blocks(&most) >= c->tiles.copy_blocks);
}

static void free_copied(struct copied *c)
{
	free(c->tiles.tile);
	free(c->tiles.part);
	free(c->tiles.block);
}

/* The tile's sequence has its keys from row `key` of the copy on. Returns its number. */
static int expect_blocks(const struct copied *c, const struct paged_part *p, const struct paged_tile *u)
{
	const int32_t each = PAGED_TILES_KEYS(c->tiles.head_dim);
	const struct paged_block *b = &c->tiles.block[p->block + u->key / (uint32_t)each];
	uint32_t page = 0;
	int s = 0;

	for (; c->begin[s] != u->row; s++)
		page += (uint32_t)(c->keys[s] + PAGE - 1) / PAGE;
	assert_int_equal(u->keys, c->keys[s]);
	assert_int_equal(u->key % (uint32_t)each, 0);
	for (int32_t at = 0; at < u->keys; at += each, b++) {
		assert_true((uint32_t)(b - c->tiles.block) < p->block + p->blocks);
		assert_int_equal(b->page, page + (uint32_t)(at / PAGE));
		assert_int_equal(b->keys, u->keys - at < each ? u->keys - at : each);
	}
	return s;
}

/* Each sequence with tiles is in one part, and the blocks of a part have room in a copy of any size. */
static void parts_have_room_in_the_copy(void **state)
{
	(void)state;
	for (uint32_t dim = 64; dim <= 128; dim += 64) {
		struct error err = {0};
		struct copied c;

		open_copied(&c, dim);
		for (; c.tiles.copy_blocks < 100; c.tiles.copy_blocks += 3) {
			int64_t tile = 0, block = 0, units[COPIED] = {0};

			assert_int_equal(paged_tiles_fill(&c.tiles, &c.rows, &err), STATUS_OK);
			for (int64_t i = 0; i < c.tiles.parts; i++) {
				const struct paged_part *p = &c.tiles.part[i];

				assert_true(p->tile == tile && p->block == block && p->tiles > 0 && p->blocks <= c.tiles.copy_blocks);
				for (uint32_t j = 0; j < p->tiles; j++) {
					const struct paged_tile *u = &c.tiles.tile[p->tile + j];

					units[expect_blocks(&c, p, u)]++;
					assert_true(j == 0 || u->blocks <= u[-1].blocks);
				}
				tile += p->tiles;
				block += p->blocks;
			}
			assert_true(tile == c.tiles.count && block == c.tiles.blocks);
			for (int s = 0; s < COPIED; s++)
				assert_int_equal(units[s], copied_rows[s] < PAGED_TILES_LEAST ? 0
											      : 2 * ((copied_rows[s] + PAGED_TILES_ROWS(dim) - 1) /
												     PAGED_TILES_ROWS(dim)));
		}
		assert_int_equal(c.tiles.parts, 1);
		free_copied(&c);
	}
}

static void expect_no_room(struct copied *c, const char *words)
{
	struct error err = {0};

	assert_int_equal(paged_tiles_fill(&c->tiles, &c->rows, &err), STATUS_BUG);
	assert_string_equal(err.text, words);
	error_clear(&err);
}

static void copies_without_room_are_refused(void **state)
{
	struct copied c;

	(void)state;
	open_copied(&c, 128);
	c.tiles.copy_blocks = 8; /* the longest sequence has 9 */
	expect_no_room(&c, "1064 keys have no room in the copy of pages");
	c.tiles.copy_blocks = 9;
	c.tiles.part_room = 2;
	expect_no_room(&c, "attention has more than 2 parts of tiles");
	c.tiles.part_room = 9;
	c.tiles.block_room = 2;
	expect_no_room(&c, "300 keys have no room in the copy of pages");
	c.rows.sequences = 0;
	assert_int_equal(paged_tiles_fill(&c.tiles, &c.rows, NULL), STATUS_OK);
	assert_int_equal(c.tiles.parts, 0); /* nothing to launch */
	free_copied(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_have_room_in_the_copy),
		cmocka_unit_test(copies_without_room_are_refused),
		cmocka_unit_test(every_key_is_seen_once),
		cmocka_unit_test(decode_is_divided_evenly),
		cmocka_unit_test(pieces_of_prompts_are_divided_evenly), cmocka_unit_test(short_sequences_stay_whole),
		cmocka_unit_test(a_division_can_be_moved),
		cmocka_unit_test(bad_steps_are_refused),
		cmocka_unit_test(tiles_name_each_row_and_head_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
