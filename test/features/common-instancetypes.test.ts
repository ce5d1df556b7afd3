/** The common instance types and preferences: there by default, the user's edits left alone, gone when switched off. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startPlane } from '../testkit/control-plane.ts';
import { eventually } from '../testkit/eventually.ts';

const TYPES = '/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes';
const PREFERENCES = '/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterpreferences';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';

// biome-ignore lint/suspicious/noExplicitAny: objects of every shape.
type Any = any;

// S-180: The published common instance types and preferences come by themselves, stay as users edit them, and go when
//   they are switched off.
// Compat KubeVirt's API, P1, yes: `commonInstancetypesDeployment`
test('the common instance types come by themselves, stay as users edit them, and go', {
  timeout: 600_000,
}, async () => {
  const plane = await startPlane();
  const countOf = async (path: string): Promise<number> => (await plane.admin(`GET ${path}`)).items.length;
  const deploy = (enabled: boolean) =>
    plane.admin(`PATCH ${KUBEVIRT}`, {
      spec: { configuration: { commonInstancetypesDeployment: { enabled } } },
    });
  try {
    const before = plane.plane.store.stats();
    await plane.run(['common-instancetypes'], { rootCa: '' });
    await eventually(
      () => countOf(TYPES),
      (count) => count === 65,
    );
    await eventually(
      () => countOf(PREFERENCES),
      (count) => count === 57,
    );
    const { writes, commits } = plane.plane.store.stats();
    assert.ok(commits - before.commits < (writes - before.writes) / 2, 'many in one commit');
    const nano = await plane.admin(`GET ${TYPES}/u1.nano`);
    assert.deepEqual(nano.spec, { cpu: { guest: 1 }, memory: { guest: '512Mi' } });
    assert.equal(nano.metadata.labels['instancetype.kubevirt.io/class'], 'general.purpose');

    // What a user changed stays, and an event says so. What a user deleted comes back.
    await plane.admin(`PATCH ${TYPES}/u1.micro`, { spec: { memory: { guest: '3Gi' } } });
    await plane.admin(`DELETE ${PREFERENCES}/fedora`);
    await eventually(
      () => countOf(PREFERENCES),
      (count) => count === 57,
    );
    await eventually(
      async () => (await plane.admin('GET /api/v1/namespaces/kubevirt/events')).items,
      (events) =>
        events.some(
          ({ reason, message }: Any) => reason === 'CommonInstancetypeEdited' && message.includes('u1.micro'),
        ),
    );
    assert.equal((await plane.admin(`GET ${TYPES}/u1.micro`)).spec.memory.guest, '3Gi');

    await deploy(false);
    await eventually(
      () => countOf(PREFERENCES),
      (count) => count === 0,
    );
    await eventually(
      () => countOf(TYPES),
      (count) => count === 1,
    );
    assert.equal((await plane.admin(`GET ${TYPES}/u1.micro`)).spec.memory.guest, '3Gi');
    await deploy(true);
    await eventually(
      () => countOf(TYPES),
      (count) => count === 65,
    );
    assert.equal((await plane.admin(`GET ${TYPES}/u1.micro`)).spec.memory.guest, '3Gi');
  } finally {
    await plane.stop();
  }
});
