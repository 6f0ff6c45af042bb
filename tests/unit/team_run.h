/* SPDX-License-Identifier: Apache-2.0 */
/* A team's run directories as text: rank 0 on node-a, ranks 1 and 2 on node-b, whose clock is CLOCK_AHEAD ahead and
 * gains 1000 ns over the run. Each rank has a GPU of its own, which it calls gpu0. */
#ifndef TESTS_TEAM_RUN_H
#define TESTS_TEAM_RUN_H
#include "core/file/file.h"
#include "core/text/text.h"
#include "journal/journal.h"
#include "journal/file/rank_dir.h"
#include "scratch.h"

#define CLOCK_AHEAD 5000000ull
enum { TEAM_RANKS = 3, TEAM_T0 = 10000, TEAM_T1 = 20000 }; /* the clocks' readings, of rank 0's */

struct team_run { /* what a test changes of one rank's journal */
	unsigned rank;
	const char *build, *driver;
	unsigned says_rank, says_size;
	double rate;	      /* of its GPU; 0: 1e12 */
	bool open, unplanned; /* no close; no plan either */
	bool aside;	      /* plans what its node's lowest rank does, and a case that nobody asked for */
	const char *more;     /* bytes behind */
};

static inline struct team_run team_rank(unsigned rank)
{
	return (struct team_run){
		.rank = rank, .build = "b1", .driver = "580", .says_rank = rank, .says_size = TEAM_RANKS, .more = ""};
}

static inline void team_lines_team(struct text *t, const struct team_run *o, bool parted)
{
	text_addf(t,
		  "'team':{'rank':%u,'size':%u,'node':%d,'nodes':[{'name':'node-a','ranks':[0],'offset_ns':0,'error_ns':0,"
		  "'at':0},{'name':'node-b','ranks':[1,2],'offset_ns':%llu,'error_ns':40,'at':%d}]}",
		  o->says_rank, o->says_size, o->rank > 0, CLOCK_AHEAD + (parted ? 1000 : 0), parted ? TEAM_T1 : TEAM_T0);
}

/* `t` as the rank's own clock shows it, at a time of rank 0's. */
static inline unsigned long long team_own_time(unsigned rank, unsigned t)
{
	return t + (rank ? CLOCK_AHEAD + (t - TEAM_T0) / 10 : 0);
}

static inline void team_lines_case(struct text *t, const struct team_run *o, unsigned id, unsigned at)
{
	static const char of_ranks[] = ",'ranks':3,'rank_ns_min':90,'rank_ns_median':100,'rank_ns_max':120,'rank_shortest':0,"
				       "'rank_longest':2";
	unsigned long long t0 = team_own_time(o->rank, at), t1 = team_own_time(o->rank, at + 1000);

	text_addf(t, "{'n':%u,'t':%llu,'type':'begin','case':%u,'attempt':1,'pid':5}\n", 3 + 4 * id, t0, id);
	text_addf(t, "{'n':%u,'t':%llu,'type':'phase','case':%u,'phase':'%s','t0':%llu,'t1':%llu}\n", 4 + 4 * id, t1, id,
		  id == 1 && o->rank ? "rank" : "sustained", t0, t1);
	text_addf(t,
		  "{'n':%u,'t':%llu,'type':'result','case':%u,'phase':'%s','values':{'flop_rate':%g,'byte_rate':1e11,'window_s':2,"
		  "'settled':1,'samples':200,'half_width_share':0.001,'wrong_checked':9,'wrong_total':9,'wrong_count':0,"
		  "'time_ns_mean':%u%s}}\n",
		  5 + 4 * id, t1, id, id == 1 && o->rank ? "rank" : "sustained", o->rate > 0 ? o->rate : 1e12, 100 + o->rank,
		  id == 1 && !o->rank ? of_ranks : "");
	text_addf(t, "{'n':%u,'t':%llu,'type':'end','case':%u,'ending':'done','status':'ok','cause':'','text':''}\n",
		  6 + 4 * id, t1, id);
}

static inline void team_lines(struct text *t, const struct team_run *o)
{
	text_addf(t, "{'n':0,'t':%llu,'type':'open','schema':2,'program':'0.1.0','build':'%s','seed':7,'node':'x',",
		  team_own_time(o->rank, 10000), o->build);
	team_lines_team(t, o, false);
	text_addf(t,
		  "}\n{'n':1,'t':%llu,'type':'machine','facts':{'format':1,'driver':{'version':'%s','loaded':true},'system':{"
		  "'kernel':'6.8'},'gpus':[{'pci':'0000:%u0:00.0','status':'ok','name':'NVIDIA X','facts':{'power_limit_w':700}"
		  "}]}}\n",
		  team_own_time(o->rank, 10001), o->driver, o->rank + 1);
	if (o->unplanned)
		return;
	text_addf(t,
		  "{'n':2,'t':%llu,'type':'plan','hash':'h','suite':'tiny','steps':[{'together':true,'cases':[{'case':0,'key':"
		  "'gemm engine=x m=1','probe':'gemm','engine':'x','options':{'m':'1'},'kind':'timed','target':'gpu0','gpus':["
		  "'0000:%u0:00.0'],'phases':'headline','require':'measured','work':{'flop':1e9,'limit':'compute.fp32'},'skip':"
		  "null}]},{'together':false,'cases':[{'case':1,'key':'collective op=x','probe':'collective','engine':'y','options':"
		  "{},'kind':'timed','target':'team','team':1,'phases':'headline','require':'measured','skip':null}]},{'together':"
		  "false,'cases':[{'case':2,'key':'gemm engine=x m=1','probe':'gemm','engine':'x','options':{'m':'1'},'kind':"
		  "'timed','target':'gpu0','gpus':['0000:%u0:00.0'],'phases':'headline','require':'measured','again':0,'work':{"
		  "'flop':1e9,'limit':'compute.fp32'},'skip':null}",
		  team_own_time(o->rank, 10002), o->rank + 1, o->rank + 1);
	if (o->rank < 2) /* a node's lowest rank alone */
		text_add(t, ",{'case':3,'key':'memory engine=c','probe':'memory','engine':'c','options':{},'kind':'timed','target':"
			    "'cpu','phases':'headline','require':'measured','work':{'limit':'memory'},'skip':null}");
	else if (o->aside)
		text_add(t, ",{'case':3,'key':'memory engine=c','probe':'memory','engine':'c','options':{},'kind':'timed','target':"
			    "'cpu','phases':'headline','require':'measured','skip':{'status':'unsupported','cause':'not_asked',"
			    "'reason':'rank 1 does it for this node'}}");
	if (o->aside)
		text_add(t, ",{'case':4,'key':'gemm engine=c','probe':'gemm','engine':'c','options':{},'kind':'timed','target':"
			    "'cpu','phases':'headline','require':'measured','skip':{'status':'unsupported','cause':'not_asked',"
			    "'reason':'not on the target asked for'}}");
	text_add(t, "]}]}\n");
	for (unsigned id = 0; id < (o->rank < 2 ? 4u : 3u); id++)
		team_lines_case(t, o, id, 11000 + 2000 * id);
	text_addf(t, "{'n':%u,'t':%llu,'type':'telemetry','source':'host','from':%llu,'signals':{'load':{'kind':'gauge','after'"
		     ":[0,100],'v':[1,2]}}}\n",
		  o->rank < 2 ? 19 : 15, team_own_time(o->rank, 19500), team_own_time(o->rank, 15000));
	if (o->open)
		return;
	text_addf(t, "{'n':%u,'t':%llu,'type':'close','ending':'done','text':'',", o->rank < 2 ? 20 : 16,
		  team_own_time(o->rank, 20000));
	team_lines_team(t, o, true);
	text_add(t, "}\n");
}

/* Rank 0's to `dir`, another's below its nodes/. */
static inline void team_write(const char *dir, const struct team_run *o)
{
	char to[PATH_MAX], path[PATH_MAX + 32];
	struct text t = {0};

	team_lines(&t, o);
	for (size_t i = 0; i < t.size; i++)
		if (t.data[i] == '\'')
			t.data[i] = '"';
	text_add(&t, o->more);
	snprintf(to, sizeof(to), "%s", dir);
	if (o->rank)
		rank_dir_path(to, sizeof(to), dir, "node-b", o->rank);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, to);
	assert_int_equal(file_make_dir(to, NULL), STATUS_OK);
	assert_int_equal(file_write(path, t.data, t.size, NULL), STATUS_OK);
	text_release(&t);
}

static inline void team_write_all(const char *dir)
{
	for (unsigned r = 0; r < TEAM_RANKS; r++) {
		struct team_run o = team_rank(r);

		team_write(dir, &o);
	}
}
#endif
