// Text beyond ASCII, string operations by code unit and by code point.
console.log('hi');
console.log('Grüße, мир, 世界, 🧪', '🧪'.length, [...'🧪é'].length);
console.log('é'.normalize('NFD').length, 'straße'.toUpperCase(), 'ab'.padStart(5, '·'), 'x'.codePointAt(0));
console.log('%s is %d years and %i, %j %o', 'Ada', 36.5, 36.5, { a: 1 }, [1, { b: 2 }]);
console.log([1, 'two', { three: [3, { deep: { deeper: { deepest: 1 } } }] }, null, undefined, () => 1, Symbol('s'), 10n]);
console.table([{ a: 1, b: 'x' }, { a: 2, b: 'y' }]);
console.error('to stderr', new Map([['k', new Set([1, 2])]]));
