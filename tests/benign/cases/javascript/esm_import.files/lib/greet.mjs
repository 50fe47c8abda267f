import { readFileSync } from 'node:fs';

export const names = ['Ada', 'Bob'];
export const nested = await Promise.resolve(readFileSync(new URL('./data.json', import.meta.url)).length);
export default (name) => `hello, ${name}`;
