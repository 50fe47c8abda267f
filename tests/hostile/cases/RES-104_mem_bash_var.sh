# hostile-test
# id: RES-104
# title: bash: a variable of 2 GB
# class: resource-memory
# lang: bash
# expect: memory|contained|killed
# severity: high
# limits: {"memory_mb": 256, "wall_s": 10}
# checks: {"result": {"status_any": ["memory", "exited"]}, "next_run_ok": true}
# bounds: 2 GB
# why: the interpreter dies of a refused allocation, and has nobody left to say so
E=""; esc() { E="$E | $*"; }
done_() { if [ -n "$E" ]; then echo "ESCAPED:$E"; else echo "CONTAINED: $1"; fi; }
x=$(head -c 1000000 /dev/zero | tr '\0' y); for i in 1 2 3 4 5 6 7 8 9 10 11; do x="$x$x"; done; echo "ESCAPED: ${#x}"
