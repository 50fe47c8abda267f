// The same in JavaScript, with arguments.
const names = process.argv.slice(2);
console.log(`hello ${names.length ? names.join(" and ") : "world"} from Node.js ${process.version}`);
