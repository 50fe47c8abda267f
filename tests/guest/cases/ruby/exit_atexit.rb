at_exit { puts 'first' }
at_exit { raise 'in at_exit' }
at_exit { exit 5 }
at_exit { puts 'last registered', caller.inspect }
exit 2
