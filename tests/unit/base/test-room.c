#include "base/room.h"
#include "test.h"

enum { MIB = 1 << 20 };

TEST(one_alone_has_half_of_it)
{
	struct room room = { .max = 64 * MIB };
	struct room_part one = { &room, 0 };
	uint64_t held = 0;

	while (room_take(&one, ROOM_ANSWER, &held, MIB))
		;
	CHECK(held == 32 * MIB && one.used == held && room.used == held);
	room_give(&one, &held, MIB);
	CHECK(room_take(&one, ROOM_ANSWER, &held, MIB));
	room_give(&one, &held, UINT64_MAX);
	CHECK(!room_take(&one, ROOM_ANSWER, &held, 33 * MIB) &&
	      room_take(&one, ROOM_ANSWER, &held, 32 * MIB)); /* at once */
	room_give(&one, &held, UINT64_MAX);
	CHECK(held == 0 && one.used == 0 && room.used == 0);
}

TEST(output_leaves_room_for_the_answer)
{
	struct room room = { .max = 64 * MIB };
	struct room_part one = { &room, 0 };
	uint64_t held = 0, answer = 0;

	while (room_take(&one, ROOM_OUTPUT, &held, MIB))
		;
	CHECK(held == 16 * MIB);
	room_give(&one, &held, UINT64_MAX);
	CHECK(room_take(&one, ROOM_ANSWER, &answer, 16 * MIB + 4096));
}

TEST(another_finds_room_whatever_one_has_taken)
{
	struct room room = { .max = 64 * MIB };
	struct room_part one = { &room, 0 }, other = { &room, 0 };
	uint64_t held = 0, of_other = 0;

	while (room_take(&one, ROOM_ANSWER, &held, MIB))
		;
	while (room_take(&other, ROOM_ANSWER, &of_other, MIB))
		;
	CHECK(of_other == 16 * MIB);
	CHECK(!room_take(&one, ROOM_ANSWER, &held, MIB));
	CHECK(room.used <= room.max);
}

TEST(what_is_small_is_never_refused)
{
	struct room room = { .max = MIB };
	struct room_part one = { &room, 0 };
	uint64_t held = 0, small = 0, large = 0;

	while (room_take(&one, ROOM_ANSWER, &held, ROOM_SMALL))
		;
	CHECK(room_take(&one, ROOM_ANSWER, &small, ROOM_SMALL) && small == ROOM_SMALL);
	CHECK(!room_take(&one, ROOM_ANSWER, &small, 1));
	CHECK(!room_take(&one, ROOM_ANSWER, &large, UINT64_MAX / 2) && large == 0);
}

TEST(where_nobody_counts_there_is_no_bound)
{
	struct room_part none = { NULL, 0 };
	struct room room = { .max = 0 };
	struct room_part any = { &room, 0 };
	uint64_t held = 0, of_any = 0;

	CHECK(room_take(&none, ROOM_ANSWER, &held, 1ull << 40) && held == 0);
	CHECK(room_take(&any, ROOM_ANSWER, &of_any, 1ull << 40) && room.used == 1ull << 40);
	room_give(&none, &held, 1);
	room_give(&any, &of_any, UINT64_MAX);
	CHECK(room.used == 0);
}
