/*
 * creds - who a process of the sandbox is, and what it may no longer be.
 */
#include "base/sys.h"
#include "engine/steps.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>

/* Files that pid 1 makes must belong to somebody the namespace knows. */
int creds_become_root(const struct lease *lease, struct err *e)
{
	if (!lease->own_uids)
		return 0; /* the one id there is is the guest's; our capabilities do not need it */
	if (SYS(sys_setgroups, 0, NULL) < 0 || SYS(sys_setresgid, BOX_ROOT_UID) < 0 ||
	    SYS(sys_setresuid, BOX_ROOT_UID) < 0)
		return err_sys(e, "root of the namespace");
	return 0;
}

/* A process that joined by setns() still carries the keeper's ids and groups. */
int creds_become_guest(const struct lease *lease, struct err *e)
{
	if (lease->mappable && SYS(sys_setgroups, 0, NULL) < 0)
		return err_sys(e, "setgroups");
	if (SYS(sys_setresgid, BOX_UID) < 0)
		return err_sys(e, "setgid");
	if (SYS(sys_setresuid, BOX_UID) < 0)
		return err_sys(e, "setuid");
	return 0;
}

int creds_drop_caps(struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	if (SYS(sys_capset, &head, none) < 0)
		return err_sys(e, "capset");
	if (SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	return 0;
}

int creds_keep_only(uint64_t keep, struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	for (int cap = 0; cap < 64; cap++) {
		if (keep & (1ull << cap))
			continue;
		if (SYS(prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) < 0) {
			if (errno == EINVAL && cap > CAP_AUDIT_READ)
				break; /* past the kernel's last */
			return err_sys(e, "bounding set: capability %d", cap);
		}
	}
	if (syscall(SYS_capget, &head, caps) < 0)
		return err_sys(e, "capget");
	for (int i = 0; i < 2; i++) {
		caps[i].permitted &= (uint32_t)(keep >> (32 * i));
		caps[i].effective &= caps[i].permitted;
		caps[i].inheritable = 0;
	}
	if (SYS(sys_capset, &head, caps) < 0)
		return err_sys(e, "capset");
	if (SYS(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "no_new_privs");
	return 0;
}

int creds_drop_for_good(struct err *e)
{
	/* The bounding set first: it takes a capability to give one up. */
	for (int cap = 0; cap < 64; cap++) {
		if (SYS(prctl, PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL && cap > CAP_AUDIT_READ)
			break; /* past the kernel's last */
		return err_sys(e, "bounding set: capability %d", cap);
	}
	/* Even uid 0, should a bug ever give it back, means nothing any more. */
	if (SYS(prctl, PR_SET_SECUREBITS,
		SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
			SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
		0, 0, 0) < 0)
		return err_sys(e, "securebits");
	return creds_drop_caps(e);
}

int creds_seal_init(struct err *e)
{
	if (SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "dumpable");
	if (SYS(prctl, PR_SET_NAME, "vial-init", 0, 0, 0) < 0)
		return err_sys(e, "name");
	return creds_drop_caps(e);
}
