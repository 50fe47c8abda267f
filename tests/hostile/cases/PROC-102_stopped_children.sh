# hostile-test
# id: PROC-102
# title: bash: stopped children that ignore signals
# class: process-survive
# lang: bash
# expect: ok
# severity: high
# limits: {"wall_s": 8}
# checks: {"result": {"exit_code": 3, "wall_ms_max": 3500}, "after": {"no_survivors_s": 2}, "next_run_ok": true}
# bounds: 9 processes, 30 s
# why: a stopped process notices no polite signal
E=""; esc() { E="$E | $*"; }
done_() { if [ -n "$E" ]; then echo "ESCAPED:$E"; else echo "CONTAINED: $1"; fi; }
for i in 1 2 3 4 5 6 7 8; do ( trap '' TERM HUP INT; kill -STOP $BASHPID; sleep 30 ) & done
( setsid bash -c 'kill -STOP $$; sleep 30' & ) 
sleep 0.3
echo "DONE: stopped"
exit 3
