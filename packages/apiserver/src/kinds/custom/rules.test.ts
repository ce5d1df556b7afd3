/** Rules over objects, in the words of the real validator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../../apimachinery/src/meta/status.ts';
import type { Schema, ValidationRule } from '../../../../apimachinery/src/schema/schema.ts';
import { createRuleCheck } from './rules.ts';

const ruled = (rule: ValidationRule): Schema => ({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: { a: { type: 'integer', nullable: true }, 'b-c': { type: 'string' } },
      'x-kubernetes-validations': [rule],
    },
  },
});

interface Case {
  readonly rule: ValidationRule;
  readonly spec: object;
  readonly old?: object;
  readonly errors: readonly string[];
}

const CASES: Readonly<Record<string, Case>> = {
  'a null is no value': {
    rule: { rule: '!has(self.a) && !self.?a.hasValue()' },
    spec: { a: null },
    errors: [],
  },
  'a null has nothing to be compared': {
    rule: { rule: 'self.a > 1' },
    spec: { a: null },
    errors: ['spec: Invalid value: "object": no such key: a evaluating rule: self.a > 1'],
  },
  'a missing field is named as the rule names it': {
    rule: { rule: "self.b__dash__c == ''" },
    spec: {},
    errors: [`spec: Invalid value: "object": no such key: b__dash__c evaluating rule: self.b__dash__c == ''`],
  },
  'a message cannot speak of an old value that the rule does not': {
    rule: { rule: 'self.a > 1', messageExpression: "oldSelf == self ? 'same' : 'other'" },
    spec: { a: 1 },
    old: { a: 0 },
    errors: ['spec: Invalid value: failed rule: self.a > 1'],
  },
  'a message may speak of an old value that the rule speaks of': {
    rule: { rule: 'self.a < oldSelf.a', messageExpression: "'was ' + string(oldSelf.a)" },
    spec: { a: 1 },
    old: { a: 0 },
    errors: ['spec: Invalid value: was 0'],
  },
  'a call that does not fit is reported at length': {
    rule: { rule: "dyn(self.a) + 'x' == ''" },
    spec: { a: 1 },
    errors: [
      `spec: Invalid value: "object": 'no such overload': call arguments did not match a supported operator, function or macro signature for rule: dyn(self.a) + 'x' == ''`,
    ],
  },
};

for (const [what, { rule, spec, old, errors }] of Object.entries(CASES)) {
  // S-338
  // Compat CustomResourceDefinitions, P1, yes: in rules a null is no value: `has(self.x)` is false
  test(`rules: ${what}`, () => {
    const check = createRuleCheck(ruled(rule))!;
    const found = check({ spec }, old && { spec: old });
    assert.deepEqual(
      found.map((error) => `${error.field}: ${fieldErrorBody(error).replace(/^(Invalid value: )\{.*?\}: /, '$1')}`),
      errors,
    );
  });
}
