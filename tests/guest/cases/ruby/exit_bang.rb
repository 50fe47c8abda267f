at_exit { puts 'never' }
$stdout.puts 'out'
$stdout.flush
exit! 9
