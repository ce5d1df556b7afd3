/**
 * OpenKruise's label against deletion, walked through as its own e2e test does (`test/e2e/policy/v1alpha1/
 * deletionprotection.go`), without OpenKruise. Pods stand for those of its CloneSets: nothing makes them here.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Answer, type InProcessControlPlane, startInProcess } from '../testkit/in-process-control-plane.ts';

const LABEL = 'policy.kruise.io/delete-protection';
const FORBIDDEN = `forbidden by ResourcesProtectionDeletion for ${LABEL}=`;
const PATCH = 'application/merge-patch+json';

let board: InProcessControlPlane;
before(async () => {
  board = await startInProcess();
});
after(() => board.stop());

async function done(method: string, target: string, body?: object): Promise<Answer['json']> {
  const answer = await board.send(method, target, body, method === 'PATCH' ? PATCH : undefined);
  assert.ok(answer.status < 300, `${method} ${target}: ${answer.status} ${JSON.stringify(answer.json)}`);
  return answer.json;
}
const label = (target: string, value: string | null, more: object = {}) =>
  done('PATCH', target, { metadata: { labels: { [LABEL]: value } }, ...more });
/** As a client of OpenKruise sees it. */
async function isRefused(target: string, by: string, why: string): Promise<void> {
  for (const query of ['?dryRun=All', '']) {
    const { status, json } = await board.send('DELETE', `${target}${query}`);
    assert.equal(status, 403, JSON.stringify(json));
    assert.equal(json.message, `admission webhook "${by}" denied the request: ${FORBIDDEN}${why}`);
  }
}
const labels = (value: string) => ({ [LABEL]: value });

// S-741: OpenKruise's label `policy.kruise.io/delete-protection` refuses deletions as OpenKruise does: its checks for
//   `Always` and `Cascading`, its messages, its counters; nothing in kube-system, nothing that is being deleted.
test('a namespace: Always, then Cascading with a Pod, with a bound claim, and with neither', async () => {
  const ns = '/api/v1/namespaces/kruise-e2e';
  await done('POST', '/api/v1/namespaces', { metadata: { name: 'kruise-e2e', labels: labels('Always') } });
  await done('POST', `${ns}/serviceaccounts`, { metadata: { name: 'default' } });
  await isRefused(ns, 'vnamespace.kb.io', 'Always');
  const containers = [{ name: 'c', image: 'i' }];
  for (const name of ['a', 'b', 'ended'])
    await done('POST', `${ns}/pods`, { metadata: { name }, spec: { containers } });
  await done('PATCH', `${ns}/pods/ended/status`, { status: { phase: 'Succeeded' } });
  await label(ns, 'Cascading');
  await isRefused(ns, 'vnamespace.kb.io', 'Cascading and active pods 2>0');
  for (const name of ['a', 'b']) await done('DELETE', `${ns}/pods/${name}?gracePeriodSeconds=0`);
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '50Mi' } } };
  for (const name of ['disk', 'pending'])
    await done('POST', `${ns}/persistentvolumeclaims`, { metadata: { name }, spec });
  await done('PATCH', `${ns}/persistentvolumeclaims/disk/status`, { status: { phase: 'Bound' } });
  await isRefused(ns, 'vnamespace.kb.io', 'Cascading and "Bound" status pvc 1>0');
  // It waits for its finalizer: being deleted it counts no more.
  await done('DELETE', `${ns}/persistentvolumeclaims/disk`);
  assert.equal((await done('GET', `${ns}/persistentvolumeclaims/disk`)).status.phase, 'Bound');
  await done('DELETE', ns);
  // What is being deleted is never held up.
  await label(ns, 'Always');
  await done('DELETE', ns);
});

// S-741
test('a definition: Always, then Cascading with an object, and with none', async () => {
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const name = 'testdeletioncases.e2e.kruise.io';
  const schema = { openAPIV3Schema: { type: 'object' } };
  await done('POST', crds, {
    metadata: { name, labels: labels('Always') },
    spec: {
      group: 'e2e.kruise.io',
      scope: 'Namespaced',
      names: { plural: 'testdeletioncases', singular: 'testdeletioncase', kind: 'TestDeletionCase' },
      versions: [{ name: 'v1beta1', served: true, storage: true, schema }],
    },
  });
  await isRefused(`${crds}/${name}`, 'vcustomresourcedefinition.kb.io', 'Always');
  const cases = '/apis/e2e.kruise.io/v1beta1/namespaces/default/testdeletioncases';
  const body = { apiVersion: 'e2e.kruise.io/v1beta1', kind: 'TestDeletionCase', metadata: { name: 'one' } };
  while ((await board.send('POST', cases, body)).status !== 201) await new Promise((next) => setTimeout(next, 1));
  await label(`${crds}/${name}`, 'Cascading');
  await isRefused(`${crds}/${name}`, 'vcustomresourcedefinition.kb.io', 'Cascading and active CRs 1>0');
  await done('DELETE', `${cases}/one`);
  await done('DELETE', `${crds}/${name}`);
});

// S-741
test('workloads: Always, then Cascading with replicas, and with none', async () => {
  const selector = { matchLabels: { owner: 'one' } };
  const template = { metadata: { labels: { owner: 'one' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  for (const kind of ['deployment', 'replicaset', 'statefulset']) {
    const workloads = `/apis/apps/v1/namespaces/default/${kind}s`;
    const spec = { replicas: 0, selector, template, ...(kind === 'statefulset' && { serviceName: 's' }) };
    await done('POST', workloads, { metadata: { name: 'one', labels: labels('Always') }, spec });
    await isRefused(`${workloads}/one`, `vbuiltin${kind}.kb.io`, 'Always');
    await label(`${workloads}/one`, 'Cascading', { spec: { replicas: 2 } });
    await isRefused(`${workloads}/one`, `vbuiltin${kind}.kb.io`, 'Cascading and replicas 2>0');
    await done('PATCH', `${workloads}/one`, { spec: { replicas: 0 } });
    await done('DELETE', `${workloads}/one`);
  }
});

// S-741
test('a Service and an Ingress: Always, then without the label; Cascading means nothing to them', async () => {
  const service = { spec: { selector: { owner: 'foo' }, ports: [{ port: 80, name: 'http' }] } };
  const path = { path: '/', pathType: 'Prefix', backend: { service: { name: 'one', port: { number: 80 } } } };
  const ingress = { spec: { rules: [{ host: 'a.example', http: { paths: [path] } }] } };
  for (const [collection, by, object] of [
    ['/api/v1/namespaces/default/services', 'vservice.kb.io', service],
    ['/apis/networking.k8s.io/v1/namespaces/default/ingresses', 'vingress.kb.io', ingress],
  ] as const) {
    await done('POST', collection, { metadata: { name: 'one', labels: labels('Always') }, ...object });
    await isRefused(`${collection}/one`, by, 'Always');
    // Of a collection the request names nobody.
    assert.equal((await board.send('DELETE', collection)).status, 403);
    await label(`${collection}/one`, 'Cascading');
    await done('DELETE', `${collection}/one`);
  }
  // OpenKruise leaves kube-system alone.
  const system = '/api/v1/namespaces/kube-system/services';
  await done('POST', system, { metadata: { name: 'one', labels: labels('Always') }, ...service });
  await done('DELETE', `${system}/one`);
});

// S-741
test('what was refused is counted under the names of OpenKruise', async () => {
  const configs = '/api/v1/namespaces/default/services';
  await done('POST', '/api/v1/namespaces', { metadata: { name: 'counted', labels: labels('Always') } });
  await done('POST', configs, { metadata: { name: 'x', labels: labels('Always') }, spec: { ports: [{ port: 1 }] } });
  for (const target of ['/api/v1/namespaces/counted', '/api/v1/namespaces/counted', `${configs}/x`])
    assert.equal((await board.send('DELETE', target)).status, 403);
  const metrics: string = (await board.send('GET', '/metrics')).json;
  assert.match(metrics, /^namespace_deletion_protection\{name="counted",username="admin"\} 2$/m);
  assert.match(metrics, /^crd_deletion_protection\{name="testdeletioncases\.e2e\.kruise\.io",username="admin"\} 4$/m);
  assert.match(
    metrics,
    /^workload_deletion_protection\{kind_namespace_name="Deployment_default_one",username="admin"\} 4$/m,
  );
  assert.doesNotMatch(metrics, /Service_default/);
});
