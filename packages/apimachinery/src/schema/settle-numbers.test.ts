import assert from 'node:assert/strict';
import { test } from 'node:test';
import { builtinSchema } from '../types/builtin-types.ts';
import { parseJson, parseJsonInPieces } from './parse-json.ts';
import { settleNumbers } from './settle-numbers.ts';

function settled(type: string, body: string): unknown {
  const { value, numbers } = parseJson(new TextEncoder().encode(body), { validatedByType: true });
  settleNumbers(builtinSchema(`io.k8s.api.${type}`), value, numbers ?? assert.fail('no odd number was noticed'));
  return value;
}

// S-315
// Compat Writing, P2, yes: a Quantity given as a number, base64 with line breaks or loose bits come back as Go writes
//   them
test('a Quantity keeps the digits it was written with', () => {
  assert.deepEqual(settled('core.v1.LimitRangeItem', '{"max":{"a.b/c":9223372036854775808,"d":1e3,"e":2}}'), {
    max: { 'a.b/c': '9223372036854775808', d: '1e3', e: 2 },
  });
});

test('content of any form keeps every int64, and so do fields that nobody counts with', () => {
  const body = '{"revision":9007199254740993,"data":{"list":[{"n":9223372036854775807}],"m":-0,"x":1.0}}';
  assert.deepEqual(settled('apps.v1.ControllerRevision', body), {
    revision: 9007199254740993n,
    data: { list: [{ n: 9223372036854775807n }], m: -0, x: 1 },
  });
});

test('an int64 is kept where upstream takes it, and left to validation where that refuses it', () => {
  const wide = '9007199254740993';
  assert.deepEqual(settled('core.v1.Toleration', `{"tolerationSeconds":-${wide}}`), {
    tolerationSeconds: -9007199254740993n,
  });
  assert.deepEqual(settled('core.v1.LinuxContainerUser', `{"supplementalGroups":[1,${wide}]}`), {
    supplementalGroups: [1, 9007199254740993n],
  });
  assert.deepEqual(settled('apps.v1.DeploymentStatus', `{"observedGeneration":${wide}}`), {
    observedGeneration: 9007199254740993n,
  });
  assert.deepEqual(settled('batch.v1.JobSpec', `{"activeDeadlineSeconds":${wide}}`), {
    activeDeadlineSeconds: 9007199254740993n,
  });
  // Doubles, for rules that say it is too much or too little.
  assert.deepEqual(settled('batch.v1.JobSpec', `{"activeDeadlineSeconds":-${wide}}`), {
    activeDeadlineSeconds: -9007199254740992,
  });
  assert.deepEqual(settled('core.v1.PodSpec', `{"securityContext":{"supplementalGroups":[${wide}]}}`), {
    securityContext: { supplementalGroups: [9007199254740992] },
  });
});

test('what a double does not hold is refused elsewhere, with its place', () => {
  assert.throws(
    () => settled('core.v1.PodSpec', '{"terminationGracePeriodSeconds":9007199254740993}'),
    /cannot keep number 9007199254740993 at terminationGracePeriodSeconds exactly/,
  );
  assert.throws(() => settled('apps.v1.ControllerRevision', '{"data":[1e400]}'), /number 1e400 at data\[0\]/);
});

test('unknown fields, and what a later member has replaced, are nobody’s', () => {
  const body = '{"bogus":9007199254740993,"revision":9007199254740993,"revision":1,"data":null}';
  assert.deepEqual(settled('apps.v1.ControllerRevision', body), { bogus: 9007199254740992, revision: 1, data: null });
});

test('odd numbers are noticed wherever they stand, however the text is read', async () => {
  const spellings = ['1', '-1', '0', '-0', '1.0', '-1.5', '1e3', '1E3', '12e+2', '9007199254740993', '1e400', '0.1'];
  const odd = spellings.filter((text) => String(Number(text)) !== text);
  for (const text of spellings) {
    for (const body of [`{"a":${text}}`, `[ ${text}\n]`, `{"true":[true,false,null,"1.0",${text}],"b.e":"-0"}`]) {
      const bytes = new TextEncoder().encode(body);
      const { numbers } = parseJson(bytes, { validatedByType: true });
      assert.deepEqual(
        [...(numbers ?? [])].map(([, number]) => number.text),
        odd.includes(text) ? [text] : [],
        body,
      );
      const pieces = await parseJsonInPieces(bytes, async () => {}, { validatedByType: true });
      assert.deepEqual(pieces.numbers, numbers, body);
    }
  }
});
