# hostile-test
# id: OUT-102
# title: ruby: children hold the streams open after the end of their parent
# class: output-slow
# lang: ruby
# expect: ok|timeout
# severity: high
# limits: {"wall_s": 8}
# checks: {"result": {"exit_code": 4, "stdout_contains": "main over", "wall_ms_max": 3500}, "after": {"no_survivors_s": 2}, "next_run_ok": true}
# bounds: 20 s
# why: whoever reads to the end of the pipe waits for them
$stdout.sync = true
3.times { fork { Process.setsid; trap("TERM","IGNORE"); sleep 20; puts "late" } }
puts "DONE: main over"
exit! 4
