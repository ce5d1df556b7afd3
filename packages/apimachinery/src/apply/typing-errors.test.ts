import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '../schema/schema.ts';
import { builtinSchema } from '../types/builtin-types.ts';
import { mayBeUntypable, typingErrors } from './typing-errors.ts';

const text: Schema = { type: 'string' };
const ports = (properties: Record<string, Schema>, keys: string[]): Schema => ({
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': keys,
  items: { type: 'object', properties },
});
const set = (items: Schema): Schema => ({ type: 'array', 'x-kubernetes-list-type': 'set', items });
const kind = (spec: Record<string, Schema>): Schema => ({
  type: 'object',
  properties: { spec: { type: 'object', properties: spec } },
});

// S-266
// Compat Server-side apply, P1, yes: typing errors in the words of structured-merge-diff, with the JSON type of what was sent
test('typingErrors() says what structured-merge-diff says', () => {
  const two = { a: text, b: { type: 'integer' } } satisfies Record<string, Schema>;
  const defaulted = { a: text, b: { type: 'integer', default: 1 } } satisfies Record<string, Schema>;
  const open: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: text } };
  const within: Schema = { ...open, properties: { a: { type: 'object', properties: { b: text } } } };
  const cases: [name: string, spec: Record<string, Schema>, value: unknown, wanted: string[]][] = [
    ['all keys', { list: ports(two, ['a', 'b']) }, { list: [{ a: 'x', b: 1 }] }, []],
    ['one key of two is enough', { list: ports(two, ['a', 'b']) }, { list: [{ a: 'x' }, { b: 1 }] }, []],
    ['a key that is null is a key', { list: ports(two, ['a']) }, { list: [{ a: null }] }, []],
    ['a default is a key', { list: ports(defaulted, ['b']) }, { list: [{ a: 'x' }] }, []],
    [
      'no key at all ends the list',
      { list: ports(two, ['a', 'b']) },
      { list: [{}, { a: 1 }] },
      [
        '.spec.list: element 0: associative list with keys has an element that omits all key fields ["a" "b"] (and doesn\'t have default values for any key fields)',
      ],
    ],
    [
      'null',
      { list: ports(two, ['a']) },
      { list: [null] },
      ['.spec.list: element 0: associative list with keys may not have a null element'],
    ],
    [
      'no map',
      { list: ports(two, ['a']) },
      { list: ['x'] },
      ['.spec.list: element 0: associative list with keys may not have non-map elements'],
    ],
    [
      'twice, and what is below is looked at, too',
      { list: ports(two, ['a']) },
      { list: [{ a: 'x' }, { a: 'x', b: 'y' }] },
      [
        '.spec.list: duplicate entries for key [a="x"]',
        '.spec.list[a="x"].b: expected numeric (int or float), got string',
      ],
    ],
    ['a set', { set: set(text) }, { set: ['a', 'a'] }, ['.spec.set: duplicate entries for key [="a"]']],
    [
      'a set of maps',
      { set: set({ type: 'object' }) },
      { set: [{}] },
      ["...set: element 0: associative list without keys has an element that's a map type".replace('...', '.spec.')],
    ],
    [
      'a set of lists',
      { set: set({ type: 'array', items: text }) },
      { set: [[]] },
      ['.spec.set: element 0: not supported: associative list with lists as elements'],
    ],
    [
      'a set with null',
      { set: set(text) },
      { set: [null] },
      [
        "...set: element 0: associative list without keys has an element that's an explicit null".replace(
          '...',
          '.spec.',
        ),
      ],
    ],
    ['one undeclared field is enough', { a: text }, { x: 1, y: 2 }, ['.spec.x: field not declared in schema']],
    ['an open part takes all', { open }, { open: { b: 1 } }, []],
    ['and so does what is below it', { within }, { within: { a: { c: 1 } } }, []],
    ['a map without fields takes all', { free: { type: 'object' } }, { free: { a: { b: 1 } } }, []],
    ['a type-less part takes all', { any: { 'x-kubernetes-int-or-string': true } }, { any: { a: 1 } }, []],
    ['null fits everywhere', { list: ports(two, ['a']), a: text }, { list: null, a: null }, []],
    [
      'a list that is none',
      { list: ports(two, ['a']) },
      { list: { b: [1.5] } },
      ['.spec.list: expected list, got object'],
    ],
  ];
  for (const [name, spec, value, wanted] of cases) {
    const object = { apiVersion: 'v1', kind: 'K', metadata: { name: 'x' }, spec: value };
    assert.deepEqual(typingErrors(kind(spec), object), wanted, name);
  }
  const twice = { spec: { set: ['a', 'a'] } };
  assert.deepEqual(typingErrors(kind({ set: set(text) }), twice, { allowDuplicates: true }), []);
  assert.deepEqual(typingErrors(kind({}), { metadata: { x: 1 } }), ['.metadata.x: field not declared in schema']);
});

test('keys of built-in lists that Go always writes count with their zero values', () => {
  const pod = builtinSchema('io.k8s.api.core.v1.Pod');
  assert.deepEqual(typingErrors(pod, { spec: { containers: [{ image: 'x' }] } }), []);
  assert.deepEqual(typingErrors(pod, { spec: { containers: [{}, {}] } }), [
    '.spec.containers: duplicate entries for key [name=""]',
  ]);
  const claim = builtinSchema('io.k8s.api.resource.v1.ResourceClaim');
  const device = { device: 'a', driver: 'd', pool: 'p' };
  const devices = [device, { ...device, shareID: 'x' }];
  assert.deepEqual(typingErrors(claim, { status: { devices } }), []);
});

test('mayBeUntypable() finds sets of what is no scalar', () => {
  assert.equal(mayBeUntypable(kind({ a: set(text) })), false);
  assert.equal(mayBeUntypable(kind({ a: set({ type: 'object' }) })), true);
  assert.equal(mayBeUntypable(builtinSchema('io.k8s.api.core.v1.Pod')), false);
});
