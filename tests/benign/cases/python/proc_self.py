# What programs read of themselves and of the machine under /proc.
import os
import re

status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
print(status["Name"].strip(), int(status["Pid"]) == os.getpid(), int(status["VmRSS"].split()[0]) > 1000)
print(open("/proc/self/comm").read().strip(), open("/proc/self/cmdline", "rb").read().count(b"\0"))
print(os.readlink("/proc/self/cwd") == os.getcwd(), os.path.basename(os.readlink("/proc/self/exe")))
print(sorted(os.listdir("/proc/self/fd"), key=int)[:3], os.path.samefile("/proc/self/fd/1", "/dev/stdout"))
print("[stack]" in open("/proc/self/maps").read(), b"HOME=" in open("/proc/self/environ", "rb").read())
memory = dict(re.findall(r"(\w+):\s+(\d+) kB", open("/proc/meminfo").read()))
print(int(memory["MemTotal"]) > int(memory["MemFree"]) > 0)
print(open("/proc/cpuinfo").read().count("processor") >= 1, "cpu " in open("/proc/stat").read())
print(len(open("/proc/loadavg").read().split()), float(open("/proc/uptime").read().split()[0]) > 0)
print(open("/proc/sys/kernel/ostype").read().strip(), int(open("/proc/sys/kernel/pid_max").read()) > 1000)
print(str(os.getpid()) in os.listdir("/proc"), "tmpfs" in open("/proc/filesystems").read())
print(open("/proc/self/limits").readline().split()[:2], len(os.listdir("/proc/self/task")))
print(os.path.exists("/proc/self/mountinfo"), open("/proc/version").read().startswith("Linux version"))
