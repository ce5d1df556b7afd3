import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VALIDATING_ADMISSION_POLICIES } from '../../../../apimachinery/src/types/resource-types.ts';
import type { ValidatingAdmissionPolicy } from '../../../../apimachinery/src/types/types.ts';
import type { Client } from '../../../../client/src/client.ts';
import type { Informer } from '../../../../client/src/informer/informer.ts';
import { createFakeClock } from '../../../../runtime/src/clock/fake-clock.fixture.ts';
import { NEVER } from '../../../../runtime/src/http/seam.ts';
import { silentLogger } from '../../../../runtime/src/log/log.ts';
import { DELETION_POLICY } from '../../rules/protection/deletion-policy.ts';
import { type KeptOperand, keepOperand } from './kept-operands.ts';

const ssp = { metadata: { name: 'ssp', namespace: 'kubevirt' } };
const inTheNameOf = {
  'operator-sdk/primary-resource': 'kubevirt/ssp',
  'operator-sdk/primary-resource-type': 'SSP.ssp.kubevirt.io',
};

/** The policy as somebody else has just written it, again and again: each time another generation. */
function quarrel(annotations: Record<string, string> | undefined) {
  const clock = createFakeClock();
  const one: KeptOperand<ValidatingAdmissionPolicy> = {
    type: VALIDATING_ADMISSION_POLICIES,
    wanted: DELETION_POLICY,
    informer: undefined as unknown as Informer<ValidatingAdmissionPolicy>,
    rewrites: [],
  };
  let generation = 1;
  const written: ValidatingAdmissionPolicy[] = [];
  const client = {
    update: async (_type: unknown, object: ValidatingAdmissionPolicy) => {
      written.push(object);
      return { ...object, metadata: { ...object.metadata, generation: ++generation } };
    },
  } as unknown as Client;
  const edited = (): ValidatingAdmissionPolicy => ({
    ...DELETION_POLICY,
    metadata: { name: 'p', uid: 'u', generation: ++generation, ...(annotations && { annotations }) },
    spec: { ...DELETION_POLICY.spec, failurePolicy: 'Ignore' },
  });
  const owner = annotations ? ssp : undefined;
  const keep = (found: ValidatingAdmissionPolicy) =>
    keepOperand(one, found, { client, clock, log: silentLogger, owner, signal: NEVER });
  return { clock, written, edited, keep, last: () => written.at(-1)! };
}

// S-746
test('keepOperand() ends a quarrel over an object of an SSP after ten writes in a minute, and begins anew after it', async () => {
  const { clock, written, edited, keep } = quarrel(inTheNameOf);
  for (let i = 0; i < 10; i++) assert.equal(await keep(edited()), 'kept');
  assert.equal(await keep(edited()), 'quarrel');
  assert.equal(written.length, 10);
  assert.ok(written.every(({ spec }) => spec.failurePolicy === 'Fail'));
  await clock.advance(60_000);
  assert.equal(await keep(edited()), 'kept');
  assert.equal(written.length, 11);
});

// S-746
test('keepOperand() puts back what is in nobody’s name however often it is edited', async () => {
  const { written, edited, keep } = quarrel(undefined);
  for (let i = 0; i < 50; i++) assert.equal(await keep(edited()), 'kept');
  assert.equal(written.length, 50);
});

test('keepOperand() writes nothing over its own spec, in another generation too', async () => {
  const { written, edited, keep, last } = quarrel(inTheNameOf);
  await keep(edited());
  const ours = last();
  // Two who keep it the same way: the other one's write gave a new generation, and the very spec.
  assert.equal(await keep({ ...ours, metadata: { ...ours.metadata, uid: 'u', generation: 99 } }), 'kept');
  assert.equal(written.length, 1);
});
