/*
 * doctor - what this host can enforce, proven where it can be.
 *
 * A probe of ours runs as a guest, with everything a guest gets, and reports
 * what it sees of itself; the layers are judged by that, not by what we meant
 * to do.
 */
#include "engine/run.h"
#include "engine/seccomp.h"
#include "engine/trace.h"
#include "lib/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

/* ---- inside ---------------------------------------------------------------------------- */

/* One line per fact: "name value\n".  Runs under the filter, without malloc. */
static void say(const char *name, long value)
{
	(void)dprintf(1, "%s %ld\n", name, value);
}

/* Asked of the kernel itself: there may be no /proc. */
static void say_status(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { { 0 } };
	long bounding = 0;
	char byte;
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);

	say("proc", fd >= 0 && read(fd, &byte, 1) == 1);
	say("Seccomp:", prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
	say("NoNewPrivs:", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	if (syscall(SYS_capget, &head, caps) == 0) {
		say("CapEff:", caps[0].effective | caps[1].effective);
		say("CapPrm:", caps[0].permitted | caps[1].permitted);
	}
	for (int cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		bounding |= prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
	say("CapBnd:", bounding);
}

static int probe_main(void)
{
	struct stat st;

	say_status();
	say("pid", getpid());
	say("uid", getuid());
	say("root_writable", open("/probe", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0);
	say("tmp_writable", open("/tmp/probe", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0);
	say("host_tree", stat("/etc/shadow", &st) == 0 || stat("/boot", &st) == 0);
	/* Writable by the mount, refused by the probe's own Landlock rules alone. */
	say("landlock",
	    open("/dev/shm/probe", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0 && errno == EACCES);
	/* Where there are no namespaces, our filter alone refuses it. */
	say("socket_errno", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? errno : 0);
	say("root_listed", open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0);
	say("mount_errno", mount("none", "/tmp", "tmpfs", 0, NULL) < 0 ? errno : 0);
	say("end", 1);
	return 0;
}

/* ---- outside --------------------------------------------------------------------------- */

struct posture {
	struct buf said;
	bool ran;
	struct err failed;
	bool cgroup_entered;
};

static long fact(const struct posture *p, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = buf_str(&p->said); line && *line;
	     line = strchr(line, '\n'), line += !!line)
		if (strncmp(line, name, len) == 0 && line[len] == ' ')
			return strtol(line + len, NULL, 10);
	return -1;
}

static void drop_rule(struct plan *plan, const char *path)
{
	for (size_t i = 0; i < plan->rule_count; i++)
		if (strcmp(plan->rules[i].path, path) == 0)
			plan->rules[i].access = LANDLOCK_READ;
}

static int probe(struct posture *p, struct vial *host, struct vial_job *job, struct err *e)
{
	AUTO(lease_done) struct lease lease = { .fd = -1 };
	AUTO(plan_done) struct plan plan = { 0 };
	auto_cgroup struct cgroup *cgroup = NULL;
	auto_box struct box *box = NULL;
	auto_buf struct buf ignored = BUF_INIT(4096);
	struct run_end end;

	if (host_is_bare(host) && host_check_bare(host, e) < 0)
		return -1;
	if (ids_lease(&lease, &host->ids, e) < 0 || plan_make(&plan, job, &lease, e) < 0)
		return -1;
	drop_rule(&plan, "/dev");
	const struct box_spec spec = { .lease = &lease,
				       .mounts = plan.mounts,
				       .mount_count = plan.mount_count,
				       .root_fd = plan.root_fd,
				       .workspace = plan.workdir,
				       .workspace_writable = true,
				       .weak = plan.weak,
				       .bare = plan.bare };
	if (cgroup_version(host->cgroups) != CGROUP_NONE && !plan.bare &&
	    cgroup_create(&cgroup, host->cgroups, lease.index, "", &job->limits, e) < 0)
		return -1;
	if (box_create(&box, &spec, e) < 0 || box_ready(box, e) < 0)
		return -1;
	struct guest_spec guest = { .main = probe_main,
				    .cwd = "/",
				    .limits = &job->limits,
				    .cgroup = cgroup,
				    .rules = plan.rules,
				    .rule_count = plan.rule_count,
				    .landlock_abi = host->landlock_abi,
				    .seccomp = plan_filter(&plan, host),
				    .is_bare = plan.bare };
	const struct run_io io = { .in_fd = -1, .cancel_fd = -1, .out = &p->said, .err = &ignored };
	if (run_guest(&end, box, &guest, &io, true, e) < 0)
		return -1;
	struct cgroup_usage usage;
	p->cgroup_entered = cgroup && cgroup_usage(&usage, cgroup, e) == 0 && usage.cpu_us > 0;
	p->ran = fact(p, "end") == 1;
	return p->ran ? 0 : err_set(e, ERR_BUG, "the probe died (signal %d)", end.signal);
}

struct verdict {
	enum vial_layer_state state;
	const char *fix;
	char *detail; /* 256 bytes */
};

static void judge(struct verdict *v, bool ok, const char *fix, const char *fmt, ...) PRINTF(4, 5);

static void judge(struct verdict *v, bool ok, const char *fix, const char *fmt, ...)
{
	va_list ap;

	v->state = ok ? VIAL_ACTIVE : VIAL_MISSING;
	v->fix = ok ? "" : fix;
	va_start(ap, fmt);
	(void)vsnprintf(v->detail, 256, fmt, ap);
	va_end(ap);
}

/* Why new namespaces were refused: the usual suspects, in the order they are met. */
static const char *namespace_fix(void)
{
	auto_buf struct buf text = BUF_INIT(64);
	struct err ignored;

	if (buf_add_file(&text, AT_FDCWD, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
			 &ignored) == 0 && text.len && text.data[0] == '1')
		return "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or a profile "
		       "for vial with 'userns,' (docs/INSTALL.md)";
	buf_reset(&text);
	if (buf_add_file(&text, AT_FDCWD, "/proc/sys/user/max_user_namespaces", &ignored) == 0 &&
	    text.len && text.data[0] == '0')
		return "sysctl -w user.max_user_namespaces=10000";
	buf_reset(&text);
	if (buf_add_file(&text, AT_FDCWD, "/proc/sys/kernel/unprivileged_userns_clone", &ignored) ==
		    0 &&
	    text.len && text.data[0] == '0')
		return "sysctl -w kernel.unprivileged_userns_clone=1";
	return "in a container: a seccomp profile that allows clone, unshare, mount and setns, "
	       "such as packaging/container/seccomp.json (docs/DEPLOYMENT.md, Containers)";
}

static const char *cgroup_fix(const struct vial *host)
{
	if (cgroup_version(host->cgroups) != CGROUP_NONE)
		return "";
	return geteuid() == 0 ? "mount a cgroup file system read-write (/sys/fs/cgroup)"
			      : "systemd-run --user --scope -p Delegate=yes vial ...";
}

/* Where there are no namespaces: what stands in for a layer that takes them. */
static bool judge_bare(enum layer layer, struct verdict *v, const struct vial *host,
		       const struct posture *p)
{
	const char *fix = namespace_fix();

	if (!host->is_bare || !p->ran)
		return false;
	switch (layer) {
	case LAYER_NAMESPACES:
		judge(v, false, fix,
		      "%s; instead, signals stay inside and the filter refuses sockets: other "
		      "processes, their arguments and names of files are in sight, modes of files "
		      "can be changed, and tenants share all of it",
		      host->why_bare);
		return true;
	case LAYER_ROOT:
		judge(v, false, "needs the namespaces layer", "%s",
		      fact(p, "root_listed") || fact(p, "root_writable") || fact(p, "tmp_writable")
			      ? "the host's tree"
			      : "the host's tree; what may be opened in it, Landlock says");
		return true;
	case LAYER_CGROUP:
		judge(v, false,
		      "needs the namespaces layer; the container's own limits bound the sum",
		      "rlimits, and in 'vial run' a look at memory and CPU time twenty times a "
		      "second");
		return true;
	case LAYER_CREDS:
		judge(v,
		      fact(p, "CapEff:") == 0 && fact(p, "CapPrm:") == 0 &&
			      fact(p, "NoNewPrivs:") == 1,
		      "", "no capability, and none to be had");
		return true;
	case LAYER_SECCOMP:
		judge(v, fact(p, "Seccomp:") == 2 && fact(p, "socket_errno") == EACCES,
		      "a kernel with CONFIG_SECCOMP_FILTER", "filter active");
		return true;
	case LAYER_PROC:
		judge(v, false, "needs the namespaces layer", "the host's, read-only");
		return true;
	default:
		return false;
	}
}

static void judge_layer(enum layer layer, struct verdict *v, const struct vial *host,
			const struct posture *p)
{
	static const char *const versions[] = { "none", "v1", "v2" };
	const char *why = p->ran ? "" : p->failed.msg;

	if (judge_bare(layer, v, host, p))
		return;
	switch (layer) {
	case LAYER_NAMESPACES:
		judge(v, p->ran && fact(p, "pid") == 2, namespace_fix(), "%s",
		      p->ran ? "user, pid, mount, net, ipc, uts, cgroup" : why);
		break;
	case LAYER_ROOT:
		judge(v,
		      p->ran && !fact(p, "root_writable") && fact(p, "tmp_writable") == 1 &&
			      !fact(p, "host_tree"),
		      "needs the namespaces layer, and Linux 5.12 or later", "%s",
		      p->ran ? "read-only, host files absent" : why);
		break;
	case LAYER_UID:
		if (host->ids.own_uids)
			judge(v, true, "", "host uids %u to %u", host->ids.base,
			      host->ids.base + 2 * host->ids.count - 1);
		else
			judge(v, false, "run as root (or in a container with more uids)", "%s",
			      host->ids.why);
		break;
	case LAYER_CGROUP:
		judge(v, p->cgroup_entered, cgroup_fix(host), "%s%s%s",
		      versions[cgroup_version(host->cgroups)], p->cgroup_entered ? ", " : ": ",
		      p->cgroup_entered ? cgroup_where(host->cgroups) : cgroup_why(host->cgroups));
		if (v->state == VIAL_ACTIVE && cgroup_why(host->cgroups)[0]) {
			v->state = VIAL_DEGRADED;
			(void)snprintf(v->detail, 256, "%s", cgroup_why(host->cgroups));
		}
		break;
	case LAYER_CREDS:
		judge(v,
		      fact(p, "CapEff:") == 0 && fact(p, "CapPrm:") == 0 &&
			      fact(p, "CapBnd:") == 0 && fact(p, "NoNewPrivs:") == 1,
		      "needs the namespaces layer and /proc", "%s",
		      p->ran ? "no capability in any set" : why);
		break;
	case LAYER_SECCOMP:
		judge(v, fact(p, "Seccomp:") == 2 && fact(p, "mount_errno") == EPERM,
		      "a kernel with CONFIG_SECCOMP_FILTER", "%s",
		      p->ran ? "filter active" : host->has_seccomp ? why : "not in this kernel");
		break;
	case LAYER_LANDLOCK:
		judge(v, fact(p, "landlock") == 1,
		      "boot with lsm=landlock,... (Linux 5.13 or later)",
		      host->landlock_abi ? "ABI %d" : "not in this kernel, or not enabled (%d)",
		      host->landlock_abi);
		break;
	case LAYER_PROC:
		judge(v, fact(p, "proc") == 1,
		      "in a container: --security-opt systempaths=unconfined", "%s",
		      fact(p, "proc") == 1 ? "its own processes only" : "no /proc inside");
		break;
	case LAYER_COUNT_:
		break;
	}
}

int vial_layers(const struct vial_layer **ret, size_t *ret_count, struct vial *host,
		struct vial_error *error)
{
	AUTO(buf_done) struct buf said = BUF_INIT(65536);
	struct posture p = { .said = said };
	struct vial_job *job = NULL;

	struct host_found *found;
	struct cgroup_host *ignored;
	struct err *e = err_of(error);

	if (host_found(&found, host, e) < 0 || host_cgroups(&ignored, host, e) < 0)
		return -1;
	if (!found->has_layers) {
		if (vial_job_create(&job, host, "sh", error) < 0)
			return -1;
		job->weak = WEAK_WHERE_MISSING; /* to see as much as there is */
		if (probe(&p, host, job, &p.failed) < 0)
			p.ran = false;
		vial_job_free(job);
		for (int i = 0; i < LAYER_COUNT_; i++) {
			struct verdict v = { .detail = found->layer_text[i][0] };
			judge_layer(i, &v, host, &p);
			found->layers[i] =
				(struct vial_layer){ layer_rows[i].name,
						     layer_rows[i].title,
						     v.state,
						     layer_rows[i].need != LAYER_WHERE_PRESENT,
						     v.detail,
						     v.fix };
		}
		buf_done(&p.said);
		found->has_layers = true;
	}
	*ret = found->layers;
	*ret_count = LAYER_COUNT_;
	return 0;
}

int vial_live_forks(struct vial *host, struct vial_error *error)
{
	struct cgroup_host *cgroups;
	struct err *e = err_of(error);

	if (!host->ids.own_uids)
		return err_set(e, ERR_HOST, "%s", host->ids.why);
	if (host_cgroups(&cgroups, host, e) < 0)
		return -1;
	if (cgroup_version(cgroups) == CGROUP_NONE)
		return err_set(e, ERR_HOST, "no control groups: %s", cgroup_why(cgroups));
	return trace_is_possible(e) ? 0 : -1;
}
