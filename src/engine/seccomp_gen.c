/*
 * seccomp_gen - compile a table of system calls to BPF; runs at build time, prints a C file.
 *
 *   seccomp-gen [guest|zygote|forked|bare|server|egress [ARCH]]
 *
 * The guest's by default; ARCH as libseccomp names it, by default this machine's.
 *
 * libseccomp knows the numbers of the calls.  The program is our own, because
 * what a sandbox pays is the installation: the kernel runs the filter once for
 * every call number to learn which answers are constant.  Neighbouring numbers
 * with the same answer become one leaf of a binary tree, so that a run is seven
 * comparisons (libseccomp's tree has a leaf per call).
 *
 * Before it is printed the program is run against the table, with every call and
 * every value that a row mentions and its neighbours; a difference ends the build.
 */
#include "base/err.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fiemap.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/fs.h>
#include <linux/prctl.h>
#include <linux/random.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Newer than Debian 12's headers. */
#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define ALL_BITS     0xffffffffu
#define HIGH(arg)    ((arg) + ARGS)

enum {
	ARGS = 6,
	HALVES = 2 * ARGS, /* the low one of each argument, then the high one of each */
	CALLS_MAX = 1024, /* call numbers we look at; the highest today is 469 */
	ROWS_MAX = 24,    /* rows on one call */
	VALUES_MAX = 96,  /* values of one ONLY row */
	SINGLES_MAX = 3,  /* values compared one by one at the end of a tree's branch */
	NEAR = 250,       /* instructions a conditional jump can skip, with room for ourselves */
};

/* Holds when low <= (argument & mask) <= high. */
struct test {
	unsigned arg; /* below HALVES */
	uint32_t mask, low, high; /* mask 0 ends a list */
};

struct row {
	enum { ROW_ANSWER, ROW_REFUSE, ROW_ONLY } kind;
	uint32_t answer; /* SECCOMP_RET_*: always, when all tests hold, unless a value is listed */
	const char *why, *calls;
	const struct test *tests;
	unsigned arg;
	uint32_t mask;
	const uint32_t *values;
	size_t value_count;
};

#define ERRNO(n) (SECCOMP_RET_ERRNO | (n))

/* clang-format off */
#define IS(n, v)           { (n), ALL_BITS, (v), (v) }
#define MASKED_IS(n, m, v) { (n), (m), (v), (v) }
#define HAS(n, bits)       { (n), (bits), 1, ALL_BITS }
#define BETWEEN(n, lo, hi) { (n), ALL_BITS, (lo), (hi) }

#define ANSWER(what, why_, calls_) \
	{ .kind = ROW_ANSWER, .answer = (what), .why = why_, .calls = calls_ },
#define ALLOW(why, calls)     ANSWER(SECCOMP_RET_ALLOW, why, calls)
#define DENY(err, why, calls) ANSWER(ERRNO(err), why, calls)
#define PRETEND(why, calls)   ANSWER(ERRNO(0), why, calls)
#define REFUSE(err, why_, calls_, ...)                                           \
	{ .kind = ROW_REFUSE, .answer = ERRNO(err), .why = why_, .calls = calls_, \
	  .tests = (const struct test[]){ __VA_ARGS__, { 0, 0, 0, 0 } } },
#define ONLY(err, why_, calls_, arg_, mask_, ...)                                \
	{ .kind = ROW_ONLY, .answer = ERRNO(err), .why = why_, .calls = calls_,   \
	  .arg = (arg_), .mask = (mask_), .values = (const uint32_t[]){ __VA_ARGS__ }, \
	  .value_count = sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t) },
#define NUMBER(name, nr)
/* clang-format on */

static const struct row guest_rows[] = {
#include "engine/seccomp.def"
};

static const struct row zygote_rows[] = {
#include "engine/seccomp_zygote.def"
};

static const struct row bare_rows[] = {
#include "engine/seccomp_bare.def"
};

static const struct row server_rows[] = {
#include "engine/seccomp_server.def"
};

static const struct row egress_rows[] = {
#include "engine/seccomp_egress.def"
};

#undef ALLOW
#undef DENY
#undef PRETEND
#undef REFUSE
#undef ONLY
#undef NUMBER
#define ALLOW(...)
#define DENY(...)
#define PRETEND(...)
#define REFUSE(...)
#define ONLY(...)
#define NUMBER(name_, nr_) { #name_, nr_ },

static const struct {
	const char *name;
	int nr;
} newer_calls[] = {
#include "engine/seccomp.def"
};

static const struct table {
	const char *name, *file; /* of the filter: "guest" makes seccomp_guest */
	const struct row *rows;
	size_t count;
	const struct row *rest; /* for the calls that `rows` do not name; or NULL */
	size_t rest_count;
	const struct row *on;   /* NULL, or: only for the calls that these name; all others are
				 * left to a filter that is there already */
	size_t on_count;
} tables[] = {
	{ "guest", "seccomp.def", guest_rows, ARRAY_LEN(guest_rows), NULL, 0, NULL, 0 },
	{ "zygote", "seccomp_zygote.def", zygote_rows, ARRAY_LEN(zygote_rows), guest_rows,
	  ARRAY_LEN(guest_rows), NULL, 0 },
	/* On top of the zygote's this makes the guest's. */
	{ "forked", "seccomp.def", guest_rows, ARRAY_LEN(guest_rows), NULL, 0, zygote_rows,
	  ARRAY_LEN(zygote_rows) },
	{ "bare", "seccomp_bare.def", bare_rows, ARRAY_LEN(bare_rows), guest_rows,
	  ARRAY_LEN(guest_rows), NULL, 0 },
	{ "server", "seccomp_server.def", server_rows, ARRAY_LEN(server_rows), NULL, 0, NULL, 0 },
	{ "egress", "seccomp_egress.def", egress_rows, ARRAY_LEN(egress_rows), NULL, 0, NULL, 0 },
};

struct call {
	char name[32]; /* empty: no row names this number */
	const struct row *rows[ROWS_MAX];
	size_t row_count;
};

static struct call calls[CALLS_MAX];
static bool is_left[CALLS_MAX]; /* to a filter that is there already */

static _Noreturn void PRINTF(1, 2) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)fputs("seccomp-gen: ", stderr);
	(void)vfprintf(stderr, fmt, ap);
	(void)fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

/* ---- the table, by call number ---- */

/* Negative: this architecture has no such call.  A name that nobody knows is a typing error. */
static int call_number(uint32_t arch, const char *name)
{
	int nr;

	for (size_t i = 0; i < ARRAY_LEN(newer_calls); i++)
		if (strcmp(newer_calls[i].name, name) == 0)
			return newer_calls[i].nr;
	nr = seccomp_syscall_resolve_name_arch(arch, name);
	if (nr == __NR_SCMP_ERROR)
		die("unknown call '%s'", name);
	if (nr >= CALLS_MAX)
		die("call '%s' has number %d", name, nr);
	return nr;
}

static void call_add_row(struct call *call, const char *name, const struct row *row)
{
	bool only_row = row->kind == ROW_ANSWER;

	if (call->row_count > 0 && (only_row || call->rows[0]->kind == ROW_ANSWER))
		die("two answers for '%s'", name);
	if (call->row_count == ROWS_MAX)
		die("more than %d rows for '%s'", ROWS_MAX, name);
	(void)snprintf(call->name, sizeof(call->name), "%s", name);
	call->rows[call->row_count++] = row;
}

static void read_rows(const struct row *rows, size_t count, const bool skip[CALLS_MAX],
		      uint32_t arch)
{
	for (size_t i = 0; i < count; i++) {
		char name[sizeof(calls[0].name)];
		int used;

		for (const char *at = rows[i].calls; sscanf(at, " %31s%n", name, &used) == 1;
		     at += used) {
			int nr = call_number(arch, name);

			if (nr >= 0 && !skip[nr])
				call_add_row(&calls[nr], name, &rows[i]);
		}
	}
}

/* Leave all calls but those that `rows` name. */
static void leave_others(const struct row *rows, size_t count, uint32_t arch)
{
	static const bool none[CALLS_MAX];

	read_rows(rows, count, none, arch);
	for (size_t nr = 0; nr < CALLS_MAX - 1; nr++) /* the last stands for all beyond */
		is_left[nr] = calls[nr].row_count == 0;
	memset(calls, 0, sizeof(calls));
}

static void read_table(const struct table *table, uint32_t arch)
{
	static bool named[CALLS_MAX];

	if (table->on)
		leave_others(table->on, table->on_count, arch);
	read_rows(table->rows, table->count, is_left, arch);
	for (size_t nr = 0; nr < CALLS_MAX; nr++)
		named[nr] = calls[nr].row_count > 0;
	read_rows(table->rest, table->rest_count, named, arch);
}

static bool test_holds(const struct test *t, const uint32_t args[HALVES])
{
	uint32_t value = args[t->arg] & t->mask;

	return t->low <= value && value <= t->high;
}

static bool row_decides(const struct row *row, const uint32_t args[HALVES])
{
	switch (row->kind) {
	case ROW_ANSWER:
		return true;
	case ROW_REFUSE:
		for (const struct test *t = row->tests; t->mask; t++)
			if (!test_holds(t, args))
				return false;
		return true;
	case ROW_ONLY:
		for (size_t i = 0; i < row->value_count; i++)
			if ((args[row->arg] & row->mask) == row->values[i])
				return false;
		return true;
	}
	die("row of no kind");
}

static uint32_t unlisted(const struct call *call)
{
	return is_left[call - calls] ? SECCOMP_RET_ALLOW : ERRNO(ENOSYS);
}

static uint32_t table_answer(const struct call *call, const uint32_t args[HALVES])
{
	if (call->row_count == 0)
		return unlisted(call);
	for (size_t i = 0; i < call->row_count; i++)
		if (row_decides(call->rows[i], args))
			return call->rows[i]->answer;
	return SECCOMP_RET_ALLOW;
}

/* ---- the program, written from its end: BPF jumps only forward ---- */

struct prog {
	struct sock_filter insn[BPF_MAXINSNS]; /* last one first, until prog_finish() */
	unsigned len;
};

/* Where a jump goes: to an instruction already written, or to an answer yet to be. */
struct target {
	bool is_answer;
	uint32_t answer;
	unsigned at;
};

struct leaf {
	uint32_t from; /* up to the next leaf's */
	struct target target;
};

static struct target answer(uint32_t ret)
{
	return (struct target){ .is_answer = true, .answer = ret };
}

static struct target put(struct prog *p, struct sock_filter insn)
{
	if (p->len == BPF_MAXINSNS)
		die("program too long");
	p->insn[p->len] = insn;
	return (struct target){ .at = p->len++ };
}

static struct target put_stmt(struct prog *p, uint16_t code, uint32_t k)
{
	return put(p, (struct sock_filter)BPF_STMT(code, k));
}

static struct target put_load(struct prog *p, size_t offset)
{
	return put_stmt(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* An instruction at or before `t` that a conditional jump written next can reach. */
static unsigned reach(struct prog *p, struct target t)
{
	if (t.is_answer) {
		for (unsigned i = p->len; i-- > 0 && p->len - i < NEAR;)
			if (p->insn[i].code == (BPF_RET | BPF_K) && p->insn[i].k == t.answer)
				return i;
		return put_stmt(p, BPF_RET | BPF_K, t.answer).at;
	}
	if (p->len - t.at < NEAR)
		return t.at;
	return put_stmt(p, BPF_JMP | BPF_JA, p->len - t.at - 1).at;
}

static struct target branch(struct prog *p, uint16_t how, uint32_t k, struct target yes,
			    struct target no)
{
	unsigned yes_at = reach(p, yes), no_at = reach(p, no);
	struct sock_filter insn = {
		.code = BPF_JMP | how | BPF_K,
		.jt = (uint8_t)(p->len - yes_at - 1),
		.jf = (uint8_t)(p->len - no_at - 1),
		.k = k,
	};

	return put(p, insn);
}

static bool same_target(struct target a, struct target b)
{
	return a.is_answer == b.is_answer && (a.is_answer ? a.answer == b.answer : a.at == b.at);
}

/*
 * A few single values in a range that otherwise has one target: compared one by
 * one they cost half the instructions of a tree.  False when it is not like that.
 */
static bool put_singles(struct prog *p, struct target *ret, const struct leaf *leaves, size_t count)
{
	struct target rest = leaves[count - 1].target, t = rest;

	if (count > 2 * SINGLES_MAX + 1)
		return false;
	for (size_t i = 0; i + 1 < count; i++)
		if (leaves[i + 1].from - leaves[i].from > 1 && !same_target(leaves[i].target, rest))
			return false;
	for (size_t i = count - 1; i-- > 0;)
		if (!same_target(leaves[i].target, rest))
			t = branch(p, BPF_JEQ, leaves[i].from, leaves[i].target, t);
	*ret = t;
	return true;
}

static struct target tree(struct prog *p, const struct leaf *leaves, size_t count)
{
	size_t middle = count / 2;
	struct target low, high;

	if (count == 1)
		return leaves[0].target;
	if (put_singles(p, &low, leaves, count))
		return low;
	high = tree(p, leaves + middle, count - middle);
	low = tree(p, leaves, middle);
	return branch(p, BPF_JGE, leaves[middle].from, high, low);
}

/* Load an argument, masked, for the comparison that was written just before. */
static struct target load_arg(struct prog *p, unsigned arg, uint32_t mask)
{
	if (mask != ALL_BITS)
		(void)put_stmt(p, BPF_ALU | BPF_AND | BPF_K, mask);
	return put_load(p, offsetof(struct seccomp_data, args) + arg % ARGS * sizeof(uint64_t) +
				   arg / ARGS * sizeof(uint32_t));
}

static struct target put_test(struct prog *p, const struct test *t, struct target yes,
			      struct target no)
{
	if (t->low == t->high) {
		(void)branch(p, BPF_JEQ, t->low, yes, no);
	} else {
		if (t->high != ALL_BITS)
			yes = branch(p, BPF_JGT, t->high, no, yes);
		(void)branch(p, BPF_JGE, t->low, yes, no);
	}
	return load_arg(p, t->arg, t->mask);
}

static struct target put_refuse(struct prog *p, const struct row *row, struct target next)
{
	struct target t = answer(row->answer);
	size_t n = 0;

	while (row->tests[n].mask)
		n++;
	while (n-- > 0)
		t = put_test(p, &row->tests[n], t, next);
	return t;
}

static int compare_values(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static struct target put_only(struct prog *p, const struct row *row, struct target next)
{
	struct leaf leaves[2 * VALUES_MAX + 1] = { { 0, answer(row->answer) } };
	uint32_t values[VALUES_MAX];
	size_t n = 1;

	if (row->value_count > VALUES_MAX)
		die("more than %d values for '%s'", VALUES_MAX, row->calls);
	memcpy(values, row->values, row->value_count * sizeof(values[0]));
	qsort(values, row->value_count, sizeof(values[0]), compare_values);

	for (size_t i = 0; i < row->value_count; i++) {
		if (i > 0 && values[i] == values[i - 1])
			die("value %#x twice for '%s'", values[i], row->calls);
		if (leaves[n - 1].from == values[i])
			n--; /* follows its neighbour: no gap between them */
		if (n == 0 || leaves[n - 1].target.is_answer)
			leaves[n++] = (struct leaf){ values[i], next };
		if (values[i] != ALL_BITS)
			leaves[n++] = (struct leaf){ values[i] + 1, answer(row->answer) };
	}
	(void)tree(p, leaves, n);
	return load_arg(p, row->arg, row->mask);
}

static struct target put_call(struct prog *p, const struct call *call)
{
	struct target t = answer(call->row_count > 0 ? SECCOMP_RET_ALLOW : unlisted(call));

	for (size_t i = call->row_count; i-- > 0;) {
		const struct row *row = call->rows[i];

		if (row->kind == ROW_ANSWER)
			t = answer(row->answer);
		else if (row->kind == ROW_REFUSE)
			t = put_refuse(p, row, t);
		else
			t = put_only(p, row, t);
	}
	return t;
}

static void prog_build(struct prog *p, uint32_t arch)
{
	static struct leaf leaves[CALLS_MAX];
	struct target t;
	size_t n = 0;

	for (uint32_t nr = 0; nr < CALLS_MAX; nr++) {
		t = put_call(p, &calls[nr]);
		if (n > 0 && t.is_answer && leaves[n - 1].target.is_answer &&
		    leaves[n - 1].target.answer == t.answer)
			continue;
		leaves[n++] = (struct leaf){ nr, t };
	}
	/* x32 calls carry bit 30 and so belong to the last leaf: ENOSYS. */
	(void)tree(p, leaves, n);
	t = put_load(p, offsetof(struct seccomp_data, nr));
	(void)branch(p, BPF_JEQ, arch, t, answer(SECCOMP_RET_KILL_PROCESS));
	(void)put_load(p, offsetof(struct seccomp_data, arch));

	for (unsigned i = 0; i < p->len / 2; i++) {
		struct sock_filter first = p->insn[i];

		p->insn[i] = p->insn[p->len - 1 - i];
		p->insn[p->len - 1 - i] = first;
	}
}

/* ---- the proof: the program says what the table says ---- */

static uint32_t prog_run(const struct prog *p, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (unsigned pc = 0; pc < p->len; pc++) {
		const struct sock_filter *i = &p->insn[pc];

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (const char *)data + i->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= i->k ? i->jt : i->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > i->k ? i->jt : i->jf;
			break;
		case BPF_RET | BPF_K:
			return i->k;
		}
	}
	die("the program runs off its end");
}

struct proof {
	const struct prog *prog;
	uint32_t arch, nr;
	uint32_t args[HALVES];
};

static void proof_check(const struct proof *f)
{
	struct seccomp_data data = { .nr = (int)f->nr, .arch = f->arch };
	uint32_t want = table_answer(&calls[f->nr], f->args), got;

	for (unsigned i = 0; i < ARGS; i++)
		data.args[i] = (uint64_t)f->args[HIGH(i)] << 32 | f->args[i];
	got = prog_run(f->prog, &data);
	if (got != want)
		die("call %u (%#x, %#x, %#x): program %#x, table %#x", f->nr, f->args[0],
		    f->args[1], f->args[2], got, want);
	data.nr |= 0x40000000;
	if (prog_run(f->prog, &data) != ERRNO(ENOSYS))
		die("x32 call %u", f->nr);
	data.arch ^= 1;
	if (prog_run(f->prog, &data) != SECCOMP_RET_KILL_PROCESS)
		die("foreign call %u", f->nr);
}

static void proof_from(struct proof *f, unsigned arg);

static void proof_around(struct proof *f, unsigned arg, uint32_t mask, uint32_t value)
{
	for (uint32_t near = value - 1; near != value + 2; near++) {
		f->args[arg] = near;
		proof_from(f, arg + 1);
		f->args[arg] = near | ~mask;
		proof_from(f, arg + 1);
	}
}

/* All combinations of the values that matter in `arg` and the arguments behind it. */
static void proof_from(struct proof *f, unsigned arg)
{
	const struct call *call = &calls[f->nr];

	if (arg == HALVES) {
		proof_check(f);
		return;
	}
	f->args[arg] = arg < ARGS ? 0 : 0xfeedface; /* a high half is anything */
	proof_from(f, arg + 1);
	for (size_t i = 0; i < call->row_count; i++) {
		const struct row *row = call->rows[i];

		for (const struct test *t = row->tests; t && t->mask; t++) {
			if (t->arg != arg)
				continue;
			proof_around(f, arg, t->mask, t->low);
			proof_around(f, arg, t->mask, t->high);
			for (uint32_t bit = 1; bit; bit <<= 1)
				proof_around(f, arg, t->mask, bit);
		}
		for (size_t v = 0; v < row->value_count && row->arg == arg; v++)
			proof_around(f, arg, row->mask, row->values[v]);
	}
}

/* ---- the C file ---- */

static void print_call(unsigned nr, const struct call *call)
{
	for (size_t i = 0; i < call->row_count; i++) {
		const struct row *row = call->rows[i];
		int error = (int)(row->answer & SECCOMP_RET_DATA);
		const char *name = error ? strerrorname_np(error) : "success";

		printf(" * %3u %s: %s%s: %s\n", nr, call->name,
		       row->answer == SECCOMP_RET_ALLOW ? "allowed" : name,
		       row->kind == ROW_ANSWER ? "" : " by argument", row->why);
	}
}

static void print_file(const struct prog *p, const struct table *table)
{
	printf("/*\n * Generated by seccomp-gen from %s.\n *\n", table->file);
	for (unsigned nr = 0; nr < CALLS_MAX; nr++)
		print_call(nr, &calls[nr]);
	printf(" */\n#include \"engine/seccomp.h\"\n\n");
	printf("static const struct sock_filter insns[] = {\n");
	for (unsigned i = 0; i < p->len; i++) {
		const struct sock_filter *f = &p->insn[i];

		printf("\t{ 0x%02x, %3u, %3u, 0x%08x },\n", f->code, f->jt, f->jf, f->k);
	}
	printf("};\n\nconst struct sock_fprog seccomp_%s = {\n", table->name);
	printf("\t%u,\n\t(struct sock_filter *)insns,\n};\n", p->len);
}

int main(int argc, char **argv)
{
	uint32_t arch = argc > 2 ? seccomp_arch_resolve_name(argv[2]) : seccomp_arch_native();
	const struct table *table = argc > 1 ? NULL : &tables[0];
	static struct prog prog;

	for (size_t i = 0; !table && i < ARRAY_LEN(tables); i++)
		if (strcmp(tables[i].name, argv[1]) == 0)
			table = &tables[i];
	if (!table)
		die("no such table; say guest, zygote, forked, bare, server or egress");
	if (arch == 0 || !(arch & __AUDIT_ARCH_LE))
		die("cannot compile for %s", argc > 2 ? argv[2] : "this machine");
	read_table(table, arch);
	prog_build(&prog, arch);
	for (uint32_t nr = 0; nr < CALLS_MAX; nr++)
		proof_from(&(struct proof){ &prog, arch, nr, { 0 } }, 0);
	print_file(&prog, table);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
