/** A machine keeps the layout of PCI devices that its guest was started with, whatever its owner applies. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const VERSION = 'kubevirt.io/pci-topology-version';

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  await plane.run(['vm'], { rootCa: '' });
});
after(() => plane.stop());

// S-244: A machine keeps the PCI topology that its guest has seen.
// Compat KubeVirt's API, P1, yes: a template that lost its PCI topology gets it back from the instance
test('a template that lost its PCI topology gets it back from the instance, without a restart', async () => {
  await plane.admin(`POST ${VMS}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'kept' },
    spec: { runStrategy: 'Always', template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } } },
  });
  const admin = { as: ['admin', 'system:masters'] } as const;
  const instance = await eventually(
    () => plane.ask(`GET ${VMIS}/kept`, admin),
    ({ status }) => status === 200,
  );
  assert.equal(instance.json.metadata.annotations[VERSION], 'v3');

  const lost = await plane.admin(`PATCH ${VMS}/kept`, { spec: { template: { metadata: null } } });
  assert.equal(lost.spec.template.metadata, undefined);
  const found = await eventually(
    () => plane.admin(`GET ${VMS}/kept`),
    ({ metadata, status }) => status?.observedGeneration === metadata.generation && metadata.generation > 2,
  );
  assert.deepEqual(found.spec.template.metadata, { annotations: { [VERSION]: 'v3' } });
  assert.ok(!found.status.conditions.some(({ type }: { type: string }) => type === 'RestartRequired'));
});
