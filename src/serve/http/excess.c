/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/excess.h"

#include <sys/socket.h>

#define WAIT_NS 2000000000u

static size_t ordinary(const struct front_end *fe)
{
	return fe->peer_count - fe->excess_count;
}

/* MHD sees the end and closes. */
static void end(struct peer *p)
{
	p->ended = true;
	shutdown(p->fd, SHUT_RDWR);
}

/* New connections come first in the list. */
static struct peer *oldest(const struct front_end *fe)
{
	struct peer *found = NULL;

	for (struct peer *p = fe->peers; p; p = p->next)
		if (p->excess && !p->ended)
			found = p;
	return found;
}

void excess_add(struct peer *p)
{
	struct front_end *fe = p->fe;
	struct peer *victim;

	if (fe->peer_count <= fe->connections_most)
		return;
	p->excess = true;
	fe->excess_count++;
	victim = fe->excess_count > EXCESS_MOST ? oldest(fe) : NULL;
	if (victim)
		end(victim);
}

void excess_remove(struct peer *p)
{
	if (p->excess)
		p->fe->excess_count--;
	p->excess = false;
}

bool excess_is(struct peer *p)
{
	if (p->excess && !p->ended && ordinary(p->fe) < p->fe->connections_most)
		excess_remove(p);
	return p->excess;
}

bool excess_fail(const struct front_end *fe, struct api_error *e)
{
	e->retry_s = 1;
	return api_fail(e, 503, "too_many_connections",
			"%zu connections are open, and the limit is %zu; try again later", ordinary(fe),
			fe->connections_most);
}

void excess_tick(struct front_end *fe)
{
	for (struct peer *p = fe->excess_count ? fe->peers : NULL; p; p = p->next)
		if (!p->exchange && fe->now_ns > p->since_ns + WAIT_NS && excess_is(p) && !p->ended)
			end(p);
}
