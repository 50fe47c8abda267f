let all = ''
process.stdin.setEncoding('utf8').on('data', (d) => { all += d }).on('end', () => console.log(JSON.stringify(all)))
