#include "server/lockdown.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/landlock.h"
#include "engine/seccomp.h"
#include "engine/steps.h"

#include <mntent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

enum { RULES_MAX = 32 };

struct lockdown {
	uid_t uid;
	int landlock_abi;
	struct landlock_rule rules[RULES_MAX];
	char paths[RULES_MAX][256];
	size_t rule_count;
};

/* In a user namespace that has but one id, that of the user who made it, 0 is no privilege. */
static bool is_only_id(void)
{
	FILE *map = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, count;
	int lines = 0;
	bool only = false;

	while (map && fscanf(map, "%u %u %u", &inside, &outside, &count) == 3)
		only = ++lines == 1 && inside == 0 && outside != 0 && count == 1;
	if (map)
		(void)fclose(map);
	return only;
}

static int become(struct lockdown *l, struct err *e)
{
	if (l->uid &&
	    (sys_setgroups(0, NULL) < 0 || sys_setresgid(l->uid) < 0 || sys_setresuid(l->uid) < 0))
		return err_sys(e, "uid %u", l->uid);
	if (geteuid() == 0 && !is_only_id())
		return err_set(e, ERR_DENIED, "the server does not run as root");
	return 0;
}

/* Everything that libraries would otherwise open at first use. */
static int warm_up(struct lockdown *l, struct err *e)
{
	(void)l;
	(void)e;
	tzset(); /* the Date of an answer */
	return 0;
}

static int limit(struct lockdown *l, struct err *e)
{
	const struct rlimit none = { 0, 0 };

	(void)l;
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return err_sys(e, "core");
	return 0;
}

static int drop_caps(struct lockdown *l, struct err *e)
{
	(void)l;
	return creds_drop_caps(e);
}

/* Sandboxes' files in their groups, wherever groups are mounted here. */
static int find_groups(struct lockdown *l, struct err *e)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *entry;

	if (!mounts)
		return err_sys(e, "/proc/self/mounts");
	while (l->rule_count < RULES_MAX && (entry = getmntent(mounts))) {
		char *path = l->paths[l->rule_count];
		if (strcmp(entry->mnt_type, "cgroup") != 0 &&
		    strcmp(entry->mnt_type, "cgroup2") != 0)
			continue;
		if (snprintf(path, sizeof(l->paths[0]), "%s", entry->mnt_dir) <
		    (int)sizeof(l->paths[0]))
			l->rules[l->rule_count++] = (struct landlock_rule){ path, LANDLOCK_READ };
	}
	(void)endmntent(mounts);
#ifdef VIAL_SANITIZED /* which looks for leaks in there at the end */
	if (l->rule_count < RULES_MAX)
		l->rules[l->rule_count++] = (struct landlock_rule){ "/proc", LANDLOCK_READ };
#endif
	return 0;
}

static int hide(struct lockdown *l, struct err *e)
{
	(void)l;
	/* The keeper asked for it as well; that was forgotten with the uid. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return err_sys(e, "death signal");
#ifndef VIAL_SANITIZED /* which looks for leaks with ptrace */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "dumpable");
#endif
	return 0;
}

static int restrict_files(struct lockdown *l, struct err *e)
{
	if (l->landlock_abi < 1)
		return 0; /* file permissions and the filter remain */
	return landlock_restrict(l->rules, l->rule_count, l->landlock_abi, e);
}

static int filter(struct lockdown *l, struct err *e)
{
	(void)l;
#ifndef VIAL_SANITIZED
	return seccomp_install(&seccomp_server, e);
#else
	(void)e;
	return 0;
#endif
}

static const struct {
	const char *name;
	int (*apply)(struct lockdown *l, struct err *e);
} steps[] = {
	{ "warm-up", warm_up },        /* while files can be opened */
	{ "groups", find_groups },     /* likewise */
	{ "limits", limit },           /* no memory of ours in a core file */
	{ "uid", become },             /* it takes capabilities to be somebody else */
	{ "capabilities", drop_caps }, /* all of them, and no_new_privs for what follows */
	{ "dumpable", hide },          /* after the uid, whose change would reset both */
	{ "landlock", restrict_files },
	{ "seccomp", filter }, /* last: it forbids the calls used above */
};

int lockdown_enter(uid_t uid, struct err *e)
{
	struct lockdown l = { .uid = uid, .landlock_abi = landlock_abi() };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (steps[i].apply(&l, e) < 0)
			return err_context(e, "%s", steps[i].name);
	return 0;
}

int lockdown_helper(const char *dir, uid_t uid, gid_t gid, struct err *e)
{
	const struct landlock_rule rule = { dir, LANDLOCK_READ | LANDLOCK_WRITE };
	int abi = landlock_abi();

	if (geteuid() == 0 && uid != 0 &&
	    (sys_setgroups(0, NULL) < 0 || sys_setresgid(gid) < 0 || sys_setresuid(uid) < 0))
		return err_sys(e, "uid %u", uid);
	if (creds_drop_caps(e) < 0 || (abi > 0 && landlock_restrict(&rule, 1, abi, e) < 0))
		return -1;
#ifndef VIAL_SANITIZED
	return seccomp_install(&seccomp_guest, e);
#else
	return 0;
#endif
}

int lockdown_dispatcher(uid_t uid, struct err *e)
{
	const struct landlock_rule all = { "/", LANDLOCK_READ };
	struct lockdown l = { .uid = uid, .landlock_abi = landlock_abi() };

	if (warm_up(&l, e) < 0 || limit(&l, e) < 0 || drop_caps(&l, e) < 0 || hide(&l, e) < 0)
		return -1;
	if (l.landlock_abi > 0 && landlock_restrict(&all, 1, l.landlock_abi, e) < 0)
		return -1;
#ifndef VIAL_SANITIZED
	return seccomp_install(&seccomp_guest, e);
#else
	return 0;
#endif
}
