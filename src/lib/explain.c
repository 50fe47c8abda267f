/*
 * explain - the plan, for people.
 */
#include "lib/plan.h"

#include <stdio.h>
#include <string.h>

static void explain_mounts(struct buf *out, const struct plan *plan)
{
	static const char *const kinds[MOUNT_KIND_COUNT_] = {
		[MOUNT_DIR] = "dir",     [MOUNT_LINK] = "link",   [MOUNT_TEXT] = "file",
		[MOUNT_SHARE] = "share", [MOUNT_SEAL] = "seal",   [MOUNT_NODE] = "device",
		[MOUNT_TREE] = "mount",  [MOUNT_TMPFS] = "tmpfs", [MOUNT_PROC] = "proc",
		[MOUNT_PTS] = "devpts",  [MOUNT_MASK] = "mask",   [MOUNT_LOCK] = "lock",
	};

	buf_add_str(out, "mounts\n");
	for (size_t i = 0; i < plan->mount_count; i++) {
		const struct mount_spec *m = &plan->mounts[i];
		char size[32], detail[64] = "";

		if (m->kind == MOUNT_TMPFS)
			(void)snprintf(detail, sizeof(detail), "%s, %lu files",
				       limits_show(size, &(struct limit_row){ .kind = LIMIT_SIZE },
						   m->bytes),
				       (unsigned long)m->files);
		bool named = m->kind == MOUNT_SHARE || m->kind == MOUNT_NODE ||
			     m->kind == MOUNT_TREE || m->kind == MOUNT_LINK;
		if (m->kind == MOUNT_SEAL)
			(void)snprintf(detail, sizeof(detail), "all of the above is read-only");
		buf_printf(out, "  %-7s /%-24s %s%s%s\n", kinds[m->kind], m->target,
			   named ? m->source : detail,
			   m->kind == MOUNT_TREE && m->flags & MOUNT_WRITABLE ? " (writable)" : "",
			   m->tree_fd >= 0 ? " (prepared)" : "");
	}
}

static void explain_words(struct buf *out, const char *title, char **words)
{
	if (!words)
		return;
	buf_printf(out, "%s\n ", title);
	for (; *words; words++)
		buf_printf(out, strpbrk(*words, " \t\n'\"") ? " '%s'" : " %s", *words);
	buf_add_char(out, '\n');
}

static void explain_layers(struct buf *out, const struct plan *plan, const struct vial *host)
{
	static const char *const versions[] = { "none", "v1", "v2" };
	enum cgroup_version v = cgroup_version(host->cgroups);

	buf_add_str(out, "layers\n");
	for (int i = 0; i < LAYER_COUNT_; i++) {
		const char *how = "";
		char text[64];

		if (i == LAYER_CGROUP) {
			(void)snprintf(text, sizeof(text), " (%s)", versions[v]);
			how = text;
		} else if (i == LAYER_LANDLOCK) {
			(void)snprintf(text, sizeof(text), " (ABI %d)", host->landlock_abi);
			how = text;
		}
		buf_printf(out, "  %-11s %s%s%s\n", layer_rows[i].name, layer_rows[i].title, how,
			   plan->weak & (1u << i) ? " - may be missing" : "");
	}
}

static void explain_network(struct buf *out, const struct vial_job *job)
{
	const struct rules *hosts = job_hosts(job);
	char text[RULE_TEXT_MAX];

	buf_printf(out, "network\n  %s\n", job->network_host ? "the host's" : "loopback only");
	for (size_t i = 0; hosts && i < hosts->count; i++) {
		rule_text(text, &hosts->items[i]);
		buf_printf(out, "  %s, by a proxy\n", text);
	}
}

static void explain(struct buf *out, const struct plan *plan, const struct vial_job *job)
{
	buf_printf(out, "language\n  %s: %s\n", job->runtime->name, plan->tool.tool);
	explain_words(out, "compile", plan->compile);
	explain_words(out, "run", plan->run);
	buf_printf(out, "workspace\n  %s%s%s\n", job->workdir, job->writable ? "" : " (read-only)",
		   job_workspace_dir(job) ? ", a host directory" : ", fresh and in memory");
	explain_network(out, job);
	buf_add_str(out, "limits\n");
	for (size_t i = 0; i < limit_count; i++) {
		char value[32];
		const struct limit_row *row = &limit_rows[i];
		buf_printf(out, "  %-11s %-10s %s\n", row->name,
			   limits_show(value, row, limits_get(&job->limits, row)), row->doc);
	}
	explain_layers(out, plan, job->host);
	buf_add_str(out, "environment\n");
	for (size_t i = 0; i < plan->env.count; i++)
		buf_printf(out, "  %s\n", plan->env.items[i]);
	explain_mounts(out, plan);
}

int vial_job_explain(char **ret, struct vial_job *job, struct vial_error *error)
{
	struct err *e = err_of(error);
	auto_buf struct buf out = BUF_INIT(1u << 20);
	AUTO(plan_done) struct plan plan = { 0 };
	AUTO(lease_done) struct lease lease = { .fd = -1 };
	struct cgroup_host *ignored;

	if (job_settle_dirs(job, e) < 0 || host_cgroups(&ignored, job->host, e) < 0 ||
	    host_check_layers(job->host, job->weak, e) < 0 ||
	    ids_lease(&lease, &job->host->ids, e) < 0 || plan_make(&plan, job, &lease, e) < 0)
		return -1;
	explain(&out, &plan, job);
	if (!out.data)
		return err_sys(e, "explain");
	*ret = take_ptr(&out.data);
	return 0;
}
