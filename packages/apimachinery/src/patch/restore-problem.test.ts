import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinResource } from '../../../apiserver/src/kinds/builtin/builtin-resources.ts';
import { restoreProblem } from './restore-problem.ts';

const pod = builtinResource({ group: '', version: 'v1', resource: 'pods' })!.schema;

// S-267
// Compat Patch, P1, yes: a result of a wrong type: `cannot restore map from string`
test('restoreProblem() says what the converter says', async (t) => {
  const cases: [string, object, string | undefined][] = [
    ['a good pod', { metadata: { labels: { a: 'b' } }, spec: { hostNetwork: true } }, undefined],
    ['a map', { metadata: { labels: 'invalid' } }, 'cannot restore map from string'],
    ['a map from a list', { metadata: { annotations: ['a'] } }, 'cannot restore map from slice'],
    ['a list', { spec: { containers: {} } }, 'cannot restore slice from map'],
    ['an item', { spec: { containers: ['c'] } }, 'cannot restore struct from: string'],
    ['a struct', { spec: true }, 'cannot restore struct from: bool'],
    ['a number for a text', { metadata: { labels: { a: 1 } } }, 'cannot convert int64 to string'],
    ['a fraction for a text', { metadata: { labels: { a: 1.5 } } }, 'unrecognized type: string'],
    ['a text for a number', { spec: { priority: 'x' } }, 'unrecognized type: int32'],
    ['a fraction for a number', { spec: { priority: 1.5 } }, 'cannot convert float64 to int32'],
    ['a text for a flag', { spec: { hostNetwork: 'yes' } }, 'unrecognized type: bool'],
    ['what decodes itself', { metadata: { creationTimestamp: 'x' } }, undefined],
  ];
  for (const [name, value, wanted] of cases) {
    await t.test(name, () => {
      const found = restoreProblem(pod, value);
      if (name === 'what decodes itself') assert.match(found ?? '', /^parsing time "x" as /);
      else assert.equal(found, wanted);
    });
  }
});
