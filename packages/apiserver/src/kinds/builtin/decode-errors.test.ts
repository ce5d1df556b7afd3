import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeErrors } from '../../../../apimachinery/src/schema/decode-errors.ts';
import { parseJson } from '../../../../apimachinery/src/schema/parse-json.ts';
import { builtinSchema } from '../../../../apimachinery/src/types/builtin-types.ts';

const POD = { group: '', version: 'v1', kind: 'Pod' };
const CASES: readonly [what: string, body: string, problem: string | undefined][] = [
  [
    'a text',
    '{"metadata":{"uid":1}}',
    'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type string',
  ],
  [
    'items',
    '{"spec":{"containers":[{"securityContext":{"capabilities":{"add":[true]}}}]}}',
    'json: cannot unmarshal bool into Go struct field Capabilities.spec.containers.securityContext.capabilities.add of type string',
  ],
  [
    'a map',
    '{"spec":{"overhead":[]}}',
    'json: cannot unmarshal array into Go struct field PodSpec.spec.overhead of type map[string]resource.Quantity',
  ],
  [
    'deep inside',
    '{"spec":{"ephemeralContainers":[{"livenessProbe":{"httpGet":{"scheme":{}}}}]}}',
    'json: cannot unmarshal object into Go struct field HTTPGetAction.spec.ephemeralContainers.livenessProbe.httpGet.scheme of type string',
  ],
  [
    'the first of several',
    '{"spec":{"hostNetwork":"no","nodeName":1}}',
    'json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool',
  ],
  [
    'a quantity is a text or a number',
    '{"spec":{"overhead":{"cpu":true}}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    'a time is a text',
    '{"metadata":{"creationTimestamp":1}}',
    'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string',
  ],
  [
    'an integer is validated by its spelling',
    '{"spec":{"priority":1.0}}',
    'json: cannot unmarshal number 1.0 into Go struct field PodSpec.spec.priority of type int32',
  ],
  [
    'also with an exponent',
    '{"spec":{"activeDeadlineSeconds":1e3}}',
    'json: cannot unmarshal number 1e3 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64',
  ],
  [
    'and when it is too large, digit by digit',
    '{"spec":{"activeDeadlineSeconds":9223372036854775808}}',
    'json: cannot unmarshal number 9223372036854775808 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64',
  ],
  ['minus nought is an integer', '{"spec":{"priority":-0}}', undefined],
  ['a number stands for its text in a Quantity', '{"spec":{"overhead":{"cpu":1.50}}}', undefined],
  [
    'no number is too large for a text',
    '{"spec":{"nodeName":1e400}}',
    'json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string',
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
