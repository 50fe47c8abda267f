import os from 'os'
console.log(typeof os.cpus, import.meta.url.split('/').pop())
