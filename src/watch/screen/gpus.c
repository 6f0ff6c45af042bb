/* SPDX-License-Identifier: Apache-2.0 */
/* The table of GPUs: one line each. Its columns are rows of the catalogue. */
#include <math.h>
#include <string.h>
#include "watch/screen/draw.h"
#include "watch/screen/value.h"

struct column {
	const char *heading;
	enum catalogue row; /* its help text and its unit */
	unsigned width;
	unsigned rank; /* columns with a low rank remain on a narrow screen */
	void (*put)(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		    const struct watch_entity *e);
};

static enum screen_role role_of(const struct draw *d, const struct watch_entity *e, enum screen_role role)
{
	return screen_stale(d->n, e) ? SCREEN_ROLE_STALE : role;
}

static void put_text(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		     const struct watch_entity *e, enum screen_role role, const char *text)
{
	bool absent = !strcmp(text, "-");

	screen_put_right(d->s, x, y, c->width, absent ? SCREEN_ROLE_DIM : role_of(d, e, role), text);
}

static void put_value(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		      const struct watch_entity *e)
{
	char out[SCREEN_VALUE];
	double value = 0;
	bool present = screen_sample(&value, e, c->row);

	put_text(d, c, x, y, e, SCREEN_ROLE_TEXT, screen_short(out, c->row, value, present));
}

static void put_share(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		      const struct watch_entity *e)
{
	char out[SCREEN_VALUE];
	double value = 0;
	bool present = screen_sample(&value, e, c->row);

	put_text(d, c, x, y, e, screen_level(value), screen_short(out, c->row, value, present));
}

/* The value in the unit of its limit: "61.2/79.6G", "512/700W". */
static void put_of(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		   const struct watch_entity *e, enum catalogue row, enum catalogue of)
{
	char all[SCREEN_VALUE], used[SCREEN_VALUE], both[2 * SCREEN_VALUE + 2];
	double value = screen_number(e, row), limit = screen_number(e, of), unit = 1;

	if (isnan(value) || !(limit > 0)) {
		put_text(d, c, x, y, e, SCREEN_ROLE_TEXT, screen_short(used, row, value, !isnan(value)));
		return;
	}
	screen_short(all, of, limit, true);
	for (const char *p = "kMGT"; !strcmp(catalogue_row(of)->unit, "bytes") && *p; p++) {
		unit *= 1024;
		if (all[strlen(all) - 1] == *p)
			break;
	}
	screen_compact(used, unit > 1 ? round(10 * value / unit) / 10 : round(value), 1e9);
	if (unit > 1 && value / unit < 999)
		snprintf(used, sizeof(used), value / unit < 99.95 ? "%.1f" : "%.0f", value / unit);
	snprintf(both, sizeof(both), "%s/%s", used, all);
	put_text(d, c, x, y, e, screen_level(value / limit), both);
}

static void put_memory(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		       const struct watch_entity *e)
{
	if (e->scope == METRIC_SCOPE_GPU_INSTANCE)
		put_of(d, c, x, y, e, CATALOGUE_INSTANCE_MEMORY_USED, CATALOGUE_INSTANCE_MEMORY);
	else
		put_of(d, c, x, y, e, CATALOGUE_GPU_MEMORY_USED, CATALOGUE_GPU_MEMORY);
}

static void put_power(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		      const struct watch_entity *e)
{
	put_of(d, c, x, y, e, CATALOGUE_GPU_POWER, CATALOGUE_GPU_POWER_LIMIT);
}

/* The reason that holds the clock: the one that matters most, "+" if there are others. */
static void put_held(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		     const struct watch_entity *e)
{
	static const struct {
		enum catalogue row;
		const char *name;
		enum screen_role role;
	} reasons[] = {{CATALOGUE_GPU_HELD_BRAKE, "brake", SCREEN_ROLE_BAD},
		       {CATALOGUE_GPU_HELD_HW_THERMAL, "hw heat", SCREEN_ROLE_BAD},
		       {CATALOGUE_GPU_HELD_HW_SLOWDOWN, "hw slow", SCREEN_ROLE_BAD},
		       {CATALOGUE_GPU_HELD_SW_THERMAL, "sw heat", SCREEN_ROLE_BAD},
		       {CATALOGUE_GPU_HELD_POWER, "power", SCREEN_ROLE_WARN},
		       {CATALOGUE_GPU_HELD_SYNC, "sync", SCREEN_ROLE_TEXT},
		       {CATALOGUE_GPU_HELD_SETTING, "setting", SCREEN_ROLE_TEXT},
		       {CATALOGUE_GPU_HELD_IDLE, "idle", SCREEN_ROLE_DIM}};
	const char *name = NULL;
	enum screen_role role = SCREEN_ROLE_DIM;
	bool known = false, more = false;
	char out[24];

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		double on = screen_number(e, reasons[i].row);

		known = known || !isnan(on);
		if (!(on > 0))
			continue;
		more = more || name;
		if (!name)
			role = reasons[i].role;
		name = name ? name : reasons[i].name;
	}
	snprintf(out, sizeof(out), "%s%s", name ? name : known ? "free" : "-", more ? "+" : "");
	put_text(d, c, x, y, e, role, out);
}

/* "ok", or how many: "2c" corrected, "1u" uncorrected, "row" if a row is pending or failed. */
static void put_ecc(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		    const struct watch_entity *e)
{
	double corrected = screen_number(e, CATALOGUE_GPU_ECC_CORRECTED);
	double wrong = screen_number(e, CATALOGUE_GPU_ECC_UNCORRECTED);
	bool rows = screen_number(e, CATALOGUE_GPU_ROWS_PENDING) > 0 ||
		    screen_number(e, CATALOGUE_GPU_ROWS_FAILED) > 0;
	char count[SCREEN_VALUE], out[SCREEN_VALUE + 2];

	if (wrong > 0 || rows) {
		screen_compact(count, wrong > 0 ? wrong : 0, 1000);
		snprintf(out, sizeof(out), "%su", count);
		put_text(d, c, x, y, e, SCREEN_ROLE_BAD, rows && !(wrong > 0) ? "row" : out);
	} else if (corrected > 0) {
		screen_compact(count, corrected, 1000);
		snprintf(out, sizeof(out), "%sc", count);
		put_text(d, c, x, y, e, SCREEN_ROLE_WARN, out);
	} else {
		put_text(d, c, x, y, e, SCREEN_ROLE_DIM, isnan(corrected) && isnan(wrong) ? "-" : "ok");
	}
}

static void put_xid(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		    const struct watch_entity *e)
{
	double last = screen_number(e, CATALOGUE_GPU_XID_LAST);
	char out[SCREEN_VALUE];

	snprintf(out, sizeof(out), "%.0f", fmin(last, 9999));
	put_text(d, c, x, y, e, SCREEN_ROLE_BAD, last > 0 ? out : "-");
}

/* Two rates: from the GPU and to it. NaN: not known. */
static void put_both(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		     const struct watch_entity *e, double out, double in)
{
	char first[SCREEN_VALUE], second[SCREEN_VALUE], both[2 * SCREEN_VALUE + 2];

	snprintf(both, sizeof(both), "%s/%s", screen_short(first, c->row, out, !isnan(out)),
		 screen_short(second, c->row, in, !isnan(in)));
	put_text(d, c, x, y, e, SCREEN_ROLE_TEXT, isnan(out) && isnan(in) ? "-" : both);
}

/* The links of a GPU are entities of their own. */
static void put_nvlink(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		       const struct watch_entity *e)
{
	double out, in;
	bool out_known = screen_sum(&out, d->n->state, e, CATALOGUE_NVLINK_TX);
	bool in_known = screen_sum(&in, d->n->state, e, CATALOGUE_NVLINK_RX);

	put_both(d, c, x, y, e, out_known ? out : NAN, in_known ? in : NAN);
}

static void put_pcie(const struct draw *d, const struct column *c, unsigned x, unsigned y,
		     const struct watch_entity *e)
{
	put_both(d, c, x, y, e, screen_number(e, CATALOGUE_GPU_PCIE_TX),
		 screen_number(e, CATALOGUE_GPU_PCIE_RX));
}

static const struct column columns[] = {
	{"util", CATALOGUE_GPU_UTILIZATION, 4, 1, put_share},
	{"SM", CATALOGUE_GPU_SM_ACTIVE, 4, 8, put_share},
	{"tens", CATALOGUE_GPU_TENSOR_ACTIVE, 4, 9, put_share},
	{"DRAM", CATALOGUE_GPU_DRAM_ACTIVE, 4, 10, put_share},
	{"memory", CATALOGUE_GPU_MEMORY_USED, 10, 2, put_memory},
	{"temp", CATALOGUE_GPU_TEMPERATURE, 4, 3, put_value},
	{"power", CATALOGUE_GPU_POWER, 8, 4, put_power},
	{"clock", CATALOGUE_GPU_SM_CLOCK, 5, 6, put_value},
	{"held by", CATALOGUE_GPU_HELD_POWER, 8, 7, put_held},
	{"ECC", CATALOGUE_GPU_ECC_UNCORRECTED, 5, 11, put_ecc},
	{"Xid", CATALOGUE_GPU_XID_LAST, 4, 5, put_xid},
	{"NVLink out/in", CATALOGUE_NVLINK_TX, 13, 12, put_nvlink},
	{"PCIe out/in", CATALOGUE_GPU_PCIE_TX, 13, 13, put_pcie},
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), NAME_WIDTH = 18, NAME_RANK = 14, SPARKLINE_MIN = 8 };

bool draw_gpu_column(const char **heading, enum catalogue *row, unsigned index)
{
	if (index >= COLUMNS)
		return false;
	*heading = columns[index].heading;
	*row = columns[index].row;
	return true;
}

/* What fits: for each column its place, 0 if it is left out. */
struct places {
	unsigned index_width, name, at[COLUMNS], sparkline, sparkline_width;
};

static void find_places(struct places *p, unsigned width, unsigned index_width)
{
	bool shown[COLUMNS] = {false}, name = false, open = true;
	unsigned used = index_width, x = index_width + 1;

	*p = (struct places){.index_width = index_width};
	for (unsigned rank = 1; rank <= NAME_RANK && open; rank++) {
		for (unsigned i = 0; i < COLUMNS; i++) {
			if (columns[i].rank != rank)
				continue;
			open = used + 1 + columns[i].width <= width;
			shown[i] = open;
			used += open ? 1 + columns[i].width : 0;
		}
		if (rank == NAME_RANK && open && used + 1 + NAME_WIDTH <= width) {
			name = true;
			used += 1 + NAME_WIDTH;
		}
	}
	if (name) {
		p->name = x;
		x += NAME_WIDTH + 1;
	}
	for (unsigned i = 0; i < COLUMNS; i++) {
		if (!shown[i])
			continue;
		p->at[i] = x;
		x += columns[i].width + 1;
	}
	if (x + SPARKLINE_MIN <= width) {
		p->sparkline = x;
		p->sparkline_width = width - x < SCREEN_SAMPLES ? width - x : SCREEN_SAMPLES;
	}
}

static void put_headings(const struct draw *d, const struct places *p, unsigned y)
{
	screen_put(d->s, 0, y, p->index_width, SCREEN_ROLE_HEADING, "GPU");
	if (p->name)
		screen_put(d->s, p->name, y, NAME_WIDTH, SCREEN_ROLE_HEADING, "name");
	for (unsigned i = 0; i < COLUMNS; i++)
		if (p->at[i])
			screen_put_right(d->s, p->at[i], y, columns[i].width, SCREEN_ROLE_HEADING,
					 columns[i].heading);
	if (p->sparkline)
		screen_put(d->s, p->sparkline, y, p->sparkline_width, SCREEN_ROLE_HEADING, "history");
}

static const char *short_model(const struct watch_entity *e)
{
	const char *name = screen_label(e, "modelName");

	return !strncmp(name, "NVIDIA ", 7) ? name + 7 : name;
}

static void index_text(char out[32], const struct watch_entity *e)
{
	const char *instance = screen_label(e, "GPU_I_ID");

	snprintf(out, 32, "%.12s%s%.12s", screen_label(e, "gpu"), *instance ? "/" : "", instance);
}

/* The reason of a GPU that gives no values. */
static void put_lost(const struct draw *d, const struct places *p, unsigned y, const struct watch_entity *e)
{
	unsigned x = p->index_width + 1;

	if (screen_lost(e))
		screen_putf(d->s, x, y, d->s->columns - x, SCREEN_ROLE_BAD, "LOST%s%s", e->why ? ": " : "",
			    e->why ? e->why : "");
	else
		screen_put(d->s, x, y, d->s->columns - x, SCREEN_ROLE_WARN, e->why);
}

static void put_gpu(const struct draw *d, const struct places *p, unsigned y, const struct watch_entity *e)
{
	char index[32], age[SCREEN_VALUE];

	index_text(index, e);
	screen_put(d->s, 0, y, p->index_width, SCREEN_ROLE_TITLE, index);
	if (screen_lost(e) || e->why) {
		put_lost(d, p, y, e);
		return;
	}
	if (p->name)
		screen_put(d->s, p->name, y, NAME_WIDTH, SCREEN_ROLE_DIM,
			   *screen_label(e, "GPU_I_PROFILE") ? screen_label(e, "GPU_I_PROFILE")
							     : short_model(e));
	for (unsigned i = 0; i < COLUMNS; i++)
		if (p->at[i])
			columns[i].put(d, &columns[i], p->at[i], y, e);
	if (screen_stale(d->n, e)) {
		const char *text = screen_duration(age, screen_age(d->n, e));
		unsigned width = p->sparkline ? p->sparkline_width : 12, x = d->s->columns - width;

		for (unsigned i = 0; p->sparkline == 0 && i < width; i++)
			screen_set(d->s, x + i, y, ' ', SCREEN_ROLE_TEXT);
		screen_putf(d->s, p->sparkline ? p->sparkline : x, y, width, SCREEN_ROLE_WARN, " %s old",
			    text);
	} else if (p->sparkline) {
		draw_sparkline(d, p->sparkline, y, p->sparkline_width, e, CATALOGUE_GPU_UTILIZATION, 1);
	}
}

size_t draw_scroll(size_t *at, size_t count, unsigned rows)
{
	if (*at >= count)
		*at = count ? count - 1 : 0;
	if (count <= rows || *at < rows / 2)
		return 0;
	return *at - rows / 2 + rows > count ? count - rows : *at - rows / 2;
}

unsigned draw_gpus_rows(const struct draw *d)
{
	struct screen_gpus l;
	size_t count;

	screen_gpus_make(&l, d->v, d->n);
	count = l.count;
	screen_gpus_release(&l);
	return count ? (unsigned)count + 1 : 0;
}

unsigned draw_gpus(const struct draw *d, unsigned y, unsigned rows)
{
	struct screen_gpus l;
	struct places p;
	unsigned used = 0, index_width = 3;
	size_t first;

	screen_gpus_make(&l, d->v, d->n);
	for (size_t i = 0; i < l.count; i++) {
		char index[32];

		index_text(index, l.gpu[i]);
		index_width = strlen(index) > index_width ? (unsigned)strlen(index) : index_width;
	}
	find_places(&p, d->s->columns, index_width);
	if (l.count && rows > 3)
		put_headings(d, &p, y + used++);
	first = draw_scroll(&d->v->gpu_at, l.count, rows - used);
	for (size_t i = first; i < l.count && used < rows; i++, used++) {
		put_gpu(d, &p, y + used, l.gpu[i]);
		d->s->hit[y + used] = (struct screen_hit){SCREEN_TARGET_GPU, i};
		if (i == d->v->gpu_at && !d->v->on_processes && !d->v->printed)
			screen_paint(d->s, 0, y + used, index_width, SCREEN_ROLE_SELECTED);
	}
	screen_gpus_release(&l);
	return used;
}
