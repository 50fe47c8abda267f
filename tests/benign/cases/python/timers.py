# Clocks that advance, sleeping that lasts, a scheduler that keeps order.
import sched
import select
import time

start = time.monotonic()
time.sleep(0.05)
print(time.monotonic() - start >= 0.05, time.perf_counter_ns() > 0, time.time() > 1.6e9)
scheduler = sched.scheduler(time.monotonic, time.sleep)
for delay, name in ((0.03, "third"), (0.01, "first"), (0.02, "second")):
    scheduler.enter(delay, 1, print, (name,))
scheduler.run()
cpu = time.process_time()
while time.process_time() - cpu < 0.03:
    sum(range(1000))
print(time.thread_time() > 0)
start = time.monotonic()
select.select([], [], [], 0.02)
print(time.monotonic() - start >= 0.02)
print(time.clock_gettime(time.CLOCK_BOOTTIME) > 0, time.clock_gettime(time.CLOCK_REALTIME) > 0)
