trap('USR1') { puts 'usr1' }
Process.kill(:USR1, $$)
sleep 0.05
trap('EXIT') { puts 'exit' }
puts 'end'
