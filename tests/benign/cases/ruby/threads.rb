# Threads, mutexes, queues, conditions, fibers, ractor-free concurrency.
require "timeout"

mutex, total = Mutex.new, 0
threads = 8.times.map { |n| Thread.new { 500.times { mutex.synchronize { total += n } }; Thread.current[:n] = n } }
p threads.map(&:value), total
queue, results = SizedQueue.new(2), Queue.new
producer = Thread.new { 5.times { |n| queue << n }; queue << nil }
consumer = Thread.new { while (n = queue.pop) do results << n * n end }
[producer, consumer].each(&:join)
p Array.new(results.size) { results.pop }
fiber = Fiber.new { |x| loop { x = Fiber.yield(x * 2) } }
p fiber.resume(1), fiber.resume(5)
broken = Thread.new { Thread.current.report_on_exception = false; raise ArgumentError, "inside" }
begin
  broken.join
rescue => e
  p e.class, e.message
end
begin
  Timeout.timeout(0.05) { sleep 10 }
rescue Timeout::Error
  puts "timed out"
end
ready, condition, flag = Mutex.new, ConditionVariable.new, false
waiter = Thread.new { ready.synchronize { condition.wait(ready) until flag; :woken } }
ready.synchronize { flag = true; condition.signal }
p waiter.value, Thread.list.size >= 1, Thread.main == Thread.current
