import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DeepReadonly } from '../../../../apimachinery/src/meta/object.ts';
import type { Ssp, SspStatus } from '../../kinds/kinds.ts';
import { DELETION_POLICY, DELETION_POLICY_BINDING } from './deletion-policy.ts';
import { operandMetadata } from './operand-metadata.ts';
import { beginningStatus, deletingStatus, deployedStatus, isBeginning, isPaused, pausedStatus } from './ssp-status.ts';

const ssp = (status?: DeepReadonly<SspStatus>, annotations: Record<string, string> = {}): DeepReadonly<Ssp> => ({
  apiVersion: 'ssp.kubevirt.io/v1beta3',
  kind: 'SSP',
  metadata: { name: 'ssp', namespace: 'kubevirt', generation: 2, annotations },
  spec: { commonTemplates: { namespace: 'kubevirt' } },
  ...(status && { status }),
});
const now = { version: '1.0.0', at: '2030-01-01T00:00:00Z' };
const later = { version: '1.0.0', at: '2030-01-02T00:00:00Z' };
const owned = <T extends { metadata: object }>(object: T): T => ({
  ...object,
  metadata: operandMetadata(object.metadata, { name: 'n', component: 'c' }, ssp()),
});
const policy = owned(DELETION_POLICY);
const binding = owned(DELETION_POLICY_BINDING);
const NAME = '/kubevirt-vm-deletion-protection';

/** type -> [status, message]; the reason of upstream's is their type. */
const said = ({ conditions = [] }: DeepReadonly<SspStatus>) =>
  Object.fromEntries(
    conditions
      .filter(({ type, reason }) => type === reason)
      .map(({ type, status, message }) => [type, [status, message]]),
  );

test('deployedStatus() is Deployed when the policy and the binding are there, both in the name of the object', () => {
  const status = deployedStatus(ssp(), { policy, binding }, now);
  assert.deepEqual(said(status), {
    Available: ['True', 'All SSP resources are available'],
    Progressing: ['False', 'No SSP resources are progressing'],
    Degraded: ['False', 'No SSP resources are degraded'],
  });
  const { phase, observedGeneration, operatorVersion, targetVersion, observedVersion } = status;
  assert.deepEqual(
    { phase, observedGeneration, operatorVersion, targetVersion, observedVersion },
    {
      phase: 'Deployed',
      observedGeneration: 2,
      operatorVersion: '1.0.0',
      targetVersion: '1.0.0',
      observedVersion: '1.0.0',
    },
  );
  assert.match(
    status.conditions?.find(({ type }) => type === 'coracle.dev/OperandsLeftOut')?.message ?? '',
    /DataImportCrons/,
  );
});

const deletionTimestamp = '2030-01-01T00:00:00Z';
const one = (kind: string, message: string) => ({
  Available: ['False', `${kind} ${NAME}: ${message}`],
  Progressing: ['True', `${kind} ${NAME}: ${message}`],
  Degraded: ['True', `${kind} ${NAME}: ${message}`],
});
// S-742
for (const [what, operands, expected] of [
  [
    'an expression does not fit',
    {
      policy: {
        ...policy,
        status: {
          typeChecking: { expressionWarnings: [{ fieldRef: 'spec.validations[0].expression', warning: 'bad' }] },
        },
      },
      binding,
    },
    {
      ...one(
        'ValidatingAdmissionPolicy',
        'Incorrect VM delete protection VAP CEL expression &{[{spec.validations[0].expression bad}]}',
      ),
      Progressing: ['False', 'No SSP resources are progressing'],
    },
  ],
  [
    'the binding is being deleted',
    { policy, binding: { ...binding, metadata: { ...binding.metadata, deletionTimestamp } } },
    one('ValidatingAdmissionPolicyBinding', 'Resource is being deleted.'),
  ],
  [
    'the binding is in nobody’s name',
    { policy, binding: DELETION_POLICY_BINDING },
    one('ValidatingAdmissionPolicyBinding', 'Resource is being taken over.'),
  ],
  [
    'neither is there',
    { policy: undefined, binding: undefined },
    {
      Available: ['False', '2 SSP resources are not available'],
      Progressing: ['True', '2 SSP resources are progressing'],
      Degraded: ['True', '2 SSP resources are degraded'],
    },
  ],
] as const)
  test(`deployedStatus() is Deploying while ${what}`, () => {
    const status = deployedStatus(ssp(), operands, now);
    assert.equal(status.phase, 'Deploying');
    assert.equal(status.observedVersion, undefined);
    assert.deepEqual(said(status), expected);
  });

test('a status that says the same is the same, and only what changed has a new time', () => {
  const first = beginningStatus(ssp(), now);
  assert.equal(first.phase, 'Deploying');
  assert.deepEqual(said(first), {
    Available: ['False', 'Reconciling SSP resources'],
    Progressing: ['True', 'Reconciling SSP resources'],
    Degraded: ['True', 'Reconciling SSP resources'],
  });
  const done = deployedStatus(ssp(first), { policy, binding }, later);
  assert.deepEqual(deployedStatus(ssp(done), { policy, binding }, { ...later, at: '2031-01-01T00:00:00Z' }), done);
  const waiting = deployedStatus(ssp(first), { policy: undefined, binding }, later);
  const [available] = waiting.conditions!;
  assert.deepEqual([available?.lastTransitionTime, available?.lastHeartbeatTime], [now.at, later.at]);
  assert.equal(done.conditions?.[0]?.lastTransitionTime, later.at);
  assert.deepEqual(said(deletingStatus(ssp(done), later)), {
    Available: ['False', 'Deleting SSP resources'],
    Progressing: ['True', 'Deleting SSP resources'],
    Degraded: ['True', 'Deleting SSP resources'],
  });
});

test('what has to begin: an object without a phase, with another generation, or that was paused', () => {
  const done = deployedStatus(ssp(), { policy, binding }, now);
  assert.equal(isBeginning(ssp(done)), false);
  for (const status of [undefined, { ...done, observedGeneration: 1 }, pausedStatus(ssp(done))])
    assert.equal(isBeginning(ssp(status)), true);
  assert.deepEqual(pausedStatus(ssp(done)), { ...done, paused: true });
  assert.equal(beginningStatus(ssp(pausedStatus(ssp(done))), now).paused, undefined);
});

test('the annotation that pauses is read as Go reads a boolean', () => {
  for (const [value, expected] of [
    ['true', true],
    ['True', true],
    ['1', true],
    ['t', true],
    ['yes', false],
    ['tRUE', false],
    ['false', false],
    ['', false],
  ] as const)
    assert.equal(isPaused(ssp(undefined, { 'kubevirt.io/operator.paused': value })), expected, value);
  assert.equal(isPaused(ssp()), false);
});
