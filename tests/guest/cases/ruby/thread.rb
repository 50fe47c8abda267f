3.times.map { |i| Thread.new { i * 2 } }.each { |t| p t.value }
p Thread.list.size, Thread.main == Thread.current, Thread.main.name
Thread.new { sleep 10 }
puts 'end'
