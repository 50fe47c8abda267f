# Indexed and associative arrays, slices, and expansion of every kind.
fruits=(apple "ripe pear" fig)
fruits+=(kiwi)
echo "${#fruits[@]} ${fruits[1]} ${fruits[-1]} ${!fruits[*]}"
for fruit in "${fruits[@]}"; do printf '<%s>' "$fruit"; done; echo
unset 'fruits[1]'
echo "${fruits[@]:1:2}" "${fruits[@]/#/fresh-}"
declare -A price=([pen]=2 [ink]=4 ["note pad"]=7)
for item in "${!price[@]}"; do echo "$item ${price[$item]}"; done | sort
total=0
for amount in "${price[@]}"; do ((total += amount)); done
echo "total $total" "${price[none]-missing}"
mapfile -t lines < <(printf '%s\n' one "two words" three)
echo "${#lines[@]}:${lines[1]}"
matrix=(1 2 3 4 5 6)
for ((row = 0; row < 2; row++)); do echo "${matrix[@]:row*3:3}"; done
read -ra words <<< "split  these   words"
echo "${#words[@]}" "${words[2]}"
IFS=, ; echo "${words[*]}"
declare -n alias=words
alias[0]=changed
echo "${words[0]}"
