#pragma once
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a process of its own, whose memory is not that of other tests. */
static inline int in_child(bool (*fine)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(fine() ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}
