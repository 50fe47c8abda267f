# Background work, xargs, find, temporary files.
for n in 1 2 3; do (echo $((n * 10)) > "part$n") & done; wait; cat part1 part2 part3
dir=$(mktemp -d) && echo data > "$dir/x" && find "$dir" -type f | wc -l && rm -r "$dir"
echo 1 2 3 4 | xargs -n 2 echo pair
find . -name 'part*' | sort | xargs cat | paste -sd+ -
test "$(id -u)" -ge 0 && echo "somebody"; [ -n "$HOME" ] && echo "$HOME $PATH $LANG"
date -u -d '2000-01-01 + 59 days' +%d.%m.; expr length abcdef; sleep 0.01
ps -o comm= -p $$ > /dev/null 2>&1; echo "$(basename "$(readlink -f /bin/sh)")"
