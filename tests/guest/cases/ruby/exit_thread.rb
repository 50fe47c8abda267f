t = Thread.new { exit 6 }
t.join
puts 'never'
