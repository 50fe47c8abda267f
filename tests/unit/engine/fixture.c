#include "fixture.h"

#include <string.h>

static const struct mount_spec mounts[] = {
	{ MOUNT_SHARE, "usr", "/usr", 0, -1, 0, 0 },
	{ MOUNT_LINK, "lib", "usr/lib", 0, -1, 0, 0 },
	{ MOUNT_LINK, "lib64", "usr/lib64", 0, -1, 0, 0 },
	{ MOUNT_TEXT, "etc/motd", "hello\n", 0, -1, 6, 0 },
	{ MOUNT_TEXT, "dev/null", "", 0, -1, 0, 0 },
	{ MOUNT_DIR, "proc", NULL, 0, -1, 0, 0 },
	{ MOUNT_DIR, "tmp", NULL, 0, -1, 0, 0 },
	{ MOUNT_DIR, "space", NULL, MOUNT_GIVEN, -1, 0, 0 },
	{ MOUNT_SHARE, "absent", "/no/such/path", MOUNT_OPTIONAL, -1, 0, 0 },
	{ MOUNT_SEAL, "", NULL, 0, -1, 0, 0 },
	{ MOUNT_NODE, "dev/null", "/dev/null", 0, -1, 0, 0 },
	{ MOUNT_PROC, "proc", NULL, 0, -1, 0, 0 },
	{ MOUNT_MASK, "proc/keys", NULL, 0, -1, 0, 0 },
	{ MOUNT_LOCK, "proc/sys", NULL, 0, -1, 0, 0 },
	{ MOUNT_TMPFS, "tmp", "1777", MOUNT_WRITABLE | MOUNT_OWN, -1, 1 << 20, 64 },
	{ MOUNT_TMPFS, "space", "0755", MOUNT_WRITABLE | MOUNT_OWN, -1, 1 << 20, 64 },
};

static const struct landlock_rule rules[] = {
	{ "/", LANDLOCK_READ | LANDLOCK_EXEC },
	{ "/tmp", LANDLOCK_READ | LANDLOCK_WRITE },
	{ "/space", LANDLOCK_READ | LANDLOCK_WRITE },
	{ "/dev", LANDLOCK_READ | LANDLOCK_WRITE },
	{ "/proc", LANDLOCK_READ | LANDLOCK_WRITE },
};

int fixture_open(struct fixture *f)
{
	*f = (struct fixture){ .ids.lock_fd = -1, .lease.fd = -1,
			       .out = BUF_INIT(1 << 20), .err = BUF_INIT(1 << 20) };
	limits_default(&f->limits);
	if (ids_open(&f->ids, 0, &f->e) < 0 || ids_lease(&f->lease, &f->ids, &f->e) < 0 ||
	    cgroup_find(&f->cgroups, NULL, &f->e) < 0)
		return -1;
	f->spec = (struct box_spec){ .lease = &f->lease, .mounts = mounts,
				     .mount_count = sizeof(mounts) / sizeof(mounts[0]),
				     .workspace = "/space", .workspace_writable = true };
	return 0;
}

void fixture_done(struct fixture *f)
{
	box_free(f->box);
	cgroup_free(f->cgroup);
	cgroup_host_free(f->cgroups);
	lease_done(&f->lease);
	ids_close(&f->ids);
	buf_done(&f->out);
	buf_done(&f->err);
}

int fixture_run(struct fixture *f, struct run_end *ret, int (*main)(void))
{
	const struct run_io io = { .in_fd = -1, .cancel_fd = -1, .out = &f->out, .err = &f->err };

	if (!f->box && (box_create(&f->box, &f->spec, &f->e) < 0 || box_ready(f->box, &f->e) < 0))
		return -1;
	if (cgroup_version(f->cgroups) != CGROUP_NONE &&
	    cgroup_create(&f->cgroup, f->cgroups, f->lease.index, "", &f->limits, &f->e) < 0)
		return -1;
	struct guest_spec guest = { .main = main,
				    .cwd = "/space",
				    .limits = &f->limits,
				    .cgroup = f->cgroup,
				    .rules = rules,
				    .rule_count = sizeof(rules) / sizeof(rules[0]),
				    .landlock_abi = landlock_abi(),
				    .seccomp = &seccomp_guest,
				    .control_fd = f->control_fd };
	return run_guest(ret, f->box, &guest, &io, true, &f->e);
}
