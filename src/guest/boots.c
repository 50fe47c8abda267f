#include "guest/boots.h"

/* By tools/embed, from the files of the same names. */
extern const char boot_guest_so[], boot_python[];
extern const size_t boot_guest_so_len, boot_python_len;

#define BOOT "run/vial/boot/"

const struct boot_file boot_files[] = {
	{ NULL, BOOT "guest.so", boot_guest_so, &boot_guest_so_len },
	{ "python", BOOT "sitecustomize.py", boot_python, &boot_python_len },
	{ 0 },
};
