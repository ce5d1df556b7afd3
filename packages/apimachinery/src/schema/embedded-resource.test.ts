import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../meta/status.ts';
import { coerceEmbedded, embeddedErrors } from './embedded-resource.ts';
import { pruneUnknown } from './prune.ts';
import type { Schema } from './schema.ts';

const template: Schema = { type: 'object', 'x-kubernetes-embedded-resource': true };
const schema: Schema = {
  type: 'object',
  properties: { one: template, many: { type: 'object', additionalProperties: template } },
};
const root = { path: '', whole: false };
const DNS_LABEL =
  "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const CASES: readonly (readonly [object, readonly string[]])[] = [
  [{ one: { apiVersion: 'v1', kind: 'Pod' } }, []],
  [{ one: {} }, ['one.apiVersion: Required value', 'one.kind: Required value']],
  [{ many: { k: { kind: 'Pod' } } }, ['many[k].apiVersion: Required value']],
  [
    { one: { apiVersion: '', kind: 'a_b' } },
    ['one.apiVersion: Invalid value: "": must not be empty', `one.kind: Invalid value: "a_b": ${DNS_LABEL}`],
  ],
  [
    { one: { apiVersion: 'a/b/c', kind: 'Pod' } },
    ['one.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
  ],
  [
    { one: { apiVersion: 'v1', kind: 'Pod', metadata: { labels: { a: 1 } } } },
    ['one.metadata: Invalid value: {"labels":{"a":1}}: labels.a: expected string, got number 1'],
  ],
  [
    { one: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a/b' } } },
    [`one.metadata.name: Invalid value: "a/b": may not contain '/'`],
  ],
];

// S-270
// Compat CustomResourceDefinitions, P1, yes: x-kubernetes-embedded-resource
test('embeddedErrors() asks of objects inside what is asked of any object', () => {
  for (const [value, wanted] of CASES) {
    const errors = embeddedErrors(value, schema, root);
    assert.deepEqual(
      errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`),
      wanted,
      JSON.stringify(value),
    );
  }
});

test('coerceEmbedded() drops unknown metadata and names the first type that does not fit', () => {
  const value = { one: { kind: 'Pod', metadata: { name: 'a', bogus: 1 } }, many: { k: { kind: 1 } } };
  const wrong = coerceEmbedded(value, schema, root)!;
  assert.equal(`${wrong.field}: ${fieldErrorBody(wrong)}`, 'many[k].kind: Invalid value: 1: must be a string');
  assert.deepEqual(value.one.metadata, { name: 'a' });
});

test('nothing is known of what a value of another type holds, nor below additionalProperties: true', () => {
  const open: Schema = {
    type: 'object',
    properties: { text: { type: 'string' }, any: { type: 'object', additionalProperties: true } },
  };
  const value = { text: { a: 1 }, any: { k: { a: 1 }, l: [{ b: 1 }], m: 1 } };
  assert.deepEqual(pruneUnknown(open, value, { custom: true, part: true }), ['any.k.a', 'any.l[0].b', 'text.a']);
  assert.deepEqual(value, { text: {}, any: { k: {}, l: [{}], m: 1 } });
});
