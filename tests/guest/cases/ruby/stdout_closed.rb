puts 'a'
$stdout.close
puts 'b'
