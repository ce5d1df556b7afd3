import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { membersOf, readObjectText, readText } from './notation.ts';

describe('readText()', () => {
  const cases: readonly (readonly [text: string, said: Record<string, unknown>])[] = [
    ['str', { kind: 'str', marks: {} }],
    ['str A name.', { kind: 'str', description: 'A name.', marks: {} }],
    [
      '[map:name]Disk;maxItems=256 Disks.',
      { kind: 'Disk', wrapper: '[map:name]', description: 'Disks.', marks: { maxItems: 256 } },
    ],
    ['{} Levels; by node.', { kind: '', wrapper: '{}', description: 'Levels; by node.', marks: {} }],
    ['str;is=|A|B;ts=Phase', { kind: 'str', values: ['', 'A', 'B'], ts: 'Phase', marks: {} }],
    [
      'str;enum=A|B;nullable X',
      { kind: 'str', values: ['A', 'B'], description: 'X', marks: { enum: ['A', 'B'], nullable: true } },
    ],
    ['str;pattern=^(0|1=)$ X', { kind: 'str', description: 'X', marks: { pattern: '^(0|1=)$' } }],
    ['bool;default=false;always X', { kind: 'bool', description: 'X', isAlwaysThere: true, marks: { default: false } }],
    ['any;open X', { kind: 'any', description: 'X', marks: { 'x-kubernetes-preserve-unknown-fields': true } }],
  ];
  for (const [text, said] of cases) it(text, () => assert.deepEqual(readText(text), { isAlwaysThere: false, ...said }));
});

it('an object has a text without a kind, and the members of the one it builds on before its own', () => {
  assert.equal(readObjectText('A b.').description, 'A b.');
  assert.deepEqual(readObjectText(';nullable A b.').marks, { nullable: true });
  assert.deepEqual(
    membersOf({ '+': 'Base', 'b!': 'int' }, () => ({ '': 'Base.', a: 'str' })),
    [
      ['a', 'str', false],
      ['b', 'int', true],
    ],
  );
});
