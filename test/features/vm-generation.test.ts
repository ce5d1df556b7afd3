/** Which generation of a machine runs: `status.observedGeneration` and `desiredGeneration`, as upstream means them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

let plane: TestPlane;
before(async () => {
  plane = await startPlane();
  await plane.run(['vm'], { rootCa: '' });
});
after(() => plane.stop());

const patch = (body: object): Promise<Any> => plane.admin(`PATCH ${VMS}/a`, body);
const shows = (what: string, observed: number, desired: number): Promise<Any> =>
  eventually(
    async () => (await plane.admin(`GET ${VMS}/a`)).status,
    (status) => status?.observedGeneration === observed && status.desiredGeneration === desired,
  ).catch((error: Error) => {
    throw new Error(`${what}: ${error.message}`);
  });
const annotation = async (): Promise<string | undefined> =>
  (await plane.admin(`GET ${VMIS}/a`)).metadata.annotations?.['kubevirt.io/vm-generation'];

// S-403: `observedGeneration` of a machine is that of what runs, `desiredGeneration` its own.
test('observedGeneration is that of what runs, desiredGeneration that of the machine', async () => {
  const { metadata } = await plane.admin(`POST ${VMS}`, {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'a' },
    spec: {
      runStrategy: 'Always',
      template: { metadata: { labels: { app: 'x' } }, spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } },
    },
  });
  const first = metadata.generation;
  await shows('started', first, first);
  assert.equal(await annotation(), String(first));

  // What the template does not say is in force without a restart.
  await patch({ spec: { runStrategy: 'RerunOnFailure' } });
  await shows('another strategy', first + 1, first + 1);
  assert.equal(await annotation(), String(first + 1));

  await patch({ spec: { template: { metadata: { labels: { app: 'y' } } } } });
  await shows('another label', first + 1, first + 2);
  await patch({ spec: { template: { spec: { terminationGracePeriodSeconds: 7 } } } });
  await shows('another grace period', first + 1, first + 3);
  assert.equal(await annotation(), String(first + 1));

  // An instance of which nothing is said has the number of its start.
  await plane.admin(`PATCH ${VMIS}/a`, { metadata: { annotations: { 'kubevirt.io/vm-generation': 'none' } } });
  await shows('found again', first, first + 3);
  assert.equal(await annotation(), String(first));
});
