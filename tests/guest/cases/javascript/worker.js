const { Worker, isMainThread, workerData } = require('worker_threads')
if (isMainThread) { new Worker(__filename, { workerData: 1, argv: ['w'] }).on('message', (m) => console.log(m)).on('exit', (c) => console.log('exit', c)) } else { require('worker_threads').parentPort.postMessage([workerData, process.argv.slice(2), Object.keys(require.cache).length, process.env.NODE_OPTIONS]) }
