t = Thread.new { raise 'in thread' }
t.join
