#include "lib/config.h"

#include "base/own.h"
#include "test.h"

DEFINE_CLEANUP(struct config *, config_free)

static int parse(struct config **ret, const char *text, struct err *e)
{
	return config_parse(ret, text, strlen(text), e);
}

TEST(an_empty_configuration_is_all_defaults)
{
	AUTO(config_freep) struct config *c = NULL;
	struct limits lim, def;
	struct err e;

	CHECK_OK(parse(&c, "\n \n", &e));
	CHECK(!c->network.allow_host && !c->cgroup);
	limits_default(&def);
	CHECK_OK(config_limits(&lim, c, &e));
	CHECK(memcmp(&lim, &def, sizeof(lim)) == 0);
}

TEST(everything_an_operator_may_say_is_read)
{
	AUTO(config_freep) struct config *c = NULL;
	struct limits lim;
	struct err e;

	CHECK_OK(parse(&c,
		       "network:\n  allow_host: true\n"
		       "limits:\n  memory: 1g\n  timeout: 5\n"
		       "languages:\n  - name: python\n    command: /opt/py/bin/python3\n"
		       "    mounts: [/opt/data]\n"
		       "cgroup: /sys/fs/cgroup/x\ncache: /var/tmp/c\nuid_base: 500000\n", &e));
	CHECK(c->network.allow_host && c->uid_base == 500000);
	CHECK_STR(c->cgroup, "/sys/fs/cgroup/x");
	CHECK_STR(config_language(c, "python")->command, "/opt/py/bin/python3");
	CHECK_STR(config_language(c, "python")->mounts[0], "/opt/data");
	CHECK(!config_language(c, "ruby"));
	CHECK_OK(config_limits(&lim, c, &e));
	CHECK(lim.memory_bytes == 1u << 30 && lim.wall_ms == 5000);
}

TEST(mistakes_in_a_configuration_are_told_with_their_place)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "netwrok:\n  allow_host: true\n",
		  "line 1: the file has no key 'netwrok'; did you mean 'network'?" },
		{ "network:\n  allow_hosts: true\n",
		  "line 2: network has no key 'allow_hosts'; did you mean 'allow_host'?" },
		{ "limits:\n  memory: lots\n", "line 2: limits: memory: 'lots' is not a size" },
		{ "limits:\n  memory: 1g\n  memory: 2g\n", "line 3: 'memory' is given twice" },
		{ "limits: [1, 2]\n", "line" },
		{ "languages:\n  - name: python\n    command: bin/python\n",
		  "line 3: languages: python: command must be an absolute path" },
		{ "server:\n  max: 8\n  armd: 2\n",
		  "line 3: server has no key 'armd'; did you mean 'armed'?" },
		{ "server:\n  max: 0\n", "line 2: max: must be 1 to 2048" },
		{ "server:\n  drain_grace: long\n",
		  "line 2: drain_grace: 'long' is not a duration" },
		{ "server:\n  listen: [a:1, 'b,c:2']\n",
		  "line 2: listen: 'b,c:2' is not one entry" },
		{ "server:\n  listen: [localhost]\n",
		  "'localhost' is not ADDRESS:PORT" },
		{ "server:\n  listen: ['https://127.0.0.1:1']\n", "needs tls_certificate" },
		{ "server:\n  listen: ['0.0.0.0:6000']\n", "allow_plain" },
		{ "server:\n  tls_key: /k\n", "tls_certificate is missing" },
		{ "server:\n  tls_key: k\n", "line 2: tls_key: must be an absolute path" },
		{ "server:\n  socket_mode: '0666'\n", "every user" },
		{ "server:\n  allow_plain: perhaps\n", "neither true nor false" },
		{ "network: {", "" },
		{ "- a\n- b\n", "" },
		{ "a: &x b\nc: *x\n", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(config_freep) struct config *c = NULL;
		struct err e;
		CHECK(parse(&c, cases[i].text, &e) == -1);
		CHECK(e.code == ERR_INVALID && e.msg[0]);
		if (!strstr(e.msg, cases[i].says))
			CHECK_STR(e.msg, cases[i].says);
	}
}

TEST(settings_of_the_server_have_defaults_and_an_origin)
{
	AUTO(config_freep) struct config *c = NULL;
	struct err e;

	CHECK_OK(parse(&c,
		       "# comment\nserver:\n  listen: ['[::1]:7000', 'localhost:7001']\n"
		       "  drain_grace: 2m\n  body_memory: 1g\n  hosts: []\n", &e));
	CHECK(c->server->listen.count == 2 && c->server->hosts.count == 0);
	CHECK_STR(c->server->listen.items[1], "localhost:7001");
	CHECK(c->server->drain_grace == 120000 && c->server->body_memory == 1u << 30);
	CHECK(c->server->max == 64 && c->server->armed == 4 && !c->server->tls_key);
	CHECK_STR(c->settings.all[SETTING_listen].text, "[::1]:7000,localhost:7001");
	CHECK_STR(c->settings.all[SETTING_listen].origin, "text:3");
	CHECK(!c->settings.all[SETTING_max].origin);
	CHECK_STR(config_origin(c, "server.body_memory"), "text:5");
}

TEST(no_list_at_all_is_said_by_an_empty_one)
{
	AUTO(config_freep) struct config *c = NULL;
	struct err e;

	CHECK_OK(parse(&c, "server:\n  listen: []\n", &e));
	CHECK(c->server->listen.count == 0);
	CHECK_STR(c->settings.all[SETTING_listen].origin, "text:2");
}

TEST(a_list_is_as_long_as_its_row_says)
{
	AUTO(config_freep) struct config *c = NULL;
	AUTO(config_freep) struct config *none = NULL;
	auto_buf struct buf text = BUF_INIT(1 << 20);
	struct err e;

	buf_add_str(&text, "server:\n  workers:\n");
	for (int i = 0; i < 1024; i++)
		buf_printf(&text, "    - http://worker-%d.workers.example.org:6000\n", i);
	size_t full = text.len;
	buf_add_str(&text, "  max: 8\n"); /* and what comes after it is not lost */
	CHECK_OK(parse(&c, buf_str(&text), &e));
	CHECK_INT(c->server->workers.count, 1024);
	CHECK_STR(c->server->workers.items[1023], "http://worker-1023.workers.example.org:6000");
	CHECK_INT(c->server->max, 8);
	text.len = full;
	buf_add_str(&text, "    - http://one.more\n");
	CHECK(parse(&none, buf_str(&text), &e) < 0);
}

TEST(a_list_that_is_too_large_is_refused)
{
	AUTO(config_freep) struct config *c = NULL;
	auto_buf struct buf text = BUF_INIT(1 << 20);
	struct err e;

	buf_add_str(&text, "server:\n  workers:\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "    - http://%0200d\n", i);
	CHECK(parse(&c, buf_str(&text), &e) < 0);
	CHECK_STR(e.msg, "line 2: workers: is longer than 131072 bytes");
}

TEST(the_environment_comes_before_the_file_and_flags_before_both)
{
	AUTO(config_freep) struct config *c = NULL;
	struct limits lim;
	struct err e;

	CHECK_OK(parse(&c, "server:\n  max: 8\n  armed: 2\n  queue: 5\n", &e));
	CHECK(setenv("CODE_EXECUTOR_MAX_POD_POOL_SIZE", "9", 1) == 0);
	CHECK(setenv("CODE_EXECUTOR_MEMORY_LIMIT", "128Mi", 1) == 0);
	CHECK(setenv("VIAL_ARMED", "3", 1) == 0 && setenv("VIAL_QUEUE", "6", 1) == 0);
	CHECK(setenv("SANDBOX_HOST", "::1", 1) == 0 && setenv("SANDBOX_PORT", "7777", 1) == 0);
	int read = config_environment(c, &e);
	CHECK(unsetenv("CODE_EXECUTOR_MAX_POD_POOL_SIZE") == 0 && unsetenv("VIAL_ARMED") == 0);
	CHECK(unsetenv("CODE_EXECUTOR_MEMORY_LIMIT") == 0 && unsetenv("VIAL_QUEUE") == 0);
	CHECK(unsetenv("SANDBOX_HOST") == 0 && unsetenv("SANDBOX_PORT") == 0);
	CHECK_OK(read);
	CHECK_OK(config_set(c, "queue", "7", "--queue", &e));
	CHECK(c->server->max == 9 && c->server->armed == 3 && c->server->queue == 7);
	CHECK_STR(c->server->listen.items[0], "[::1]:7777");
	CHECK_STR(c->settings.all[SETTING_armed].origin, "VIAL_ARMED");
	CHECK_STR(c->settings.all[SETTING_queue].origin, "--queue");
	CHECK_STR(config_origin(c, "limits.memory"), "CODE_EXECUTOR_MEMORY_LIMIT");
	CHECK_OK(config_limits(&lim, c, &e));
	CHECK(lim.memory_bytes == 128u << 20);
	CHECK(config_set(c, "quue", "7", "--set", &e) < 0);
	CHECK_STR(e.msg, "there is no such setting; did you mean 'queue'?");
}

TEST(what_is_in_effect_can_be_handed_to_another_process)
{
	AUTO(config_freep) struct config *a = NULL;
	AUTO(config_freep) struct config *b = NULL;
	auto_buf struct buf first = BUF_INIT(1 << 16), second = BUF_INIT(1 << 16);
	struct err e;

	CHECK_OK(parse(&a, "server:\n  max: 8\n  hosts: [a.example, b.example]\n"
		       "limits:\n  memory: 1g\n",
		       &e));
	CHECK_OK(parse(&b, "", &e));
	config_write(&first, a);
	CHECK_OK(config_read(b, buf_str(&first), &e));
	config_write(&second, b);
	CHECK_STR(buf_str(&second), buf_str(&first));
	CHECK(b->server->max == 8 && b->server->hosts.count == 2);
}
