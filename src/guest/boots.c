#include "guest/boots.h"

/* By tools/embed, from the files of the same names. */
extern const char boot_guest_so[], boot_python[], boot_python_main[], boot_node[], boot_ruby[],
	boot_ruby_main[];
extern const size_t boot_guest_so_len, boot_python_len, boot_python_main_len, boot_node_len,
	boot_ruby_len, boot_ruby_main_len;

#define BOOT      "run/vial/boot/"
#define REHEARSAL "sandbox/" /* the default workspace, which a guest has one of its own over */

const struct boot_file boot_files[] = {
	{ NULL, BOOT "guest.so", boot_guest_so, &boot_guest_so_len },
	{ "python", BOOT "sitecustomize.py", boot_python, &boot_python_len },
	{ "python", REHEARSAL "main.py", boot_python_main, &boot_python_main_len },
	{ "javascript", BOOT "boot.js", boot_node, &boot_node_len },
	{ "ruby", BOOT "boot.rb", boot_ruby, &boot_ruby_len },
	{ "ruby", REHEARSAL "main.rb", boot_ruby_main, &boot_ruby_main_len },
	{ 0 },
};
