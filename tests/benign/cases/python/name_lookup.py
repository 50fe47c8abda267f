# Names that every machine knows without a network.
import socket

print(socket.gethostbyname("127.0.0.1"))
for info in sorted(socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)):
    print(info[0].name, info[1].name, info[4])
print(("127.0.0.1", 8080) in [i[4] for i in socket.getaddrinfo("127.0.0.1", 8080)])
print(socket.inet_pton(socket.AF_INET6, "::1"), socket.inet_ntoa(b"\x7f\0\0\1"))
print(socket.htons(80), socket.ntohl(1))
print(len(socket.gethostname()) > 0)
try:
    socket.getaddrinfo("not a host", None, flags=socket.AI_NUMERICHOST)
except socket.gaierror as error:
    print(error.errno == socket.EAI_NONAME)
