# Here documents: expanded, literal, indented, fed to programs, nested.
name=world
cat << END
hello $name, $(echo nested) $((1 + 1))
  "quotes" stay, \$escaped too
END
cat << 'END'
literal $name $(not run) \n
END
	cat <<- END
	tabs are gone
		all of them
	END
bc_like=$(awk '{ print $1 * $2 }' << END
6 7
2 3.5
END
)
echo "$bc_like"
while IFS=: read -r key value; do echo "$key -> $value"; done << END
a:1
b:two:three
END
cat << ONE; cat << TWO
first
ONE
second
TWO
sh << 'SCRIPT'
for n in 1 2; do
	cat << INNER
inner $n
INNER
done
SCRIPT
cat << END | sort -r | head -n 1
apple
pear
END
