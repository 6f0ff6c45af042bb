/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the flight record that a GPU writes itself: the number of the collective that its stream has
 * reached, and of the one that it has left (docs/explanation/design/mesh.md, "Flight record"). */
#ifndef TRAIN_MESH_FLIGHT_WORDS_H
#define TRAIN_MESH_FLIGHT_WORDS_H
#include "core/error.h"
#include "gpu/device/gpu.h"
#include "team/links/flight.h"
#include "team/team.h"

struct flight_words {
	struct team *team; /* lent; its board has the words */
	struct gpu_device *device;
	struct gpu_stream *stream; /* of the collectives, which writes them */
	gpu_ptr at; /* on the device; 0: nothing is written, and a collective counts as begun when it is
		     * enqueued */
};

/* Lets the devices write, if the drivers of all ranks can do it: records are compared, and "begun" must mean
 * the same in all of them. All ranks call it. `w` has all but the address. `st`: of this rank so far. */
enum status flight_words_start(struct flight_words *w, enum status st, struct error *err);
void flight_words_stop(struct flight_words *w);
/* When the stream comes to this point, the device writes that it has reached or left collective `number`.
 * Nothing happens if it does not write. */
enum status flight_words_reach(const struct flight_words *w, enum team_flight_of of, uint64_t number,
			       struct error *err);
enum status flight_words_leave(const struct flight_words *w, enum team_flight_of of, uint64_t number,
			       struct error *err);
#endif
