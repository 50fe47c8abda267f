#include "runtime/runtime.h"
#include "test.h"

#include <fcntl.h>
#include <sys/stat.h>

TEST(languages_are_sorted_and_complete)
{
	for (size_t i = 0; runtimes[i]; i++) {
		const struct runtime *rt = runtimes[i];

		CHECK(!i || strcmp(runtimes[i - 1]->name, rt->name) < 0);
		CHECK(rt->title && rt->aliases && rt->extension[0] == '.' && rt->source_name);
		CHECK(rt->tools[0] && rt->run[0] && rt->version[0] && rt->package &&
		      rt->read_error);
		CHECK_STR(rt->source_name + strlen("main"), rt->extension);
		for (size_t k = 0; rt->tools[k]; k++)
			CHECK(rt->tools[k][0] == '/');
	}
}

TEST(no_name_means_two_languages)
{
	for (size_t i = 0; runtimes[i]; i++) {
		CHECK(runtime_find(runtimes[i]->name) == runtimes[i]);
		for (const char *const *alias = runtimes[i]->aliases; *alias; alias++)
			CHECK(runtime_find(*alias) == runtimes[i]);
	}
}

TEST(names_are_found_in_any_case_and_with_blanks)
{
	static const char *const names[][2] = {
		{ "python", "python" }, { "python3", "python" },  { " PY\t", "python" },
		{ "Js", "javascript" }, { "node", "javascript" }, { "\nBash ", "bash" },
		{ "sh", "sh" },         { "RB", "ruby" },         { "golang", "go" },
		{ "c", "c" },           { "C++", "cpp" },         { "cxx", "cpp" },
	};
	static const char *const unknown[] = { "", " ", "pyth", "python33", "py thon", "cobol" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CHECK(runtime_find(names[i][0]));
		CHECK_STR(runtime_find(names[i][0])->name, names[i][1]);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		CHECK(!runtime_find(unknown[i]));
}

TEST(a_typing_error_is_told_from_a_language_there_is_not)
{
	static const char *const guesses[][2] = {
		{ "pyton", "python" }, { "javascrpt", "javascript" },
		{ "rby", "ruby" },     { "cobol", NULL },
		{ "x", NULL },         { "", NULL }
	};
	struct err e = { 0 };

	for (size_t i = 0; i < sizeof(guesses) / sizeof(guesses[0]); i++) {
		const char *guess = runtime_nearest(guesses[i][0]);

		CHECK(!guess == !guesses[i][1]);
		if (guess && guesses[i][1])
			CHECK_STR(guess, guesses[i][1]);
	}
	CHECK(runtime_unknown("pyton", &e) < 0);
	CHECK_STR(e.msg, "unknown language 'pyton'; did you mean 'python'?");
	CHECK(runtime_unknown("cobol", &e) < 0);
	CHECK_STR(e.msg, "unknown language 'cobol' (see 'vial languages')");
}

/* ---- files ----------------------------------------------------------------------------- */

static const char *name_of(const char *path)
{
	const struct runtime *rt = runtime_by_file(path);

	return rt ? rt->name : "(none)";
}

TEST(files_are_told_by_extension)
{
	CHECK_STR(name_of("x.py"), "python");
	CHECK_STR(name_of("/a.b/my file.PY"), "python");
	CHECK_STR(name_of("x.mjs"), "javascript");
	CHECK_STR(name_of("x.cjs"), "javascript");
	CHECK_STR(name_of("x.rb"), "ruby");
	CHECK_STR(name_of("x.tar.go"), "go");
	CHECK_STR(name_of("x.c"), "c");
	CHECK_STR(name_of("x.cc"), "cpp");
	CHECK_STR(name_of("x.sh"), "bash"); /* it understands what sh does, and more */
	CHECK_STR(name_of("x.txt"), "(none)");
	CHECK_STR(name_of("x"), "(none)");
	CHECK_STR(name_of("dir.py/x"), "(none)");
	CHECK_STR(name_of(".py"), "(none)");
	CHECK_STR(name_of(""), "(none)");
}

struct scratch {
	char dir[32], path[64];
};

static void scratch_done(struct scratch *s)
{
	(void)unlink(s->path);
	(void)rmdir(s->dir);
}

/* A file of this name and text, gone at the end of the scope. */
static struct scratch scratch(const char *name, const char *text)
{
	struct scratch s = { .dir = "/tmp/vial-test.XXXXXX" };

	if (!mkdtemp(s.dir))
		abort();
	(void)snprintf(s.path, sizeof(s.path), "%s/%s", s.dir, name);
	auto_close int fd = open(s.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	return s;
}

TEST(files_without_extension_are_told_by_their_first_line)
{
	static const char *const lines[][2] = {
		{ "#!/usr/bin/python3\n", "python" },
		{ "#! /usr/bin/python3.11 -u\nx", "python" },
		{ "#!/usr/bin/env python3\n", "python" },
		{ "#!/usr/bin/env -S python3 -u\n", "python" },
		{ "#!/usr/bin/env -Spython3 -u\n", "python" },
		{ "#!/usr/bin/env -i A=1 B=2 node\n", "javascript" },
		{ "#!/bin/sh", "sh" },
		{ "#!/bin/dash\n", "sh" },
		{ "#!/bin/bash -e\r\n", "bash" },
		{ "#!/usr/bin/ruby3.1\n", "ruby" },
		{ "#!python3\n", "python" },
		{ "#!/usr/bin/env\n", "(none)" },
		{ "#!/usr/bin/env -S\npython3\n", "(none)" },
		{ "#!\n", "(none)" },
		{ "#!", "(none)" },
		{ "#!/usr/bin/\n", "(none)" },
		{ "#!/usr/bin/perl\n", "(none)" },
		{ "#!/usr/bin/3\n", "(none)" },
		{ "print(1)\n", "(none)" },
		{ "", "(none)" },
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		AUTO(scratch_done) struct scratch s = scratch("program", lines[i][0]);
		CHECK_STR(name_of(s.path), lines[i][1]);
	}
}

TEST(an_extension_that_two_languages_share_is_decided_by_the_first_line)
{
	AUTO(scratch_done) struct scratch sh = scratch("x.sh", "#!/bin/sh\n");
	AUTO(scratch_done) struct scratch bash = scratch("x.sh", "#!/usr/bin/env bash\n");
	AUTO(scratch_done) struct scratch python = scratch("x.sh", "#!/usr/bin/python3\n");
	AUTO(scratch_done) struct scratch none = scratch("x.sh", "echo\n");

	CHECK_STR(name_of(sh.path), "sh");
	CHECK_STR(name_of(bash.path), "bash");
	CHECK_STR(name_of(python.path), "bash");
	CHECK_STR(name_of(none.path), "bash");
}

TEST(an_extension_wins_over_the_first_line)
{
	AUTO(scratch_done) struct scratch s = scratch("x.py", "#!/usr/bin/ruby\n");

	CHECK_STR(name_of(s.path), "python");
}

TEST(fifos_and_directories_are_not_waited_for)
{
	AUTO(scratch_done) struct scratch s = scratch("pipe", "");

	CHECK(unlink(s.path) == 0 && mkfifo(s.path, 0600) == 0);
	CHECK_STR(name_of(s.path), "(none)");
	CHECK_STR(name_of(s.dir), "(none)");
	CHECK_STR(name_of("/dev/zero"), "(none)");
}

TEST(sources_are_what_a_compiler_takes)
{
	const struct runtime *go = runtime_find("go"), *cpp = runtime_find("cpp");

	CHECK(runtime_is_source(go, "util.go"));
	CHECK(!runtime_is_source(go, "util_test.go"));
	CHECK(!runtime_is_source(go, "sub/util.go"));
	CHECK(!runtime_is_source(go, ".hidden.go"));
	CHECK(!runtime_is_source(go, "go.mod"));
	CHECK(runtime_is_source(cpp, "util.cc"));
	CHECK(!runtime_is_source(cpp, "util.h"));
	CHECK(!runtime_is_source(runtime_find("python"), "util.py"));
}

/* ---- commands -------------------------------------------------------------------------- */

/* The words of a command, each in brackets; or why there is none. */
static const char *expanded(char out[256], const char *const *words,
			    const struct template_vars *vars)
{
	auto_free char **argv = NULL;
	struct err e;
	size_t len = 0;

	out[0] = '\0';
	if (runtime_expand(&argv, words, vars, &e) < 0)
		(void)snprintf(out, 256, "%s: %s", err_code_name(e.code), e.msg);
	for (char **word = argv; word && *word; word++)
		len += (size_t)snprintf(out + len, 256 - len, "[%s]", *word);
	return out;
}

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static const struct template_vars vars = {
	.tool = "/usr/bin/tool",
	.source = "main.x",
	.output = "/tmp/main",
	.cache = "/cache",
	.memory_mb = 512,
};

TEST(templates_are_expanded_inside_words)
{
	char out[256];

	CHECK_STR(expanded(out, WORDS("%i", "-o%o", "%s"), &vars),
		  "[/usr/bin/tool][-o/tmp/main][main.x]");
	CHECK_STR(expanded(out, WORDS("A=%c:%c", "100%%", ""), &vars), "[A=/cache:/cache][100%][]");
	CHECK_STR(expanded(out, WORDS("%m", "--heap=%h"), &vars), "[512][--heap=384]");
	CHECK_STR(expanded(out, (const char *const[]){ NULL }, &vars), "");
}

TEST(templates_without_a_value_are_our_own_mistake)
{
	char out[256];

	CHECK(strstr(expanded(out, WORDS("%z"), &vars), "no value for %z"));
	CHECK(strstr(expanded(out, WORDS("x%"), &vars), "no value"));
	CHECK(strstr(expanded(out, WORDS("%c"), &(struct template_vars){ .tool = "x" }),
		     "no value"));
}

TEST(words_about_memory_are_left_out_when_there_is_no_limit)
{
	char out[256];
	struct template_vars some = vars;

	some.memory_mb = 0;
	CHECK_STR(expanded(out, WORDS("a", "--heap=%h", "%m", "b"), &some), "[a][b]");
}

TEST(a_heap_leaves_room_for_its_interpreter)
{
	static const struct {
		uint64_t memory_mb;
		const char *heap;
	} cases[] = {
		{ 8, "[16]" },    { 64, "[16]" },   { 96, "[32]" },    { 128, "[64]" },
		{ 256, "[192]" }, { 512, "[384]" }, { 1024, "[768]" }, { 1 << 20, "[786432]" },
	};
	char out[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct template_vars some = { .memory_mb = cases[i].memory_mb };
		CHECK_STR(expanded(out, WORDS("%h"), &some), cases[i].heap);
	}
}

TEST(all_source_files_are_words)
{
	char out[256];
	struct template_vars some = vars;

	CHECK_STR(expanded(out, WORDS("cc", "%f", "-lm"), &some), "[cc][main.x][-lm]");
	some.more_sources = WORDS("a b.x", "-c.x");
	CHECK_STR(expanded(out, WORDS("cc", "%f", "-lm"), &some),
		  "[cc][main.x][a b.x][./-c.x][-lm]");
}

TEST(a_file_name_is_never_taken_for_an_option)
{
	static const char *const names[][2] = {
		{ "-c.py", "[./-c.py]" },       { "--version", "[./--version]" },
		{ "@x.c", "[./@x.c]" },         { "+x.sh", "[./+x.sh]" },
		{ "inspect", "[./inspect]" },   { "a b.py", "[a b.py]" },
		{ "_x.py", "[_x.py]" },         { "\xc3\xa9.py", "[\xc3\xa9.py]" },
		{ "/run/x.py", "[/run/x.py]" },
	};
	char out[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct template_vars some = { .source = names[i][0] };
		CHECK_STR(expanded(out, WORDS("%s"), &some), names[i][1]);
	}
}

TEST(every_row_can_be_expanded)
{
	char out[256];

	for (size_t i = 0; runtimes[i]; i++) {
		const struct runtime *rt = runtimes[i];
		const char *const *rows[] = { rt->compile, rt->run, rt->version, rt->env,
					      rt->warm_cache };
		for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
			if (rows[k])
				CHECK(strchr("[/", expanded(out, rows[k], &vars)[0]));
		CHECK(!rt->compile == !strstr(expanded(out, rt->run, &vars), "/tmp/main"));
	}
}

TEST(memory_is_what_these_ran_out_of)
{
	static const char *const yes[] = { "NoMemoryError", "std::bad_alloc", "OutOfMemory",
					   "numpy.core._exceptions._ArrayMemoryError" };
	static const char *const no[] = { "", "ValueError", "MemoryErrors", "bad_alloc", "Error" };
	struct exception ex = { .line = 1, .type = "MemoryError" };

	CHECK(exception_is_memory(&ex));
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		(void)snprintf(ex.type, sizeof(ex.type), "%s", yes[i]);
		CHECK(exception_is_memory(&ex));
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		(void)snprintf(ex.type, sizeof(ex.type), "%s", no[i]);
		CHECK(!exception_is_memory(&ex));
	}
}
