# Traps for exit, errors and signals; waiting; background jobs; kill.
trap 'echo usr1' USR1
kill -USR1 $$
sleep 60 & child=$!
kill -TERM $child; wait $child; echo "child $?"
(exit 9) & wait $!; echo "status $?"
(trap 'echo sub exit' EXIT; trap 'echo term; exit 4' TERM; kill -TERM $BASHPID; sleep 5); echo "subshell $?"
pids=()
for n in 3 1 2; do (sleep "0.0$n"; exit "$n") & pids+=($!); done
for pid in "${pids[@]}"; do wait "$pid"; echo "job $?"; done
trap '' INT; kill -INT $$; echo "ignored"; trap - INT
fail() { return 5; }
(set -e; trap 'echo "ERR at $BASH_COMMAND"' ERR; fail; echo never); echo "set -e $?"
timeout 0.1 sleep 30; echo "timeout $?"
{ bash -c 'kill -9 $$'; } 2> /dev/null; echo "killed $?"
bash -c 'trap "" PIPE; sleep 0.05; echo x' 2> /dev/null | true; echo "pipe ${PIPESTATUS[0]}"
(set -u; echo "$undefined_name") 2> /dev/null; echo "set -u $?"
trap 'echo "exit trap $?"' EXIT
exit 6
