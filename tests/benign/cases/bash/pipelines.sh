# Pipelines of the usual tools, exit statuses, pipefail.
seq 1 1000 | awk '{ s += $1; if ($1 % 7 == 0) n++ } END { print s, n }'
printf '%s\n' pear apple fig apple kiwi fig apple | sort | uniq -c | sort -k1,1nr -k2 | awk '{ print $2 "=" $1 }'
echo "the quick brown fox" | tr ' ' '\n' | rev | sort -r | paste -sd, -
seq 5 | sed -n '2,4p;$s/5/last/p' | tac | nl -w2 -s': '
false | true; echo "status $? ${PIPESTATUS[*]}"
true | false | true; echo "${PIPESTATUS[@]}"
set -o pipefail; exit 3 | cat; echo "pipefail $?"
yes no | head -n 3 | cat -A
echo one two three | while read -r first rest; do echo "$rest / $first"; done
seq 1 20 | xargs -n 6 echo row
seq 1 12 | xargs -P 3 -I{} sh -c 'echo $(({} * {}))' | sort -n | tr '\n' ' '; echo
echo data | tee copy.txt | wc -c; cat copy.txt
diff <(seq 1 5) <(seq 2 6); echo "diff $?"
comm -12 <(seq 1 2 9 | sort) <(seq 1 3 10 | sort) | paste -sd' '
cut -d: -f2 <<< "a:b:c"; join <(printf '1 x\n2 y\n') <(printf '1 p\n2 q\n')
seq 3 | (read -r a; read -r b; echo "$((a + b))"; cat)
