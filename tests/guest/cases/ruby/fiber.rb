f = Fiber.new { |x| Fiber.yield x + 1; :done }
p f.resume(1), f.resume
p Enumerator.new { |y| 3.times { |i| y << i } }.next
