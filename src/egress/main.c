/*
 * main - vial-egress: the proxy of sandboxes that may reach hosts.
 *
 *   vial-egress UID RESOLVERS [unfiltered]     its channel is descriptor 3 (egress.h)
 *
 * Started by the keeper, or by vial_run(), and by nobody else.  UID 0: as it is.  RESOLVERS "": as
 * the host is configured.  Without a filter only where its owner says that there is none.
 */
#include "base/sys.h"
#include "egress/proxy.h"
#include "engine/landlock.h"
#include "engine/seccomp.h"
#include "engine/steps.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { FILES_MAX = 8192 };

static int limit(struct err *e)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files;

	if (setrlimit(RLIMIT_CORE, &none) < 0 || getrlimit(RLIMIT_NOFILE, &files) < 0)
		return err_sys(e, "limits");
	files.rlim_cur = files.rlim_max < FILES_MAX ? files.rlim_max : FILES_MAX;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? err_sys(e, "limits") : 0;
}

static int become(uid_t uid, struct err *e)
{
	if (uid && (sys_setgroups(0, NULL) < 0 || sys_setresgid(uid) < 0 || sys_setresuid(uid) < 0))
		return err_sys(e, "uid %u", uid);
	return creds_drop_caps(e); /* and no_new_privs, for what follows */
}

static int hide(struct err *e)
{
#ifndef VIAL_SANITIZED /* which looks for leaks with ptrace */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "dumpable");
#else
	(void)e;
#endif
	return 0;
}

static int restrict_files(struct err *e)
{
	const struct landlock_rule rules[] = {
		{ "/etc/hosts", LANDLOCK_READ },
#ifdef VIAL_SANITIZED
		{ "/proc", LANDLOCK_READ },
#endif
	};
	int abi = landlock_abi();

	if (abi < 1)
		return 0; /* file permissions and the filter remain */
	return landlock_restrict(rules, sizeof(rules) / sizeof(rules[0]), abi, e);
}

static int filter(struct err *e)
{
#ifndef VIAL_SANITIZED
	return seccomp_install(&seccomp_egress, e);
#else
	(void)e;
	return 0;
#endif
}

static int lock_in(uid_t uid, bool is_filtered, struct err *e)
{
	if (become(uid, e) < 0 || hide(e) < 0 || restrict_files(e) < 0)
		return -1;
	return is_filtered ? filter(e) : 0; /* last: it forbids the calls used above */
}

int main(int argc, char **argv)
{
	AUTO(proxy_freep) struct proxy *proxy = NULL;
	struct err e;

	bool is_unfiltered = argc == 4 && strcmp(argv[3], EGRESS_UNFILTERED) == 0;
	if ((argc != 3 && !is_unfiltered) || fcntl(EGRESS_CHANNEL_FD, F_SETFL, O_NONBLOCK) < 0) {
		(void)fprintf(stderr, "vial-egress is started by vial, for its sandboxes\n");
		return 2;
	}
	uid_t uid = (uid_t)strtoul(argv[1], NULL, 10);
	sys_stand_up(); /* guests wait for it */
	if (limit(&e) < 0 ||
	    proxy_create(&proxy, EGRESS_CHANNEL_FD, argv[2][0] ? argv[2] : NULL, &e) < 0 ||
	    lock_in(uid, !is_unfiltered, &e) < 0 || proxy_serve(proxy, &e) < 0) {
		(void)fprintf(stderr, "vial-egress: %s\n", e.msg);
		return 1;
	}
	return 0;
}
