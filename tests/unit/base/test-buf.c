#include "base/buf.h"
#include "test.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

TEST(an_empty_buffer_is_an_empty_string)
{
	auto_buf struct buf b = BUF_INIT(10);

	CHECK_STR(buf_str(&b), "");
	CHECK(b.data == NULL);
	buf_add(&b, NULL, 0);
	CHECK_INT(b.len, 0);
	CHECK_STR(buf_str(&b), "");
}

TEST(a_buffer_grows_byte_by_byte)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);

	for (int i = 0; i < 5000; i++)
		buf_add_char(&b, (char)('a' + i % 26));
	CHECK_INT(b.len, 5000);
	CHECK_INT(strlen(b.data), 5000);
	for (int i = 0; i < 5000; i++)
		CHECK(b.data[i] == (char)('a' + i % 26));
	CHECK_INT(b.dropped, 0);
}

TEST(a_buffer_keeps_what_fits_and_counts_the_rest)
{
	auto_buf struct buf b = BUF_INIT(8);

	buf_add_str(&b, "hello");
	buf_add_str(&b, " world");
	CHECK_STR(buf_str(&b), "hello wo");
	CHECK_INT(b.len, 8);
	CHECK_INT(b.dropped, 3);
	buf_add_str(&b, "more");
	CHECK_INT(b.len, 8);
	CHECK_INT(b.dropped, 7);
}

TEST(a_buffer_never_allocates_far_beyond_its_maximum)
{
	auto_buf struct buf b = BUF_INIT(1000);

	for (int i = 0; i < 2000; i++)
		buf_add_char(&b, 'x');
	CHECK_INT(b.len, 1000);
	CHECK_INT(b.dropped, 1000);
	CHECK(b.cap <= 1001);
}

TEST(a_buffer_without_room_keeps_nothing)
{
	auto_buf struct buf b = BUF_INIT(0);

	buf_add_str(&b, "abc");
	CHECK_INT(b.len, 0);
	CHECK_INT(b.dropped, 3);
	CHECK_STR(buf_str(&b), "");
}

TEST(a_buffer_holds_nul_bytes_and_ends_in_one)
{
	auto_buf struct buf b = BUF_INIT(100);

	buf_add(&b, "a\0b", 3);
	CHECK_INT(b.len, 3);
	CHECK(memcmp(b.data, "a\0b", 4) == 0);
}

#ifndef VIAL_SANITIZED
/*
 * Address space is what is scarce here.  (A sanitizer's own allocator would abort.)
 */
TEST(an_allocation_that_fails_counts_as_lack_of_room)
{
	enum { HUGE_LEN = 1 << 30 };
	auto_buf struct buf b = BUF_INIT(SIZE_MAX / 2);
	struct rlimit old, tight = { 0 };

	buf_add_str(&b, "kept");
	char *source =
		mmap(NULL, HUGE_LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(source != MAP_FAILED);
	CHECK(getrlimit(RLIMIT_AS, &old) == 0);
	tight.rlim_max = old.rlim_max;
	CHECK(setrlimit(RLIMIT_AS, &tight) == 0);
	buf_add(&b, source, HUGE_LEN);
	CHECK(setrlimit(RLIMIT_AS, &old) == 0);
	(void)munmap(source, HUGE_LEN);

	CHECK_INT(b.len, b.cap - 1);
	CHECK_INT(b.len + b.dropped, HUGE_LEN + 4);
	CHECK(memcmp(b.data, "kept\0", 5) == 0);
}
#endif

TEST(printf_appends_and_is_cut_like_the_rest)
{
	auto_buf struct buf b = BUF_INIT(12);

	buf_printf(&b, "%d-%s", 42, "abc");
	CHECK_STR(buf_str(&b), "42-abc");
	buf_printf(&b, "%0100d", 7);
	CHECK_STR(buf_str(&b), "42-abc000000");
	CHECK_INT(b.dropped, 94);
}

TEST(reset_empties_and_keeps_the_memory)
{
	auto_buf struct buf b = BUF_INIT(4);

	buf_add_str(&b, "abcdef");
	char *data = b.data;
	buf_reset(&b);
	CHECK_STR(buf_str(&b), "");
	CHECK_INT(b.dropped, 0);
	CHECK(b.data == data);
	buf_add_str(&b, "xy");
	CHECK_STR(buf_str(&b), "xy");
}

TEST(done_frees_and_leaves_a_usable_buffer)
{
	struct buf b = BUF_INIT(4);

	buf_add_str(&b, "abcdef");
	buf_done(&b);
	CHECK(b.data == NULL);
	CHECK_INT(b.max, 4);
	buf_add_str(&b, "xyzzy");
	CHECK_STR(buf_str(&b), "xyzz");
	buf_done(&b);
	buf_done(&b);
}

static int file_of(size_t len)
{
	auto_close int fd = memfd_create("buf", MFD_CLOEXEC);

	for (size_t i = 0; fd >= 0 && i < len; i++)
		if (write(fd, "y", 1) != 1)
			return -1;
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return take_fd(&fd);
}

TEST(a_file_that_just_fits_is_read_whole)
{
	auto_buf struct buf b = BUF_INIT(20000);
	auto_close int fd = file_of(20000);
	struct err e;

	CHECK(fd >= 0);
	CHECK_OK(buf_add_fd(&b, fd, &e));
	CHECK_INT(b.len, 20000);
}

TEST(a_file_one_byte_too_long_is_refused)
{
	auto_buf struct buf b = BUF_INIT(19999);
	auto_close int fd = file_of(20000);
	struct err e;

	CHECK(fd >= 0);
	CHECK(buf_add_fd(&b, fd, &e) == -1);
	CHECK(e.code == ERR_LIMIT);
	CHECK_STR(e.msg, "larger than 19999 bytes");
}

TEST(a_file_that_is_not_there_is_named)
{
	auto_buf struct buf b = BUF_INIT(100);
	struct err e;

	CHECK(buf_add_file(&b, AT_FDCWD, "/nonexistent/file", &e) == -1);
	CHECK(e.code == ERR_SYS);
	CHECK_INT(e.sys, ENOENT);
	CHECK_STR(e.msg, "/nonexistent/file: No such file or directory");
}

TEST(a_directory_is_not_read_as_a_file)
{
	auto_buf struct buf b = BUF_INIT(100);
	struct err e;

	CHECK(buf_add_file(&b, AT_FDCWD, "/", &e) == -1);
	CHECK_INT(e.sys, EISDIR);
	CHECK_STR(e.msg, "/: read: Is a directory");
}

TEST(a_file_of_proc_is_read_whole_though_its_size_says_zero)
{
	auto_buf struct buf b = BUF_INIT(1 << 20);
	struct err e;

	CHECK_OK(buf_add_file(&b, AT_FDCWD, "/proc/self/status", &e));
	CHECK(strstr(buf_str(&b), "\nPid:") != NULL);
}
