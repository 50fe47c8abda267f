import fs from 'fs'
console.log(process.argv.slice(1), import.meta.url.split('/').pop())
