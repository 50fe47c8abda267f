# Many processes at once, a queue, a lock, sessions, niceness, a job left behind.
mkfifo queue
exec 5<> queue
for n in 1 2 3 4 5 6 7 8; do echo "job $n: $((n * n * n))" >&5 & done
wait
for n in 1 2 3 4 5 6 7 8; do read -r line <&5; echo "$line"; done | sort
exec 5>&-
echo 0 > count
for n in {1..10}; do (flock 9; read -r c < count; echo $((c + 1)) > count) 9> lock & done
wait; cat count
(sleep 5 > /dev/null 2>&1 &); echo "left behind"
sleep 100 & kill $!; wait $! 2> /dev/null; echo "killed $?"
setsid -w sh -c 'echo from another session'
nohup sh -c 'echo nohup' 2> /dev/null; nice -n 5 sh -c 'echo nice'
ulimit -S -n 100; ulimit -n
seq 1 6 | xargs -P 6 -n 1 sh -c 'sleep 0.0$0; echo $0' | sort | paste -sd' '
echo end
