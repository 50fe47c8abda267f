puts 'before'
$stdout.flush
pid = fork { puts 'child'; exit 7 }
Process.wait(pid)
p $?.exitstatus
at_exit { puts "exit #{$$ == Process.pid}" }
