#include "engine/ids.h"

#include "base/own.h"
#include "test.h"


#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static bool is_free(struct ids *ids, unsigned index)
{
	auto_close int fd = ids_claim(index, ids);

	return fd >= 0;
}

TEST(two_leases_never_share_a_uid)
{
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	struct lease leases[64];
	struct err e;

	CHECK_OK(ids_open(&ids, 0, &e));
	for (int i = 0; i < 64; i++)
		CHECK_OK(ids_lease(&leases[i], &ids, &e));
	for (int i = 0; i < 64; i++)
		for (int k = 0; k < i; k++)
			CHECK(leases[i].index != leases[k].index);
	for (int i = 0; i < 64; i++) {
		CHECK(!is_free(&ids, leases[i].index));
		lease_done(&leases[i]);
		CHECK(is_free(&ids, leases[i].index));
	}
}

TEST(a_lease_ends_with_its_holder_however_it_ends)
{
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	struct err e;
	int tell[2];
	unsigned index;

	CHECK_OK(ids_open(&ids, 0, &e));
	CHECK(pipe2(tell, O_CLOEXEC) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct lease lease;
		if (ids_lease(&lease, &ids, &e) == 0)
			(void)!write(tell[1], &lease.index, sizeof(lease.index));
		(void)pause();
		_exit(0);
	}
	ssize_t n = read(tell[0], &index, sizeof(index));
	bool held = n == sizeof(index) && !is_free(&ids, index);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(tell[0]);
	(void)close(tell[1]);
	CHECK(held);
	CHECK(is_free(&ids, index));
}
