# TCP, UDP, unix sockets and HTTP on loopback.
require "net/http"
require "socket"

server = TCPServer.new("127.0.0.1", 0)
thread = Thread.new { 3.times { c = server.accept; c.puts c.gets.reverse; c.close } }
3.times { |n| TCPSocket.open("127.0.0.1", server.addr[1]) { |s| s.puts "client #{n}"; p s.read } }
thread.join
unix = UNIXServer.new("door")
thread = Thread.new { c = unix.accept; c.write c.read.upcase; c.close }
UNIXSocket.open("door") { |s| s << "knock"; s.close_write; p s.read }
thread.join
one, two = UDPSocket.new, UDPSocket.new
[one, two].each { |s| s.bind("127.0.0.1", 0) }
one.send("datagram", 0, "127.0.0.1", two.addr[1])
p two.recvfrom(100)[0]
a, b = UNIXSocket.pair
a.send_io(File.open(__FILE__))
p b.recv_io.gets
web = TCPServer.new("127.0.0.1", 0)
thread = Thread.new do
  c = web.accept
  path = c.gets.split[1]
  nil until c.gets.strip.empty?
  body = "you asked for #{path}"
  c.write "HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\nConnection: close\r\n\r\n#{body}"
  c.close
end
p Net::HTTP.new("127.0.0.1", web.addr[1], nil).start { |http| http.get("/page").body }
thread.join
begin
  TCPSocket.new("127.0.0.1", 1)
rescue Errno::ECONNREFUSED
  puts "refused"
end
p IO.select([a], nil, nil, 0), Socket.getaddrinfo("127.0.0.1", 80, :INET, :STREAM)[0][3]
