#include "guest/pages.h"

#include "base/own.h"
#include "child.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#ifndef VIAL_SANITIZED /* whose own memory, terabytes of it, would be gathered, too */

enum { PAGE = 4096, HUGE = 2 << 20, COUNT = 3 * HUGE / PAGE };

#define EXCLUSIVE (1ull << 56) /* of /proc/self/pagemap */

static const size_t written[] = { 3, 4, 700, 1111 };
static struct pages pages;

static bool is_own(const char *at)
{
	auto_close int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const off_t place = (off_t)((uintptr_t)at / PAGE * sizeof(uint64_t));
	uint64_t entry = 0;

	return pread(pagemap, &entry, sizeof(entry), place) == sizeof(entry) && (entry & EXCLUSIVE);
}

/* Each page has its number at its end. */
static bool is_filled(const char *at)
{
	for (size_t i = 0; i < COUNT; i++) {
		size_t number;
		memcpy(&number, at + (i + 1) * PAGE - sizeof(number), sizeof(number));
		if (number != i)
			return false;
	}
	return true;
}

static char *fill(size_t offset)
{
	char *all = mmap(NULL, COUNT * PAGE + 2 * HUGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (all == MAP_FAILED)
		return NULL;
	char *at = all + HUGE - (uintptr_t)all % HUGE + offset, *end = at + COUNT * PAGE;
	(void)munmap(all, (size_t)(at - all));
	(void)munmap(end, (size_t)(all + COUNT * PAGE + 2 * HUGE - end));
	for (size_t i = 0; i < COUNT; i++)
		memcpy(at + (i + 1) * PAGE - sizeof(i), &i, sizeof(i));
	return at;
}

static bool in_fork(char *at)
{
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		if (!is_own(at + written[i] * PAGE))
			return false;
	if (is_own(at) || is_own(at + 701 * PAGE) || !is_filled(at))
		return false;
	memset(at, 'x', COUNT * PAGE);
	return true;
}

static bool forks_have_copies(size_t offset)
{
	char *at = fill(offset);
	int status = -1;

	if (!at)
		return false;
	pages_gather();
	for (size_t i = 0; i < sizeof(written) / sizeof(written[0]); i++)
		pages.ranges[pages.count++] =
			(struct page_range){ (uintptr_t)at + written[i] * PAGE, PAGE, true };
	pages.ranges[pages.count++] =
		(struct page_range){ (uintptr_t)at + 701 * PAGE, PAGE, false };
	if (!pages_pin(&pages))
		return (errno == ENOSYS || errno == EPERM) && is_filled(at); /* not on this host */
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(in_fork(at) ? 0 : 1);
		if (waitpid(pid, &status, 0) != pid || status != 0 || !is_filled(at))
			return false;
	}
	return true;
}

static bool forks_of_aligned_memory(void)
{
	return forks_have_copies(0);
}

static bool forks_of_other_memory(void)
{
	return forks_have_copies(5 * PAGE);
}

static size_t descend(size_t bytes)
{
	volatile char frame[8192];

	frame[0] = 1;
	return bytes <= sizeof(frame) ? 1 : descend(bytes - sizeof(frame)) + (size_t)frame[0];
}

static bool stack_grows(void)
{
	if (descend(512 << 10) == 0)
		return false;
	pages_gather();
	return descend(4 << 20) > 0;
}

TEST(a_stack_that_was_deep_grows_on)
{
	CHECK(in_child(stack_grows) == 0);
}

TEST(what_is_pinned_is_a_forks_own_at_once)
{
	CHECK(in_child(forks_of_aligned_memory) == 0);
	CHECK(in_child(forks_of_other_memory) == 0);
}

#endif
