END { puts 'END' }
BEGIN { puts 'BEGIN' }
puts 'middle'
at_exit { puts 'at_exit' }
