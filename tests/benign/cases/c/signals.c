/* sigaction, sigsuspend, sigqueue, timers, alternate stack, dispositions as they were at the start. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t alarms, value;

static void on_alarm(int sig)
{
	(void)sig;
	alarms++;
}

static void on_queue(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	value = info->si_value.sival_int;
}

static void on_overflow(int sig)
{
	static const char text[] = "stack overflow handled\n";

	(void)sig;
	_exit(write(STDOUT_FILENO, text, sizeof(text) - 1) > 0 ? 21 : 1);
}

static int recurse(int n)
{
	volatile char frame[4096];

	frame[0] = (char)n;
	return n == -1 ? 0 : recurse(n + 1) + frame[0];
}

int main(void)
{
	static char stack[65536];
	struct sigaction act = { .sa_handler = on_alarm };
	sigset_t set, old;
	char line[256];
	int status;
	FILE *self = fopen("/proc/self/status", "r");

	while (self && fgets(line, sizeof(line), self))
		if (strncmp(line, "SigBlk", 6) == 0 || strncmp(line, "SigIgn", 6) == 0)
			printf("%.7s %llx\n", line, strtoull(line + 7, NULL, 16) & 0x7fffffff); /* not libc's own two */

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 2000 }, { 0, 2000 } }, NULL);
	sigemptyset(&set);
	while (alarms < 3)
		sigsuspend(&set);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	puts("three alarms");

	act = (struct sigaction){ .sa_sigaction = on_queue, .sa_flags = SA_SIGINFO };
	sigaction(SIGRTMIN, &act, NULL);
	sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = 1234 });
	printf("%d\n", (int)value);

	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGUSR1);
	sigpending(&old);
	printf("%d\n", sigismember(&old, SIGUSR1));
	sigwait(&set, &status);
	printf("%d\n", status == SIGUSR1);

	timer_t timer;

	timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 }, &timer);
	timer_settime(timer, 0, &(struct itimerspec){ .it_value = { 0, 3000000 } }, NULL);
	sigwait(&set, &status);
	puts("posix timer");
	fflush(stdout);
	if (fork() == 0) {
		sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
		act = (struct sigaction){ .sa_handler = on_overflow, .sa_flags = SA_ONSTACK };
		sigaction(SIGSEGV, &act, NULL);
		_exit(recurse(0));
	}
	wait(&status);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}
