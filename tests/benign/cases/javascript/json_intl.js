// JSON corner cases, numbers, dates and international formats.
console.log(JSON.stringify({ b: 1, a: [undefined, NaN, new Date(0), Infinity], f() {}, n: -0 }, null, 2));
console.log(JSON.parse('{"x":[1,2,{"y":null}]}', (k, v) => (typeof v === 'number' ? v * 10 : v)));
for (const bad of ['{', '[1,]', 'nul', '"\\x"']) {
  try { JSON.parse(bad); } catch (error) { console.log(error.name, error.message); }
}
console.log(0.1 + 0.2, 1e21, (25).toString(36), (1234.5678).toFixed(2), parseInt('12px'), Number(''), 2n ** 100n, 5 % -3, -5 >>> 28);
const amount = 1234567.891;
for (const locale of ['en-US', 'de-DE', 'cs-CZ', 'hi-IN', 'ja-JP']) {
  console.log(locale, new Intl.NumberFormat(locale, { style: 'currency', currency: 'EUR' }).format(amount));
  console.log(new Intl.DateTimeFormat(locale, { dateStyle: 'full', timeStyle: 'short', timeZone: 'Europe/Prague' }).format(new Date(0)));
}
console.log(['z', 'č', 'c', 'ž', 'a'].sort(new Intl.Collator('cs').compare), new Intl.PluralRules('cs').select(3));
console.log(new Date(Date.UTC(2024, 1, 29, 12)).toISOString(), new Date('2024-03-10T10:00:00+05:30').getTime(), new Date(NaN).getTime());
