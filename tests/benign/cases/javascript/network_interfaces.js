// The list of network interfaces, as servers print it when they start.
const os = require('os');

const loopback = os.networkInterfaces().lo.find((address) => address.family === 'IPv4');
console.log(loopback.address, loopback.netmask, loopback.internal, loopback.cidr);
