/** `kubectl delete namespaces --all`: the controllers that finish it live in one of those namespaces. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { chooseComponents, runComponent } from '../../packages/coracle/src/compose/components.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';
import { type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';
import { promptClock } from '../testkit/prompt-clock.ts';

const stop = new AbortController();
let cluster: InProcessControlPlane;
let running: Promise<unknown>;
before(async () => {
  cluster = await startInProcess({ clock: promptClock });
  const chosen = chooseComponents('namespace-controller,serviceaccount-controller,garbage-collector-controller');
  running = Promise.all(
    chosen.map((component) =>
      runComponent({
        component,
        client: cluster.plane.clientFor(component.account),
        facts: { rootCa: '' },
        clock: promptClock,
        log: silentLogger,
        signal: stop.signal,
      }),
    ),
  );
});
after(async () => {
  stop.abort();
  await running;
  await cluster.stop();
});

/** The namespaces that are not ending, with their uids. */
async function living(): Promise<Map<string, string>> {
  const { json } = await cluster.send('GET', '/api/v1/namespaces');
  type Listed = { metadata: { name: string; uid: string; deletionTimestamp?: string } };
  const items = (json.items as Listed[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.uid]));
}

// S-332: All namespaces can be deleted at once; what the system needs comes back.
// Compat Bootstrap objects, controllers, events, leases, P1, yes: all namespaces may be deleted at once: the others
//   end, those of the system come back with what is in them
test('all namespaces are deleted, and those of the system come back with what is in them', async () => {
  await cluster.send('POST', '/api/v1/namespaces', { metadata: { name: 'mine' } });
  await eventually('service account', async () => {
    return (await cluster.send('GET', '/api/v1/namespaces/mine/serviceaccounts/default')).status === 200;
  });
  const old = await living();
  const answers = await Promise.all(
    [...old.keys()].map(async (name) => [name, (await cluster.send('DELETE', `/api/v1/namespaces/${name}`)).status]),
  );
  assert.deepEqual(Object.fromEntries(answers), {
    // The user's own once it is there: it comes back at the next start alone.
    'config-management-system': 200,
    default: 403,
    'kube-node-lease': 200,
    'kube-public': 403,
    'kube-system': 403,
    kubevirt: 200,
    mine: 200,
  });
  await eventually('gone and back', async () => {
    const now = await living();
    const { json } = await cluster.send('GET', '/api/v1/namespaces');
    const isBack = (name: string): boolean => now.has(name) && now.get(name) !== old.get(name);
    return isBack('kubevirt') && isBack('kube-node-lease') && json.items.length === 5;
  });
  await eventually('the KubeVirt object and the accounts', async () => {
    const accounts = await cluster.send('GET', '/api/v1/namespaces/kubevirt/serviceaccounts');
    const kubevirt = await cluster.send('GET', '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt');
    return accounts.json.items.length > 5 && kubevirt.json.status?.phase === 'Deployed';
  });
  // Whoever finished this is still at work.
  await cluster.send('POST', '/api/v1/namespaces', { metadata: { name: 'later' } });
  await cluster.send('DELETE', '/api/v1/namespaces/later');
  await eventually('a later one', async () => (await cluster.send('GET', '/api/v1/namespaces/later')).status === 404);
});

// S-332
test('the KubeVirt object comes back with its defaults', async () => {
  const path = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
  const { uid } = (await cluster.send('GET', path)).json.metadata;
  assert.equal((await cluster.send('DELETE', path)).status, 200);
  await eventually('another KubeVirt object', async () => {
    const { status, json } = await cluster.send('GET', path);
    return status === 200 && json.metadata.uid !== uid;
  });
});
