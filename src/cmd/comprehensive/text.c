/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/comprehensive/comprehensive.h"

/* Plain English of about 300 words, written for this purpose. Every precision reads the same text. */
const char comprehensive_text[] =
	"A machine room is loud. Fans turn all day, and the air between the racks is warm. Each rack has power "
	"supplies at the bottom, switches at the top, and servers between them. A server for training has eight "
	"graphics cards. Each card has its own memory, which is fast and small, and a link to every other card.\n\n"
	"When the machine arrives, somebody has to check it. The first question is whether all cards are there. "
	"The second is whether each of them computes what it should. A card may be slow because it is hot, because "
	"its power is limited, or because its link to the host has fewer lanes than planned. Such a card works, and "
	"nobody sees the loss until a long run takes a week more than it should.\n\n"
	"The next question is how the cards work together. A model is divided, and each card holds a part of it. "
	"After every step the cards exchange their results. The slowest link decides how long all of them wait. So a "
	"test sends the same data over each link, in both directions, and compares the rates. Links of one kind "
	"should differ by less than two percent.\n\n"
	"Then the machine serves. Requests come at random times, some short and some long. People notice two things: "
	"how soon the first word appears, and how evenly the other words follow. Both become worse when too many "
	"requests share a card. A good test sends requests on a fixed schedule, and never waits for an answer before "
	"it sends the next one. Otherwise a slow server would receive less work, and would look better than it is.\n\n"
	"At the end there is a report. It says what was measured, what was expected, and what nobody could measure. "
	"An honest report has all three.\n";
