#include "base/room.h"

bool room_take(struct room_part *part, enum room_use use, uint64_t *held, uint64_t bytes)
{
	struct room *room = part->room;

	if (!room)
		return true;
	uint64_t left = room->max > room->used ? room->max - room->used : 0;
	bool is_small = *held + bytes <= ROOM_SMALL;
	if (room->max && !is_small && (bytes > left || part->used + bytes > (left - bytes) / use))
		return false;
	*held += bytes;
	part->used += bytes;
	room->used += bytes;
	return true;
}

void room_give(struct room_part *part, uint64_t *held, uint64_t bytes)
{
	if (!part->room)
		return;
	bytes = bytes < *held ? bytes : *held;
	*held -= bytes;
	part->used -= bytes;
	part->room->used -= bytes;
}
