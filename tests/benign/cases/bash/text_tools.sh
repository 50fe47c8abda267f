# awk, sed, grep, sort and friends on a file that came along.
awk -F, 'NR > 1 { sum[$2] += $3; n[$2]++ } END { for (k in sum) printf "%s %.2f %d\n", k, sum[k] / n[k], n[k] }' staff.csv | sort
sed -E 's/^([^,]+),([^,]+),(.*)$/\2: \1 (\3)/; 1d' staff.csv | head -n 3
grep -c '^[A-M]' staff.csv; grep -oP '\d+(?=\.)' staff.csv | sort -n | tail -n 2; grep -vni eng staff.csv | head -n 2
sort -t, -k3,3gr -k1,1 staff.csv | cut -d, -f1 | head -n 3 | paste -sd' '
awk 'BEGIN { while ((getline line < "staff.csv") > 0) n += length(line); print n; exit }'
sed -n '/Bob/,/Dee/{=;p}' staff.csv
tr -cd '[:alpha:]' < staff.csv | fold -w 1 | sort | uniq -c | sort -rn | head -n 1 | tr -s ' '
head -c 10 staff.csv | od -An -tx1; wc < staff.csv | tr -s ' '
column -t -s, staff.csv 2> /dev/null | head -n 2 || echo "no column"
printf 'b 10\na 9\nc 100\n' | sort -k2n | awk '{ print NR, $1 }'
echo "ŽLUŤ kůň" | sed 's/ů/u/' | wc -m
expand -t 4 <<< $'a\tb' ; fmt -w 20 <<< "some words that are to be wrapped at twenty columns"
split -l 2 staff.csv part. && ls part.* | tr '\n' ' ' && wc -l < part.aa
md5sum staff.csv; sha256sum < staff.csv; cksum staff.csv
date -u -d @86400 +%F; TZ=Asia/Tokyo date -d '2024-02-29 12:00 UTC' '+%F %T %Z'
expr 7 \* 6; basename /a/b.txt .txt; dirname /a/b.txt; seq -s+ 5; factor 360
numfmt --to=iec 1048576; base64 <<< "text"; printf '%s\0' x y | xargs -0 -n1 echo
