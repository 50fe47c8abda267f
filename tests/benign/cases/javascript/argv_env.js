// Arguments, environment, working directory, exit code.
console.log(process.argv.slice(2));
console.log(process.env.PATH, process.env.HOME, process.env.LANG, process.env.NO_SUCH);
console.log(require('path').basename(__filename), process.cwd() === __dirname, require.main === module);
process.on('exit', (code) => console.log('exit handler', code));
process.exitCode = 5;
