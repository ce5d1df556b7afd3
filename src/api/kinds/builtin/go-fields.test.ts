import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeErrors } from '../../schema/decode-errors.ts';
import { parseJson } from '../../schema/parse-json.ts';
import { GO_FIELDS } from '../../schema/schema.ts';
import { builtinSchema, builtinTypeNames } from './builtin-types.ts';

test('the tables name fields of their types', () => {
  let named = 0;
  for (const definition of builtinTypeNames()) {
    const { properties, [GO_FIELDS]: fields } = builtinSchema(definition);
    const { types, through } = fields?.() ?? { types: new Map(), through: new Map() };
    for (const field of [...types.keys(), ...through.keys()]) {
      assert.ok(properties !== undefined && Object.hasOwn(properties, field), `${definition}.${field}`);
      named++;
    }
  }
  assert.ok(named > 250, `${named} fields`);
});

const POD = { group: '', version: 'v1', kind: 'Pod' };
const CASES: readonly [what: string, body: string, problem: string | undefined][] = [
  [
    'a named type',
    '{"metadata":{"uid":1}}',
    'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type types.UID',
  ],
  [
    'items of a named type',
    '{"spec":{"containers":[{"securityContext":{"capabilities":{"add":[true]}}}]}}',
    'json: cannot unmarshal bool into Go struct field Capabilities.spec.containers.securityContext.capabilities.add of type v1.Capability',
  ],
  [
    'a named map',
    '{"spec":{"overhead":[]}}',
    'json: cannot unmarshal array into Go struct field PodSpec.spec.overhead of type v1.ResourceList',
  ],
  [
    'embedded structs',
    '{"spec":{"ephemeralContainers":[{"livenessProbe":{"httpGet":{"scheme":{}}}}]}}',
    'json: cannot unmarshal object into Go struct field HTTPGetAction.spec.ephemeralContainers.EphemeralContainerCommon.livenessProbe.ProbeHandler.httpGet.scheme of type v1.URIScheme',
  ],
  [
    'the first of several',
    '{"spec":{"hostNetwork":"no","nodeName":1}}',
    'json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool',
  ],
  [
    'a type with a decoder of its own has the last word',
    '{"spec":{"hostNetwork":"no","overhead":{"cpu":true}}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    'a time is a text',
    '{"metadata":{"creationTimestamp":1}}',
    'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string',
  ],
  [
    'an integer is judged by its spelling',
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
  // Compat Writing, P1, yes: a value of a wrong type is told in Go's words: named types, embedded structs, the number
  //   as spelled, which of several
  test(`decode errors name what Go names: ${what}`, () => {
    const { value, numbers } = parseJson(new TextEncoder().encode(body), { judgedByType: true });
    const text = problem === undefined ? undefined : `Pod in version "v1" cannot be handled as a Pod: ${problem}`;
    assert.equal(decodeErrors(builtinSchema('io.k8s.api.core.v1.Pod'), value, POD, numbers), text);
  });
}

test('base64 that is wrong is told where Go tells it', () => {
  const secret = builtinSchema('io.k8s.api.core.v1.Secret');
  const wrong: [text: string, at: number][] = [
    ['a', 0],
    ['aGVsb', 4],
    ['aG=', 3],
    ['a===', 1],
    ['aG=b', 2],
    ['aGk=x', 4],
    ['aG\n*=', 3],
    ['é', 0],
  ];
  for (const [text, at] of wrong) {
    assert.equal(
      decodeErrors(secret, { data: { k: text } }, { group: '', version: 'v1', kind: 'Secret' }),
      `Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte ${at}`,
      JSON.stringify(text),
    );
  }
});
