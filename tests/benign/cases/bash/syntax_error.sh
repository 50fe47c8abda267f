# The shell reads as far as it can.
echo "first line runs"
if true; then
	echo "never closed"
