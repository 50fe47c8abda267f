#include "keeper/helper.h"

#include "base/sys.h"
#include "engine/seccomp.h"
#include "engine/steps.h"
#include "keeper/filer.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
	FILER_MEMORY = 128 << 20, /* what unpacks an archive does as the archive says */
	HELPERS_MAX = 512,
};

struct helper {
	struct keeper *keeper;
	struct helper *next;
	int pidfd;
	bool is_told;  /* to end, by us */
	bool is_proxy; /* which has no reason to end in any other way than told */
	struct watch end;
};

static void helper_free(struct helper *h)
{
	struct helper **at = &h->keeper->helpers;
	int code = 0, signal = 0;

	while (*at != h)
		at = &(*at)->next;
	*at = h->next;
	h->keeper->helper_count--;
	loop_unwatch(h->keeper->loop, &h->end);
	(void)keeper_reap(&h->pidfd, &code, &signal, NULL);
	if (h->is_proxy && code != 0 && !h->is_told)
		keeper_say(SAY_WARN,
			   "an egress proxy was lost (status %d, signal %d): made anew when needed",
			   code, signal);
	free(h);
}

static void on_helper_end(struct watch *w, uint32_t events)
{
	(void)events;
	helper_free(holder_of(w, struct helper, end));
}

void helpers_end(struct keeper *k)
{
	while (k->helpers) {
		k->helpers->is_told = true;
		(void)pidfd_send_signal(k->helpers->pidfd, SIGKILL, NULL, 0);
		helper_free(k->helpers);
	}
}

/* It is started.  Takes it, also on failure. */
static int helper_watch(struct helper *h, struct err *e)
{
	struct keeper *k = h->keeper;

	h->next = k->helpers;
	k->helpers = h;
	k->helper_count++;
	h->end = (struct watch){ .fd = h->pidfd, .on_ready = on_helper_end };
	if (loop_watch(k->loop, &h->end, EPOLLIN, e) == 0)
		return 0;
	(void)pidfd_send_signal(h->pidfd, SIGKILL, NULL, 0);
	helper_free(h);
	return -1;
}

/* What belongs to a guest of ours, and to nobody else; the server says which, and may be wrong. */
static int owner_of(uid_t *ret, const struct keeper *k, int workspace, struct err *e)
{
	const struct ids *ids = &k->host->ids;
	struct stat st;

	if (fstat(workspace, &st) < 0)
		return err_sys(e, "workspace");
	bool is_ours = ids->own_uids
			       ? st.st_uid >= ids->base && st.st_uid < ids->base + 2 * ids->count
			       : st.st_uid == geteuid();
	if (!S_ISDIR(st.st_mode) || !is_ours)
		return err_set(e, ERR_DENIED, "that is no workspace");
	*ret = st.st_uid;
	return 0;
}

/* It lives among the host's files, with a uid that is nobody's: those of its workspace will do. */
static int confine(const struct keeper *k, int workspace, struct err *e)
{
	char path[32];
	const struct landlock_rule rule = { path, LANDLOCK_READ | LANDLOCK_WRITE };

	if (k->host->landlock_abi < 1)
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", workspace);
	return landlock_restrict(&rule, 1, k->host->landlock_abi, e);
}

_Noreturn static void filer(const struct keeper *k, int socket, int workspace, uid_t uid)
{
	const struct rlimit memory = { FILER_MEMORY, FILER_MEMORY };
	int keep[] = { socket, workspace };
	struct err e;

	(void)prctl(PR_SET_NAME, "vial-filer", 0, 0, 0);
#ifndef VIAL_SANITIZED /* whose shadow is memory, too */
	(void)setrlimit(RLIMIT_DATA, &memory);
#else
	(void)memory;
#endif
	sys_stand_up(); /* somebody waits for it */
	filer_prepare();
	if (fds_close_except(0, keep, 2, &e) < 0 || confine(k, workspace, &e) < 0)
		_exit(125);
	if (k->host->ids.own_uids &&
	    (sys_setgroups(0, NULL) < 0 || sys_setresgid(uid) < 0 || sys_setresuid(uid) < 0))
		_exit(125);
	if (creds_drop_caps(&e) < 0 || /* the uid took what the bounding set would need */
	    (k->host->has_seccomp && seccomp_install(&seccomp_guest, &e) < 0))
		_exit(125);
	_exit(filer_main(socket, workspace));
}

int helper_filer(struct keeper *k, int workspace, struct err *e)
{
	struct helper *h = calloc(1, sizeof(*h));
	auto_close int near = -1, far = -1;
	int pair[2];
	uid_t uid = 0;

	if (!h)
		return err_sys(e, "filer");
	if (k->helper_count >= HELPERS_MAX) {
		free(h);
		return err_set(e, ERR_BUSY, "%d filers are at work already", HELPERS_MAX);
	}
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)&h->pidfd,
	};
	h->keeper = k;
	if (owner_of(&uid, k, workspace, e) < 0 ||
	    (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 &&
	     err_sys(e, "filer") < 0)) {
		free(h);
		return -1;
	}
	near = pair[0];
	far = pair[1];
	pid_t pid = sys_clone3(&args);
	if (pid == 0)
		filer(k, far, workspace, uid);
	if (pid < 0) {
		free(h);
		return err_sys(e, "filer");
	}
	return helper_watch(h, e) < 0 ? -1 : take_fd(&near);
}

int helper_egress(struct keeper *k, struct err *e)
{
	struct ids *ids = &k->host->ids;
	struct helper *h = calloc(1, sizeof(*h));
	auto_close int channel = -1;

	if (!h)
		return err_sys(e, "egress");
	h->keeper = k;
	h->is_proxy = true;
	bool has_uid = !ids->own_uids || k->has_egress_lease ||
		       ids_lease(&k->egress_lease, ids, e) == 0;
	k->has_egress_lease = ids->own_uids && has_uid;
	if (!has_uid ||
	    egress_start(&channel, &h->pidfd, ids->own_uids ? k->egress_lease.guest_uid : 0,
			 k->host->reach->resolvers, k->host->has_seccomp, e) < 0) {
		free(h);
		return -1;
	}
	return helper_watch(h, e) < 0 ? -1 : take_fd(&channel);
}
