import assert from 'node:assert/strict';
import { test } from 'node:test';
import { machineTargets, machineWord } from './machine-target.ts';

const texts = (word: string, given?: string): string[] =>
  machineTargets(word, { given, ofContext: 'ctx' }).map(({ namespace, name }) => `${namespace}/${name}`);

// S-366: `console` takes NAME, `vm/NAME`, `vmi/NAME` and NAME.NAMESPACE, in the context's namespace or that of `-n`,
//   and says of a stopped machine that it is stopped; `drain` takes `node/NAME`.
test('machineTargets() reads each form of a name', () => {
  for (const [word, given, expected] of [
    ['a', undefined, ['ctx/a']],
    ['a', 'n', ['n/a']],
    ['vm/a', undefined, ['ctx/a']],
    ['vmi/a', undefined, ['ctx/a']],
    ['virtualmachines.kubevirt.io/a', undefined, ['ctx/a']],
    ['a.b', undefined, ['ctx/a.b', 'b/a']],
    ['vmi/a.b.c', undefined, ['ctx/a.b.c', 'c/a.b']],
    ['a.b', 'n', ['n/a.b']],
  ] as const)
    assert.deepEqual(texts(word, given), expected, word);
  for (const word of ['pod/a', 'vm/', 'vm/a/b', '/a']) assert.throws(() => texts(word), /a machine is named/, word);
});

// S-1313: Each command about one machine takes `vm NAME` as well as `vm/NAME`, `NAME` and `NAME.NAMESPACE`; `delete`,
//   `undelete`, `bin empty` and `protect status` suggest the name that a wrong one may have meant.
test('machineWord() takes a kind as a word of its own', () => {
  assert.equal(machineWord(['a.b'], 'ip'), 'a.b');
  assert.equal(machineWord(['vm', 'a'], 'ip'), 'vm/a');
  assert.throws(() => machineWord([], 'bin empty'), /bin empty takes one machine \(see: coracle bin --help\)/);
  for (const words of [
    ['vm', 'a', 'b'],
    ['a', 'b'],
    ['pod', 'a'],
  ])
    assert.throws(() => machineWord(words, 'ip'), /ip takes one machine/);
  assert.throws(() => machineWord(['vm', 'vm/a'], 'ip'), /a machine is named/);
});
