/** The status of the KubeVirt object, as clients that wait for virt-operator read it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';

// S-520: The status of the KubeVirt object names the generation and the version in effect, and nodes carry
//   virt-handler's heartbeat.
test('the KubeVirt object says which generation and which version are in effect', async () => {
  const plane = await startPlane();
  try {
    await plane.run(['kubevirt'], { rootCa: '', version: 'v7.8.9' });
    const inEffect = () =>
      eventually(
        () => plane.admin(`GET ${KUBEVIRT}`),
        ({ metadata, status }) => status.observedGeneration === metadata.generation,
      );
    const { metadata, status } = await inEffect();
    assert.match(status.observedDeploymentID, /^[0-9a-f]{40}$/);
    assert.equal(status.targetDeploymentID, status.observedDeploymentID);
    assert.deepEqual(
      [status.phase, status.operatorVersion, status.targetKubeVirtVersion, status.observedKubeVirtVersion],
      ['Deployed', 'v7.8.9', 'v7.8.9', 'v7.8.9'],
    );
    assert.equal(status.conditions.length, 4);
    const machines = status.generations.find(({ name }: { name: string }) => name === 'virtualmachines.kubevirt.io');
    assert.deepEqual(machines, {
      group: 'apiextensions.k8s.io',
      resource: 'customresourcedefinitions',
      name: 'virtualmachines.kubevirt.io',
      lastGeneration: 1,
    });
    assert.ok(status.generations.every(({ name }: { name: string }) => name.endsWith('kubevirt.io')));

    await plane.admin(`PATCH ${KUBEVIRT}`, { spec: { configuration: { evictionStrategy: 'LiveMigrate' } } });
    const next = await inEffect();
    assert.equal(next.metadata.generation, metadata.generation + 1);
    assert.equal(next.status.observedDeploymentID, status.observedDeploymentID);
  } finally {
    await plane.stop();
  }
});
