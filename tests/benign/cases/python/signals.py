# Handlers, alarms, interval timers, ignoring, KeyboardInterrupt.
import os
import signal
import time

seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(signal.Signals(number).name))
for _ in range(3):
    os.kill(os.getpid(), signal.SIGUSR1)
print(seen)
signal.signal(signal.SIGALRM, lambda number, frame: seen.append("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
while seen.count("alarm") < 3:
    signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
print(seen.count("alarm") >= 3)
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
os.kill(os.getpid(), signal.SIGUSR2)
try:
    signal.raise_signal(signal.SIGINT)
    time.sleep(1)
except KeyboardInterrupt:
    print("interrupted")


class Timeout(Exception):
    pass


def expire(number, frame):
    raise Timeout


signal.signal(signal.SIGALRM, expire)
signal.setitimer(signal.ITIMER_REAL, 0.02)
try:
    while True:
        pass
except Timeout:
    print("loop broken")
print(signal.strsignal(signal.SIGSEGV), signal.getsignal(signal.SIGPIPE))
