import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../../apimachinery/src/meta/status.ts';
import '../../../../apimachinery/src/schema/wide-integers.ts';
import type { ValidationAbout } from '../../../../apimachinery/src/types/strategy.ts';
import { rootSchemaOf } from './crd-schema.ts';
import { createCustomValidation, type ScalePaths } from './custom-validation.ts';

type Json = Record<string, unknown>;
const SCALE: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
};
const open: Json = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

function errorsOf(
  schema: Json,
  object: Json,
  more: { readonly scale?: ScalePaths; readonly old?: Json; readonly about?: ValidationAbout } = {},
): string[] {
  const validateSchema = createCustomValidation(rootSchemaOf({ type: 'object', properties: schema }), {
    scale: more.scale,
  });
  const whole = (value: Json): Json => ({ apiVersion: 'a.b/v1', kind: 'A', metadata: { name: 'a' }, ...value });
  const errors = validateSchema(whole(object), more.old && whole(more.old), more.about);
  return errors.map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}

const SCALED: readonly (readonly [Json, readonly string[]])[] = [
  [{ spec: { replicas: 1 }, status: {} }, []],
  [{ spec: { replicas: -1 } }, ['.spec.replicas: Invalid value: -1: should be a non-negative integer']],
  [
    { status: { replicas: 2 ** 31 } },
    ['.status.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647'],
  ],
  [
    { spec: { replicas: 2n ** 63n - 1n } },
    ['.spec.replicas: Invalid value: 9223372036854775807: should be less than or equal to 2147483647'],
  ],
  [
    { spec: { replicas: -(2n ** 60n) } },
    ['.spec.replicas: Invalid value: -1152921504606846976: should be a non-negative integer'],
  ],
  [{ spec: { replicas: 1.5 } }, ['.spec.replicas: Invalid value: 0: .spec.replicas: expected integer, got number']],
  [
    { status: { selector: { b: [1], a: 'x' } } },
    ['.status.selector: Invalid value: "": .status.selector: expected string, got object'],
  ],
  [{ spec: true }, ['.spec.replicas: Invalid value: 0: .spec: expected map, got bool']],
];

test('what the scale subresource could not show is refused', () => {
  const any = { 'x-kubernetes-preserve-unknown-fields': true };
  for (const [object, wanted] of SCALED) {
    assert.deepEqual(errorsOf({ spec: any, status: open }, object, { scale: SCALE }), wanted, JSON.stringify(object));
  }
});

// S-270
test('a failed rule shows a scalar and neither object nor list; its message stands where its field is', () => {
  const rule = (text: string, more: Json = {}): Json => ({ 'x-kubernetes-validations': [{ rule: text, ...more }] });
  assert.deepEqual(errorsOf({ spec: { type: 'string', ...rule("self == 'b'") } }, { spec: 'a' }), [
    'spec: Invalid value: "a": failed rule: self == \'b\'',
  ]);
  const spec = { type: 'object', properties: { x: { type: 'integer' } } };
  assert.deepEqual(errorsOf({ spec: { ...spec, ...rule('self.x > 1', { fieldPath: '.x' }) } }, { spec: { x: 1 } }), [
    'spec.x: Invalid value: failed rule: self.x > 1',
  ]);
});

test('rules are not checked beside a value that is not among its choices', () => {
  const spec = { type: 'string', enum: ['b'], 'x-kubernetes-validations': [{ rule: 'false' }] };
  assert.deepEqual(errorsOf({ spec }, { spec: 'a' }), [
    'spec: Unsupported value: "a": supported values: "b"',
    '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
  ]);
});

// S-270
// Compat CustomResourceDefinitions, P1, yes: a rule that was broken before the update warns; a failed rule shows a
//   scalar, neither object nor list
test('a rule that is broken as before is a warning', () => {
  const spec = { type: 'string', 'x-kubernetes-validations': [{ rule: "self == 'b'" }] };
  const warnings: string[] = [];
  const about = { warn: (text: string): void => void warnings.push(text) };
  const old = { spec: 'a', other: 1 };
  assert.deepEqual(errorsOf({ spec, other: open }, { spec: 'a', other: 2 }, { old, about }), [
    'other: Invalid value: "integer": other in body must be of type object: "integer"',
    '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
  ]);
  assert.deepEqual(errorsOf({ spec }, { spec: 'a', other: 2 }, { old, about }), []);
  assert.deepEqual(warnings, ['spec: Invalid value: "a": failed rule: self == \'b\'']);
});

test('old values of an atomic map are there for rules', () => {
  const spec = {
    type: 'object',
    'x-kubernetes-map-type': 'atomic',
    properties: { x: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] } },
  };
  assert.deepEqual(errorsOf({ spec }, { spec: { x: 1 } }, { old: { spec: { x: 2 } } }), [
    'spec.x: Invalid value: 1: failed rule: self == oldSelf',
  ]);
});

test('a write of the status names fields from there', () => {
  const status = { type: 'object', properties: { n: { type: 'integer' } } };
  assert.deepEqual(errorsOf({ status }, { status: { n: 'x' } }, { about: { subresource: 'status' } }), [
    'status.n: Invalid value: "string": n in body must be of type integer: "string"',
  ]);
});
