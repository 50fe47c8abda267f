# Errors of the shell itself on stderr, and the last command's exit code.
echo "before"
no_such_command --flag
cat /no/such/file
cd /no/such/directory
echo $((1 / 0))
[ 1 -eq one ]
echo "${missing:?is not set}"
echo "never reached"
