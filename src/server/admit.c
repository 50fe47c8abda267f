#include "server/admit.h"

int admit_run(struct run **ret, struct server *s, struct tenant *t, struct vial_job *job,
	      const struct run_events *events, struct failure *f)
{
	sessions_charge(s, t);
	if (tenant_admit_run(t, f) < 0 || tenant_admit_cpu(t, f) < 0 ||
	    tenant_set_reach(t, job, f) < 0) {
		vial_job_free(job);
		return -1;
	}
	if (pool_run(ret, s->pool, &t->share, job, events, &f->err) == 0)
		return 0;
	if (f->err.code == ERR_BUSY && pool_share_is_full(s->pool, &t->share)) {
		f->status = 429;
		f->quota = "queue";
		f->retry_after = 1;
	}
	return -1;
}
