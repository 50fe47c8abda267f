# Network redirections of the shell, on loopback, against a server in another language.
coproc SERVER { /usr/bin/python3 -u -c '
import socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1])
for _ in range(2):
    connection, _ = listener.accept()
    connection.sendall(b"echo: " + connection.recv(100))
    connection.close()
'; }
server=$SERVER_PID
read -r port <&"${SERVER[0]}"
for word in first second; do
	exec 7<> "/dev/tcp/127.0.0.1/$port"
	echo "$word" >&7
	cat <&7
	exec 7>&-
done
wait "$server"
echo "server left with $?"
(exec 8<> "/dev/tcp/127.0.0.1/$port") 2> /dev/null || echo "refused"
