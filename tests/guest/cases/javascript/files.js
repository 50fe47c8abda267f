const fs = require('fs')
fs.writeFileSync('out.txt', 'data'); console.log(fs.readdirSync('.').sort(), fs.readFileSync('a/b.txt', 'utf8'))
fs.promises.readFile('a/b.txt').then((b) => console.log(b.length))
fs.createWriteStream('stream.txt').write('unflushed')
