# Arguments, ARGF-free standard input, environment, exit code.
p ARGV
sums = Hash.new(0)
$stdin.each_line { |line| name, value = line.chomp.split(":"); sums[name] += Integer(value, exception: false) || 0 }
p sums, $stdin.eof?, ENV.values_at("HOME", "LANG", "NONE"), $PROGRAM_NAME == __FILE__, $stdout.tty?
warn "a warning"
$stderr.puts "end"
exit 11
