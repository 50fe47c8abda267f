# A filter on standard input with arguments.
prefix=$1 width=$2
count=0
while IFS= read -r line || [[ -n $line ]]; do
	((count++))
	printf '%s%*s|%s\n' "$prefix" "$width" "$count" "${line//[[:space:]]/·}"
done
echo "lines: $count" >&2
((count == 5))
