import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeErrors } from '../../../../apimachinery/src/schema/decode-errors.ts';
import { parseJson } from '../../../../apimachinery/src/schema/parse-json.ts';
import { builtinSchema } from '../../../../apimachinery/src/types/builtin-types.ts';

const POD = { group: '', version: 'v1', kind: 'Pod' };
const CASES: readonly [what: string, body: string, problem: string | undefined][] = [
  ['a text', '{"metadata":{"uid":1}}', 'metadata.uid: expected string, got number 1'],
  [
    'items',
    '{"spec":{"containers":[{"securityContext":{"capabilities":{"add":[true]}}}]}}',
    'spec.containers[0].securityContext.capabilities.add[0]: expected string, got bool',
  ],
  ['a map', '{"spec":{"overhead":[]}}', 'spec.overhead: expected object, got array'],
  [
    'deep inside',
    '{"spec":{"ephemeralContainers":[{"livenessProbe":{"httpGet":{"scheme":{}}}}]}}',
    'spec.ephemeralContainers[0].livenessProbe.httpGet.scheme: expected string, got object',
  ],
  ['the first of several', '{"spec":{"hostNetwork":"no","nodeName":1}}', 'spec.hostNetwork: expected bool, got string'],
  [
    'a quantity is a text or a number',
    '{"spec":{"overhead":{"cpu":true}}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    'a time is a text',
    '{"metadata":{"creationTimestamp":1}}',
    'metadata.creationTimestamp: expected string, got number 1',
  ],
  [
    'an integer is validated by its spelling',
    '{"spec":{"priority":1.0}}',
    'spec.priority: expected int32, got number 1.0',
  ],
  [
    'also with an exponent',
    '{"spec":{"activeDeadlineSeconds":1e3}}',
    'spec.activeDeadlineSeconds: expected int64, got number 1e3',
  ],
  [
    'and when it is too large, digit by digit',
    '{"spec":{"activeDeadlineSeconds":9223372036854775808}}',
    'spec.activeDeadlineSeconds: expected int64, got number 9223372036854775808',
  ],
  ['minus nought is an integer', '{"spec":{"priority":-0}}', undefined],
  ['a number stands for its text in a Quantity', '{"spec":{"overhead":{"cpu":1.50}}}', undefined],
  [
    'no number is too large for a text',
    '{"spec":{"nodeName":1e400}}',
    'spec.nodeName: expected string, got number 1e400',
  ],
];

for (const [what, body, problem] of CASES) {
  // Compat Writing, P1, yes: a value of a wrong type: the field and the type that was expected
  test(`decode errors name the field and the type: ${what}`, () => {
    const { value, numbers } = parseJson(new TextEncoder().encode(body), { validatedByType: true });
    const text = problem === undefined ? undefined : `Pod in version "v1" cannot be handled as a Pod: ${problem}`;
    assert.equal(decodeErrors(builtinSchema('io.k8s.api.core.v1.Pod'), value, POD, numbers), text);
  });
}

test('base64 that is wrong is refused', () => {
  const secret = builtinSchema('io.k8s.api.core.v1.Secret');
  for (const text of ['a', 'aGVsb', 'aG=', 'a===', 'aG=b', 'aGk=x', 'aG\n*=', 'é']) {
    assert.equal(
      decodeErrors(secret, { data: { k: text } }, { group: '', version: 'v1', kind: 'Secret' }),
      'Secret in version "v1" cannot be handled as a Secret: illegal base64 data',
      JSON.stringify(text),
    );
  }
});
