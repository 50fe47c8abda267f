/*
 * sweep - let every system call of a sandbox's making fail once.
 *
 *   fault-sweep [LAYERS PLACE]   where LAYERS are missing, and sandboxes are directories in PLACE
 *
 * Each time one of three things must hold: the run is refused with an error that
 * says why; or the failure was one we can do without, and the guest ran behind
 * every layer.  Never a guest with a layer missing, never a hang, and never a
 * process, descriptor, mount, directory or cgroup left behind.
 */
#include "base/fault.h"
#include "base/own.h"
#include "vial/vial.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* What the guest says of itself when everything is in place. */
static const char script[] =
	"while read -r key value rest; do case $key in\n"
	"Seccomp:|NoNewPrivs:|CapEff:|CapPrm:|CapBnd:) echo \"$key $value\";;\n"
	"esac; done </proc/self/status\n"
	"[ -w / ] && echo 'root is writable'\n"
	"[ -e /etc/shadow ] && echo 'host tree in sight'\n"
	"echo \"uid $(id -u) gid $(id -g) groups $(id -G)\"\n"
	"while IFS=: read -r n c path; do case $path in /) ;; *) echo \"cgroup $c $path\";;\n"
	"esac; done </proc/self/cgroup\n"
	"while read -r dev dir type opts rest; do case $dir in\n"
	"/|/usr|/proc/sys) case $opts in ro,*) ;; *) echo \"$dir is $opts\";; esac;;\n"
	"/run/host*) echo 'the host is attached';; esac; done </proc/self/mounts\n"
	"ulimit -c\n"
	"echo /proc/self/fd/*\n"
	"hostname 2>/dev/null || cat /proc/sys/kernel/hostname\n"
	"cat input.txt\n"
	"echo done\n";

static unsigned passed, failed;
static const char *weak, *place; /* NULL: nothing is missing */

static unsigned count_fds(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/fd");

	while (dir && readdir(dir))
		n++;
	if (dir)
		(void)closedir(dir);
	return n;
}

static unsigned count_mounts(void)
{
	unsigned n = 0;
	FILE *f = fopen("/proc/self/mountinfo", "re");

	for (int c; f && (c = fgetc(f)) != EOF;)
		n += c == '\n';
	if (f)
		(void)fclose(f);
	return n;
}

static unsigned count_directories(void)
{
	unsigned n = 0;
	DIR *dir = place ? opendir(place) : NULL;

	for (const struct dirent *entry; dir && (entry = readdir(dir));)
		n += strncmp(entry->d_name, "box-", 4) == 0;
	if (dir)
		(void)closedir(dir);
	return n;
}

static bool has_children(void)
{
	siginfo_t info;

	return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ||
	       errno != ECHILD;
}

DEFINE_CLEANUP(struct vial *, vial_close)
DEFINE_CLEANUP(struct vial_job *, vial_job_free)
DEFINE_CLEANUP(const struct vial_result *, vial_result_free)

/* One run; the guest's words in `said`, or why there was none. */
static bool attempt(char *said, size_t size, unsigned nth, int error)
{
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error e = { .message = "" };

	fault_arm(nth, error);
	bool ok = vial_open(&host, NULL, &e) == 0 && vial_job_create(&job, host, "sh", &e) == 0 &&
		  (!weak || vial_job_allow_weak(job, weak, &e) == 0) &&
		  vial_job_code(job, NULL, script, strlen(script), &e) == 0 &&
		  vial_job_file(job, "input.txt", "input\n", 6, &e) == 0 &&
		  vial_run(&result, job, &e) == 0;
	if (ok && result->outcome != VIAL_EXITED) /* what cannot be watched is ended */
		(void)snprintf(said, size, "%s", vial_outcome_name(result->outcome));
	else if (ok)
		(void)snprintf(said, size, "%s%s", result->out.data, result->err.data);
	else
		(void)snprintf(said, size, "%s", e.message);
	return ok && result->outcome == VIAL_EXITED;
}

static void complain(unsigned nth, int error, const char *what, const char *detail)
{
	failed++;
	printf("not ok - call %u (%s, %s): %s: %s\n", nth, fault_hit(), strerrorname_np(error),
	       what, detail);
}

static void check(unsigned nth, int error, const char *want, unsigned fds, unsigned mounts)
{
	char said[8192];
	unsigned directories = count_directories();
	bool ok = attempt(said, sizeof(said), nth, error);

	if (ok && strcmp(said, want) != 0)
		complain(nth, error, "a guest ran with something missing", said);
	else if (!ok && !said[0])
		complain(nth, error, "refused without a reason", "");
	else if (has_children())
		complain(nth, error, "a process is left", said);
	else if (count_fds() != fds)
		complain(nth, error, "a descriptor is left", said);
	else if (count_mounts() != mounts)
		complain(nth, error, "a mount is left", said);
	else if (count_directories() > directories)
		complain(nth, error, "a directory is left", said);
	else
		passed++;
	while (waitpid(-1, NULL, WNOHANG | __WALL) > 0)
		; /* what was complained of once */
	if (getenv("SWEEP_VERBOSE"))
		printf("# %u %s: %s\n", nth, fault_hit(), ok ? "ran" : said);
}

int main(int argc, char **argv)
{
	static const int errors[] = { EPERM, ENOMEM };
	char want[8192];

	if (argc == 3) {
		weak = argv[1];
		place = argv[2];
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (!attempt(want, sizeof(want), 0, 0) || !strstr(want, "Seccomp: 2\n") ||
	    !strstr(want, "done\n")) {
		printf("not ok - without faults: %s\n0 passed, 1 failed\n", want);
		return 1;
	}
	unsigned calls = fault_count(), fds = count_fds(), mounts = count_mounts();
	printf("# %u system calls make and end a sandbox; each fails once\n", calls);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		for (unsigned nth = 1; nth <= calls; nth++)
			check(nth, errors[i], want, fds, mounts);
	printf("%u passed, %u failed\n", passed, failed);
	return failed != 0;
}
