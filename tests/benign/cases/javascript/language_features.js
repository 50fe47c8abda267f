// Classes, generators, proxies, destructuring, tagged templates, weak references, regular expressions.
class Account {
  #balance = 0;
  static opened = 0;
  static { Account.opened = 100; }
  constructor(owner) { this.owner = owner; Account.opened++; }
  deposit(amount) { if (!(amount > 0)) throw new RangeError(`bad amount ${amount}`); this.#balance += amount; return this; }
  get balance() { return this.#balance; }
  *[Symbol.iterator]() { yield this.owner; yield this.#balance; }
  static isAccount(x) { return #balance in x; }
}
class Savings extends Account { toString() { return `${this.owner}: ${super.balance}`; } }
const account = new Savings('Ada').deposit(50);
console.log(`${account}`, [...account], Account.opened, Account.isAccount({}));
const { a, b: [first, ...rest], c = 'default' } = { a: 1, b: [2, 3, 4] };
console.log(a, first, rest, c, account?.missing?.deep ?? 'nothing');
const tag = (strings, ...values) => strings.raw.map((s, n) => s + (values[n] ?? '')).join('|');
console.log(tag`x${1}\n${2}y`);
const counted = new Proxy({}, { get: (_, name) => `no ${String(name)}`, has: () => true });
console.log(counted.anything, 'x' in counted, Reflect.ownKeys({ z: 1, 2: 1, 1: 1 }));
function* fibonacci() { let [x, y] = [0, 1]; for (;;) { yield x; [x, y] = [y, x + y]; } }
for (const n of fibonacci()) { if (n > 50) break; process.stdout.write(`${n} `); }
console.log();
console.log('2024-03-01'.replace(/(?<y>\d+)-(?<m>\d+)-(?<d>\d+)/, '$<d>.$<m>.$<y>'), [...'a1b22'.matchAll(/\d+/g)].map((m) => m.index));
console.log(/\p{Lu}\p{Ll}+/u.exec('x Žár')[0], 'aXbX'.replaceAll('X', '-'), [3, 1, 2].at(-1), Object.groupBy?.name ?? 'older');
label: for (const x of [1, 2, 3]) for (const y of [1, 2, 3]) { if (x * y === 4) { console.log(x, y); break label; } }
try { account.deposit(-1); } catch ({ name, message }) { console.log(name, message); } finally { console.log('finally'); }
console.log(new WeakRef(account).deref() === account, typeof globalThis, [1, [2, [3, [4]]]].flat(Infinity));
const deep = (n) => (n === 0 ? 0 : 1 + deep(n - 1));
console.log(deep(5000));
try { (function f() { f(); })(); } catch (error) { console.log(error.message); }
