/*
 * python_arenas - where CPython's objects lie once there are many: in huge pages.
 *
 * A fork copies one entry of the page tables for 2 MiB then, not 512; and that is what forking a
 * session with a large heap costs.  CPython takes memory by the arena, 1 MiB or less each, which
 * no huge page fits.  From some 16 MiB on it is given parts of larger pieces instead.  A program
 * that needs less has what it would have without us: small pages, and no more than it touches.
 * What a zygote loads lies in such pieces from the first, since it is forked for every guest.
 */
#include "guest/python_impl.h"

#include <stdatomic.h>
#include <sys/mman.h>

enum {
	PIECE = 2 << 20, /* as large as a huge page, and as aligned */
	PIECES_MAX = 8192,
	SMALL_BYTES = 16 << 20, /* in arenas of CPython's own, before the first of these */
	PARTS_MAX = 64,
};

static struct piece {
	uintptr_t at;
	uint64_t taken; /* a bit for each part */
} pieces[PIECES_MAX];
static size_t piece_count, small_bytes;
static bool is_loading;
static size_t open_piece; /* where there may be a part left */
static struct python_arenas before;
static atomic_flag is_busy = ATOMIC_FLAG_INIT; /* interpreters with locks of their own */

static void lock(void)
{
	while (atomic_flag_test_and_set_explicit(&is_busy, memory_order_acquire))
		continue;
}

static void unlock(void)
{
	atomic_flag_clear_explicit(&is_busy, memory_order_release);
}

static uint64_t all_parts(size_t size)
{
	return size == PIECE / PARTS_MAX ? UINT64_MAX : (1ull << PIECE / size) - 1;
}

/* An aligned piece of memory, or NULL. */
static char *map_piece(void)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS, access = PROT_READ | PROT_WRITE;
	char *at = mmap(NULL, PIECE, access, flags, -1, 0); /* new kernels align it by themselves */

	if (at == MAP_FAILED)
		return NULL;
	if ((uintptr_t)at % PIECE == 0)
		return at;
	(void)munmap(at, PIECE);
	at = mmap(NULL, 2 * PIECE, access, flags, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	char *aligned = (char *)(((uintptr_t)at + PIECE - 1) & ~(uintptr_t)(PIECE - 1));
	if (aligned > at)
		(void)munmap(at, (size_t)(aligned - at));
	(void)munmap(aligned + PIECE, (size_t)(at + PIECE - aligned));
	return aligned;
}

static bool add_piece(void)
{
	char *at = piece_count < PIECES_MAX ? map_piece() : NULL;

	if (!at)
		return false;
	(void)madvise(at, PIECE, MADV_HUGEPAGE); /* where there are none, it is memory as any */
	open_piece = piece_count;
	pieces[piece_count++] = (struct piece){ .at = (uintptr_t)at };
	return true;
}

static void *take_part(size_t size)
{
	if (open_piece >= piece_count || pieces[open_piece].taken == all_parts(size))
		if (!add_piece())
			return NULL;
	struct piece *p = &pieces[open_piece];
	unsigned part = (unsigned)__builtin_ctzll(~p->taken);
	p->taken |= 1ull << part;
	return (char *)p->at + part * size;
}

static void *take(void *context, size_t size)
{
	void *part = NULL;

	(void)context;
	if (size < PIECE / PARTS_MAX || size > PIECE || (size & (size - 1)))
		return before.take(before.context, size);
	lock();
	if (!is_loading && small_bytes < SMALL_BYTES)
		small_bytes += size;
	else
		part = take_part(size);
	unlock();
	return part ? part : before.take(before.context, size);
}

static struct piece *find(uintptr_t at)
{
	for (size_t i = piece_count; i-- > 0;)
		if (at - pieces[i].at < PIECE)
			return &pieces[i];
	return NULL;
}

/* The memory goes back at once; its place, when nobody has a part of it any more. */
static void give_part(struct piece *p, char *at, size_t size)
{
	p->taken &= ~(1ull << ((uintptr_t)at - p->at) / size);
	if (p->taken) {
		(void)madvise(at, size, MADV_DONTNEED);
		open_piece = (size_t)(p - pieces);
		return;
	}
	(void)munmap((void *)p->at, PIECE);
	*p = pieces[--piece_count];
	open_piece = piece_count; /* none */
}

static void give(void *context, void *at, size_t size)
{
	(void)context;
	lock();
	struct piece *p = find((uintptr_t)at);
	if (p)
		give_part(p, at, size);
	unlock();
	if (!p)
		before.give(before.context, at, size);
}

void python_set_arenas(void)
{
	struct python_arenas ours = { NULL, take, give };

	if (before.take)
		return;
	is_loading = true;
	py.PyObject_GetArenaAllocator(&before);
	py.PyObject_SetArenaAllocator(&ours);
}

void python_end_loading(void)
{
	is_loading = false;
}
