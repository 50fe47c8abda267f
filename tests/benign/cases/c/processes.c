/* fork, exec, wait, pipes, process groups, posix_spawn, popen, vfork. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void report(const char *what, int status)
{
	if (WIFEXITED(status))
		printf("%s exited %d\n", what, WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		printf("%s killed by %s\n", what, strsignal(WTERMSIG(status)));
	fflush(stdout);
}

int main(void)
{
	int status, ends[2];
	char line[64] = "";
	pid_t pid;

	if (fork() == 0)
		_exit(7);
	wait(&status);
	report("child", status);

	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	report("pausing child", status);

	if (pipe(ends) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execlp("sh", "sh", "-c", "echo from $0; exit 4", "exec", (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	printf("%zd bytes: ", read(ends[0], line, sizeof(line) - 1));
	printf("%s", line);
	waitpid(pid, &status, 0);
	report("exec", status);

	if (posix_spawnp(&pid, "true", NULL, NULL, (char *[]){ "true", NULL }, environ) == 0) {
		waitpid(pid, &status, 0);
		report("spawned", status);
	}
	pid = vfork();
	if (pid == 0)
		_exit(9);
	waitpid(pid, &status, 0);
	report("vfork", status);

	FILE *command = popen("echo popen; exit 5", "r");

	printf("%s", fgets(line, sizeof(line), command));
	report("popen", pclose(command));
	report("system", system("exit 6"));
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		_exit(getpgrp() == getpid() ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	report("group leader", status);
	return 0;
}
