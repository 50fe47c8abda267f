// TCP and unix sockets, datagrams, name lookup.
const dgram = require('dgram');
const dns = require('dns');
const net = require('net');
const { once } = require('events');

const echo = async (where) => {
  const server = net.createServer((socket) => socket.on('data', (d) => socket.end(d.toString().toUpperCase())));
  server.listen(where);
  await once(server, 'listening');
  const client = net.connect(where.path ? where : server.address());
  client.write(`to ${where.path ?? 'tcp'}`);
  let text = '';
  for await (const chunk of client) text += chunk;
  server.close();
  return text;
};

(async () => {
  console.log(await echo({ host: '127.0.0.1', port: 0 }), await echo({ path: 'door.sock' }));
  const socket = dgram.createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  socket.send('datagram', socket.address().port, '127.0.0.1');
  const [message] = await once(socket, 'message');
  console.log(message.toString());
  socket.close();
  console.log((await dns.promises.lookup('127.0.0.1', { family: 4 })).address);
  const refused = net.connect(1, '127.0.0.1');
  const [error] = await once(refused, 'error').catch((e) => [e]);
  console.log(error.code);
})();
