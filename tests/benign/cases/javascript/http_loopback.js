// An HTTP server and clients on loopback: plain, posted, parallel, fetch.
const http = require('http');

const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => { body += chunk; });
  request.on('end', () => {
    response.setHeader('content-type', 'application/json');
    response.statusCode = request.url === '/missing' ? 404 : 200;
    response.end(JSON.stringify({ method: request.method, url: request.url, length: body.length }));
  });
});
server.listen(0, '127.0.0.1', async () => {
  const { port } = server.address();
  const base = `http://127.0.0.1:${port}`;
  const get = (options, body) => new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, ...options }, async (response) => {
      let text = '';
      for await (const chunk of response) text += chunk;
      resolve([response.statusCode, text]);
    });
    request.on('error', reject);
    request.end(body);
  });
  console.log(await get({ path: '/hello' }), await get({ path: '/missing' }));
  console.log(await get({ path: '/post', method: 'POST' }, 'z'.repeat(100000)));
  console.log((await Promise.all([1, 2, 3, 4].map((n) => get({ path: `/${n}` })))).map(([, t]) => JSON.parse(t).url));
  console.log(await (await fetch(`${base}/fetched`)).json());
  server.close();
  server.closeAllConnections();
});
