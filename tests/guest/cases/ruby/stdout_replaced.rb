require 'stringio'
$stdout = StringIO.new
puts 'lost'
$stderr.puts $stdout.string
