# Questions to the system that libraries ask when they are imported.
import os
import platform
import resource
import sys
import sysconfig
import time

print(os.cpu_count() >= 1, len(os.sched_getaffinity(0)) >= 1, os.getloadavg()[0] >= 0)
print(os.uname().sysname, platform.machine() == os.uname().machine, platform.libc_ver()[0])
print(os.sysconf("SC_PAGESIZE"), os.sysconf("SC_CLK_TCK"), os.sysconf("SC_NPROCESSORS_ONLN") >= 1)
for name in ("NOFILE", "STACK", "CORE", "FSIZE", "NPROC", "AS", "DATA", "CPU"):
    soft, hard = resource.getrlimit(getattr(resource, "RLIMIT_" + name))
    print(name, soft == hard or hard == resource.RLIM_INFINITY or 0 <= soft <= hard)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], soft >= 256)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_maxrss > 1000, usage.ru_utime >= 0, os.getpriority(os.PRIO_PROCESS, 0))
print(os.nice(1) - os.nice(0), os.getpgid(0) > 0)
print(sys.platform, sys.byteorder, sys.maxsize, sys.flags.optimize, sys.implementation.name)
print(sysconfig.get_path("stdlib"), sys.version_info[:2] >= (3, 9))
print(time.monotonic() > 0, time.process_time() < 60, time.clock_getres(time.CLOCK_MONOTONIC) < 0.1)
print(len(os.statvfs(".")) > 5, os.statvfs(".").f_bavail > 0)
print(os.getuid() == os.geteuid(), os.getgid() == os.getegid(), os.ctermid())
