# fork, exec, pipes, wait statuses, Open3, signals.
require "open3"

reader, writer = IO.pipe
pid = fork { reader.close; writer.puts "child speaking"; exit!(7) }
writer.close
p reader.read, Process.wait2(pid)[1].exitstatus
p `echo shell $((6*7))`, $?.success?, system("exit 3"), $?.exitstatus, system("no-such-program-here")
out, err, status = Open3.capture3("sort -r; echo warn >&2", stdin_data: "a\nc\nb\n")
p out, err, status.exitstatus
pid = spawn("cat > spawned", in: IO.pipe.tap { |r, w| w << "by spawn"; w.close }[0])
Process.wait(pid)
p File.read("spawned")
IO.popen(["tr", "a-z", "A-Z"], "r+") { |io| io << "popen"; io.close_write; p io.read }
pid = fork { sleep 60 }
Process.kill(:TERM, pid)
p Process.wait2(pid)[1].termsig
heard = []
trap(:USR1) { heard << :usr1 }
Process.kill(:USR1, Process.pid)
sleep 0.01 until heard.any?
p heard, Process.clock_gettime(Process::CLOCK_MONOTONIC) > 0
daemon = fork { Process.setsid; exit!(Process.getpgrp == Process.pid ? 0 : 1) }
p Process.wait2(daemon)[1].exitstatus
$stdout.flush
exec("sh", "-c", "echo replaced by $0; exit 12", "exec")
