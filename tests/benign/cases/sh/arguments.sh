# Positional parameters and standard input.
echo "$# arguments"
for arg; do printf '[%s]' "$arg"; done; echo
while read -r key value; do echo "$value<-$key"; done
exit 9
