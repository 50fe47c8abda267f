# The shell's own complaints, and set -e.
nonexistent_command
(set -u; echo "$undefined")
set -e
echo "about to fail"
false
echo "never printed"
