#include "server/tenant.h"
#include "test.h"

#define SECOND 1000000u

TEST(a_bucket_gives_what_it_holds_and_what_has_flowed_in)
{
	struct bucket b = { 0 };
	uint64_t now = 5 * SECOND;

	for (int i = 0; i < 10; i++)
		CHECK_INT(bucket_take(&b, 10, 5, 1, now), 0);
	CHECK_INT(bucket_take(&b, 10, 5, 1, now), SECOND / 5);
	CHECK_INT(bucket_take(&b, 10, 5, 1, now + SECOND / 5), 0);
	CHECK(bucket_take(&b, 10, 5, 1, now + SECOND / 5) > 0);
	now += 3600ull * SECOND; /* it does not flow over */
	for (int i = 0; i < 10; i++)
		CHECK_INT(bucket_take(&b, 10, 5, 1, now), 0);
	CHECK(bucket_take(&b, 10, 5, 1, now) > 0);
}

TEST(a_debt_is_paid_before_anything_is_given)
{
	struct bucket b = { 0 };

	bucket_charge(&b, 10, 1, 30, SECOND);
	CHECK_INT(bucket_take(&b, 10, 1, 1, SECOND), 21 * SECOND);
	CHECK_INT(bucket_take(&b, 10, 1, 1, 22 * SECOND), 0);
}

static struct tenant with(const char *key, const char *value)
{
	struct tenant t = { .name = "acme" };
	struct err e;

	quotas_default(&t.quotas);
	if (quotas_set(&t.quotas, key, value, &e) < 0)
		t.name[0] = '\0';
	return t;
}

TEST(cpu_time_is_charged_when_it_was_used)
{
	struct tenant t = with("cpu", "10s");
	struct failure f = { .status = 0 };

	CHECK_INT(tenant_admit_cpu(&t, &f), 0);
	tenant_charge_cpu(&t, 20000);
	CHECK_INT(tenant_admit_cpu(&t, &f), -1);
	CHECK_INT(f.status, 429);
	CHECK_STR(f.quota, "cpu");
	CHECK(f.retry_after > 3000 && f.retry_after <= 3601); /* ten of an hour's ten seconds */
	CHECK(tenant_cpu_used(&t) > 19000);
}

TEST(sessions_count_until_they_are_given_back)
{
	struct tenant t = with("sessions", "2");
	struct failure f = { .status = 0 };

	CHECK_INT(tenant_admit_session(&t, 100, &f), 0);
	CHECK_INT(tenant_admit_session(&t, 100, &f), 0);
	CHECK_INT(tenant_admit_session(&t, 100, &f), -1);
	CHECK_STR(f.quota, "sessions");
	tenant_release_session(&t, 100);
	CHECK_INT(tenant_admit_session(&t, 100, &f), 0);
}

TEST(storage_is_what_its_sessions_may_hold)
{
	struct tenant t = with("storage", "1m");
	struct failure f = { .status = 0 };

	CHECK_INT(tenant_admit_session(&t, 1 << 20, &f), 0);
	CHECK_INT(tenant_admit_session(&t, 1, &f), -1);
	CHECK_STR(f.quota, "storage");
	tenant_release_session(&t, 1 << 20);
	CHECK_INT(tenant_admit_session(&t, UINT64_MAX, &f), -1);
	CHECK_INT(t.session_count, 0);
}

TEST(quotas_are_read_as_people_write_them)
{
	struct quotas q;
	struct err e;
	char text[32];

	quotas_default(&q);
	CHECK_INT(quotas_set(&q, "storage", "2g", &e), 0);
	CHECK_INT(q.storage_bytes, 2ll << 30);
	CHECK_INT(quotas_set(&q, "cpu", "90s", &e), 0);
	CHECK_INT(q.cpu_ms, 90000);
	CHECK_INT(quotas_set(&q, "cpu", "none", &e), 0);
	CHECK(q.cpu_ms == QUOTA_NONE);
	CHECK_STR(quotas_show(text, &q, "cpu"), "none");
	CHECK_INT(quotas_set(&q, "weight", "none", &e), -1);
	CHECK_INT(quotas_set(&q, "weight", "0", &e), -1);
	CHECK_INT(quotas_set(&q, "runs", "-1", &e), -1);
	CHECK_INT(quotas_set(&q, "speed", "1", &e), -1);
}
