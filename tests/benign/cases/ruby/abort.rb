# abort prints its message and exits with 1; ensure and at_exit still run.
at_exit { puts "at_exit #{$!.class}" }
begin
  puts "working"
  abort "cannot go on"
ensure
  puts "ensured"
end
