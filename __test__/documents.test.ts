// What README and index.d.ts say has to be what the addon does.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from 'vitest';

const require = createRequire(import.meta.url);
const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const codes: string[] = require('../binding.js').errorCodes();

it('types exactly the codes that the addon knows', () => {
  const union = /export type CreateosErrorCode =([^;]*);/u.exec(read('../index.d.ts'))?.[1] ?? '';
  const typed = [...union.matchAll(/"(?<code>\w+)"/gu)].map((match) => match.groups?.['code']);
  expect(typed).toEqual(codes);
});

it('documents exactly the codes that the addon knows', () => {
  const table = /<!-- codes -->(?<table>.*)<!-- \/codes -->/su.exec(read('../README.md'))?.[1] ?? '';
  const documented = [...table.matchAll(/^\| `(?<code>ERR_\w+)`/gmu)].map((match) => match[1]);
  expect(documented).toEqual(codes);
});

it('has a type for every export, and an export for every type of a value', () => {
  const declared = [...read('../index.d.ts').matchAll(/^export (?:class|function) (\w+)/gmu)];
  const exported = Object.keys(require('../index.js'));
  // A function with overloads is declared once for each.
  const names = new Set(declared.map((match) => match[1]));
  expect([...names].toSorted()).toEqual(exported.toSorted());
});

it('shows the swap of a plugin as the code that its test runs', () => {
  const section = /^## Swapping a plugin's lease logic\n(.*?)^## /msu.exec(read('../README.md'))?.[1] ?? '';
  const blocks = [...section.matchAll(/^```ts\n(.*?)^```$/gmsu)].map((match) => match[1]);
  const marked = (name: string) => {
    const file = read(`./migration/${name}.ts`);
    return new RegExp(`^// readme:${name}\n(.*?)^// readme:end$`, 'msu').exec(file)?.[1];
  };
  expect(blocks).toEqual([marked('before'), marked('after')]);
  for (const line of blocks.join('').split('\n')) expect(line.length).toBeLessThanOrEqual(100);
});
