import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { labelHint } from './label-hint.ts';
import { matchesLabels, parseLabelSelector } from './label-selector.ts';

const bytesOf = (labels: Record<string, string>): Uint8Array =>
  new TextEncoder().encode(JSON.stringify({ kind: 'A', metadata: { name: 'a', labels } }));
const mayMeet = (selector: string, labels: Record<string, string>): boolean | undefined =>
  labelHint(parseLabelSelector(selector))?.(bytesOf(labels));

test('says no where a label or its value is not in the bytes', () => {
  const labels = { app: 'web', 'a.example/tier': '', n: '5' };
  for (const selector of ['app=db', 'app in (db,x)', 'other', 'app=web,other=1', 'app=we', 'app=webb', 'zz>3'])
    assert.equal(mayMeet(selector, labels), false, selector);
  for (const selector of [
    'app=web',
    'app in (db,web)',
    'a.example/tier=',
    'a.example/tier',
    'n>3',
    'app in (1,2,3,4,5)',
  ])
    assert.equal(mayMeet(selector, labels), true, selector);
});

test('says nothing of what must not be there', () => {
  for (const selector of ['app!=web', '!app', 'app notin (a,b)'])
    assert.equal(mayMeet(selector, { app: 'web' }), undefined, selector);
});

// S-325
test('never says no to an object that meets the selector', () => {
  const key = fc.constantFrom('a', 'b', 'aa', 'a/b', 'ab');
  const value = fc.constantFrom('', 'a', 'aa', 'ab', 'aab', '7');
  const requirement = fc.oneof(
    fc.tuple(key, fc.constantFrom('=', '==', '!='), value).map((parts) => parts.join('')),
    fc
      .tuple(key, fc.constantFrom('in', 'notin'), fc.array(value, { minLength: 1, maxLength: 6 }))
      .map(([k, operator, values]) => `${k} ${operator} (${values.join(',')})`),
    key,
    key.map((k) => `!${k}`),
    key.map((k) => `${k}>3`),
  );
  fc.assert(
    fc.property(fc.dictionary(key, value), fc.array(requirement, { minLength: 1, maxLength: 3 }), (labels, texts) => {
      const selector = parseLabelSelector(texts.join(','));
      if (matchesLabels(selector, labels)) assert.notEqual(labelHint(selector)?.(bytesOf(labels)), false);
    }),
  );
});
