/*
 * doctor - vial doctor: which layers hold on this host, and what mends the rest.
 *
 * The library runs a probe in a sandbox; this file only prints what it saw.
 */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>

struct request {
	const char *config;
	bool json;
};

static const struct option rows[] = {
	{ "json", 0, NULL, "print a JSON object: layers, live_forks, ok",
	  offsetof(struct request, json), NULL },
	{ "config", 0, "FILE", "the operator's configuration (default: /etc/vial/vial.yaml)",
	  offsetof(struct request, config), NULL },
};

static const struct {
	const char *name, *mark, *ascii;
	enum term_style style;
} states[] = {
	[VIAL_ACTIVE] = { "active", "✓", "+", TERM_GREEN },
	[VIAL_DEGRADED] = { "degraded", "~", "~", TERM_YELLOW },
	[VIAL_MISSING] = { "missing", "✗", "x", TERM_RED },
};

static bool is_fatal(const struct vial_layer *layer)
{
	return layer->required && layer->state == VIAL_MISSING;
}

static void print_layers(const struct vial_layer *layers, size_t count)
{
	auto_table struct table t = TABLE_INIT(4);
	bool utf8 = term_is_utf8();

	for (size_t i = 0; i < count; i++) {
		const struct vial_layer *layer = &layers[i];
		enum term_style style = states[layer->state].style;

		table_add(&t, style, utf8 ? states[layer->state].mark : states[layer->state].ascii);
		table_add(&t, TERM_BOLD, layer->name);
		table_add(&t, style, states[layer->state].name);
		table_add(&t, TERM_PLAIN, layer->detail);
		if (layer->state == VIAL_ACTIVE || !layer->fix[0])
			continue;

		auto_buf struct buf fix = BUF_INIT(4096);

		buf_printf(&fix, "fix: %s", layer->fix);
		table_add(&t, TERM_PLAIN, "");
		table_add(&t, TERM_PLAIN, "");
		table_add(&t, TERM_PLAIN, "");
		table_add(&t, TERM_YELLOW, buf_str(&fix));
	}
	table_print(&t, stdout);
}

/* How much of a sandbox there is here, in a word. */
static const struct {
	const char *name, *means;
} tiers[] = {
	{ "full", "namespaces, a uid and a cgroup for each sandbox" },
	{ "user", "namespaces for each sandbox, without a uid or a cgroup of its own" },
	{ "bare", "no namespaces: Landlock, a filter and rlimits" },
	{ "none", "no sandbox can be made" },
};

enum { TIER_FULL, TIER_USER, TIER_BARE, TIER_NONE };

static int tier_of(const struct vial_layer *layers, size_t count)
{
	int tier = TIER_FULL;

	for (size_t i = 0; i < count; i++) {
		bool is_missing = layers[i].state == VIAL_MISSING;
		int without = strcmp(layers[i].name, "namespaces") == 0 ? TIER_BARE
			      : strcmp(layers[i].name, "creds") == 0    ? TIER_NONE
			      : layers[i].required                      ? TIER_USER
									: TIER_FULL;
		tier = is_missing && without > tier ? without : tier;
	}
	return tier;
}

static void print_verdict(const struct vial_layer *layers, size_t count)
{
	const char *red = term_style(stdout, TERM_RED), *green = term_style(stdout, TERM_GREEN);
	const char *plain = term_style(stdout, TERM_PLAIN);
	auto_buf struct buf fatal = BUF_INIT(4096);
	size_t weak = 0;

	for (size_t i = 0; i < count; i++) {
		weak += layers[i].state != VIAL_ACTIVE;
		if (is_fatal(&layers[i]))
			buf_printf(&fatal, "%s%s", fatal.len ? "," : "", layers[i].name);
	}
	int tier = tier_of(layers, count);

	(void)printf("Tier: %s (%s).\n", tiers[tier].name, tiers[tier].means);
	if (tier == TIER_NONE)
		(void)printf("%sNothing runs here.%s\n", red, plain);
	else if (fatal.len)
		(void)printf("%sRuns are refused here%s unless you accept less: --allow-weak %s\n",
			     red, plain, buf_str(&fatal));
	else if (weak)
		(void)printf("%sReady.%s Every layer a run needs is there; %zu could be better.\n",
			     green, plain, weak);
	else
		(void)printf("%sReady.%s All %zu layers are active.\n", green, plain, count);
}

/* No layer: nothing is weaker without it. */
static void print_forks(const char *why_not)
{
	if (why_not)
		(void)printf("Live forks: no (%s).\n", why_not);
	else
		(void)puts("Live forks: yes (a daemon's sessions can become several).");
}

static void print_json(const struct vial_layer *layers, size_t count, bool ok, const char *why_not)
{
	auto_buf struct buf text = BUF_INIT(1u << 20);
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	json_string(&j, "version", vial_version());
	json_bool(&j, "ok", ok);
	json_string(&j, "tier", tiers[tier_of(layers, count)].name);
	json_open(&j, "layers", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(&j, NULL, '{');
		json_string(&j, "name", layers[i].name);
		json_string(&j, "title", layers[i].title);
		json_string(&j, "state", states[layers[i].state].name);
		json_bool(&j, "required", layers[i].required);
		json_string(&j, "detail", layers[i].detail);
		json_string(&j, "fix", layers[i].fix);
		json_close(&j);
	}
	json_close(&j);
	json_open(&j, "live_forks", '{');
	json_bool(&j, "possible", !why_not);
	json_string(&j, "why_not", why_not ? why_not : "");
	json_close(&j);
	json_close(&j);
	(void)puts(buf_str(&text));
}

int doctor_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json]", NULL };
	struct request req = { 0 };
	struct options o = { "doctor",
			     synopsis,
			     "Try every layer of the sandbox on this host and say which of them "
			     "hold. Exits with 0 when a run would be accepted, with 1 when it "
			     "would be refused.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	AUTO(vial_closep) struct vial *host = NULL;
	const struct vial_layer *layers;
	struct vial_error error;
	size_t count;
	bool ok = true;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 || cli_open(&host, req.config, &e) < 0)
		return cli_report(o.verb, &e);
	if (vial_layers(&layers, &count, host, &error) < 0) {
		(void)cli_from_vial(&e, &error);
		return cli_report(o.verb, &e);
	}
	for (size_t i = 0; i < count; i++)
		ok = ok && !is_fatal(&layers[i]);
	const char *why_not = vial_live_forks(host, &error) < 0 ? error.message : NULL;
	if (req.json) {
		print_json(layers, count, ok, why_not);
	} else {
		print_layers(layers, count);
		print_forks(why_not);
		print_verdict(layers, count);
	}
	return cli_flush(ok ? 0 : 1);
}
