import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type InProcessServer, startServer } from '../testkit/in-process-server.ts';

let server: InProcessServer;
before(async () => {
  server = await startServer({ defaultAdmission: true });
});
after(() => server.stop());

let number = 0;
async function namespaceWith(labels: Readonly<Record<string, string>>): Promise<string> {
  const name = `n${number++}`;
  const prefixed = Object.fromEntries(
    Object.entries(labels).map(([key, value]) => [`pod-security.kubernetes.io/${key}`, value]),
  );
  await server.create('/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name, labels: prefixed },
  });
  await server.create(`/api/v1/namespaces/${name}/serviceaccounts`, {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default' },
  });
  return name;
}
const create = (namespace: string, spec: object, name = 'p') =>
  server.request('POST', `/api/v1/namespaces/${namespace}/pods`, {
    body: { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec },
  });

const PLAIN = { containers: [{ name: 'a', image: 'i' }] };
const GOOD = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [
    { name: 'a', image: 'i', securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } },
  ],
};
const RESTRICTED =
  'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), ' +
  'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), ' +
  'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), ' +
  'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")';

// S-168: The levels of Pod security are enforced, warned about and audited as the labels of the namespace say.
// Compat Admission and quota, P1, yes: PodSecurity
test('the restricted level: what it wants is said, and kept it lets in', async () => {
  const namespace = await namespaceWith({ enforce: 'restricted' });
  const { status, json } = await create(namespace, PLAIN);
  assert.equal(status, 403);
  assert.equal(json.message, `pods "p" is forbidden: violates PodSecurity "restricted:latest": ${RESTRICTED}`);
  assert.equal((await create(namespace, GOOD)).status, 201);
});

// S-168
test('the baseline level', async (t) => {
  const namespace = await namespaceWith({ enforce: 'baseline' });
  const one = (securityContext: object) => ({ containers: [{ name: 'a', image: 'i', securityContext }] });
  const cases: [object, string][] = [
    [one({ privileged: true }), 'privileged (container "a" must not set securityContext.privileged=true)'],
    [{ ...PLAIN, hostNetwork: true, hostPID: true }, 'host namespaces (hostNetwork, hostPID)'],
    [{ ...PLAIN, volumes: [{ name: 'v', hostPath: { path: '/' } }] }, 'hostPath volumes (volume "v")'],
    [
      { containers: [{ name: 'a', image: 'i', ports: [{ containerPort: 80, hostPort: 80 }] }] },
      'hostPort (container "a" uses hostPort 80)',
    ],
    [
      one({ capabilities: { add: ['SYS_ADMIN', 'NET_RAW', 'CHOWN'] } }),
      'non-default capabilities (container "a" must not include "NET_RAW", "SYS_ADMIN" in securityContext.capabilities.add)',
    ],
    [
      one({ seccompProfile: { type: 'Unconfined' } }),
      'seccompProfile (container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
    ],
    [
      { ...PLAIN, securityContext: { seLinuxOptions: { type: 'spc_t', user: 'u' } } },
      'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set)',
    ],
    [
      { ...PLAIN, securityContext: { sysctls: [{ name: 'kernel.msgmax', value: '1' }] } },
      'forbidden sysctls (kernel.msgmax)',
    ],
    [
      { ...PLAIN, securityContext: { appArmorProfile: { type: 'Unconfined' } } },
      'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ],
    [one({ procMount: 'Unmasked' }), 'procMount (container "a" must not set securityContext.procMount to "Unmasked")'],
  ];
  for (const [spec, text] of cases) {
    await t.test(text.split(' (')[0]!, async () => {
      const { status, json } = await create(namespace, spec);
      assert.equal(status, 403);
      assert.equal(json.message, `pods "p" is forbidden: violates PodSecurity "baseline:latest": ${text}`);
    });
  }
  assert.equal((await create(namespace, PLAIN)).status, 201);
});

// S-168
test('warn lets the Pod in and says why it should not have been; so for controllers of Pods', async () => {
  const namespace = await namespaceWith({ warn: 'restricted', 'warn-version': 'v1.30' });
  const { status, headers } = await create(namespace, PLAIN);
  assert.equal(status, 201);
  const warning = `would violate PodSecurity "restricted:v1.30": ${RESTRICTED}`;
  assert.equal(headers['warning'], `299 - ${JSON.stringify(warning)}`);
  const deployment = await server.request('POST', `/apis/apps/v1/namespaces/${namespace}/deployments`, {
    body: {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'd' },
      spec: {
        selector: { matchLabels: { a: 'b' } },
        template: { metadata: { labels: { a: 'b' } }, spec: PLAIN },
      },
    },
  });
  assert.equal(deployment.status, 201, deployment.text);
  assert.equal(deployment.headers['warning'], `299 - ${JSON.stringify(warning)}`);
});

test('an older version of the standard asks for less', async () => {
  const namespace = await namespaceWith({ enforce: 'restricted', 'enforce-version': 'v1.7' });
  const { json } = await create(namespace, PLAIN);
  assert.match(json.message, /violates PodSecurity "restricted:v1.7": runAsNonRoot != true \([^)]*\)$/);
});

test('a namespace without labels asks for nothing', async () => {
  const namespace = await namespaceWith({});
  const spec = { hostNetwork: true, containers: [{ name: 'a', image: 'i', securityContext: { privileged: true } }] };
  const { status, headers } = await create(namespace, spec);
  assert.equal(status, 201);
  assert.equal(headers['warning'], undefined);
});

test('labels that say nothing valid are refused; a stricter level names the Pods it would not let in', async () => {
  const bad = await server.request('POST', '/api/v1/namespaces', {
    body: {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'bad', labels: { 'pod-security.kubernetes.io/enforce': 'tight' } },
    },
  });
  assert.equal(bad.status, 422);
  assert.match(
    bad.json.message,
    /metadata\.labels\[pod-security\.kubernetes\.io\/enforce\]: Invalid value: "tight": must be one of privileged, baseline, restricted/,
  );
  const namespace = await namespaceWith({});
  for (const name of ['x', 'y', 'z']) await create(namespace, PLAIN, name);
  const patched = await server.request('PATCH', `/api/v1/namespaces/${namespace}`, {
    body: { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
  });
  assert.equal(patched.status, 200);
  assert.equal(
    patched.headers['warning'],
    [
      `existing pods in namespace "${namespace}" violate the new PodSecurity enforce level "restricted:latest"`,
      'x (and 2 other pods): allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile',
    ]
      .map((text) => `299 - ${JSON.stringify(text)}`)
      .join(', '),
  );
});

test('an update that changes nothing that is checked is let through', async () => {
  const namespace = await namespaceWith({});
  await create(namespace, PLAIN);
  await server.request('PATCH', `/api/v1/namespaces/${namespace}`, {
    body: { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } } },
  });
  const patch = (body: object) =>
    server.request('PATCH', `/api/v1/namespaces/${namespace}/pods/p`, {
      body,
      headers: { 'content-type': 'application/strategic-merge-patch+json' },
    });
  assert.equal((await patch({ metadata: { labels: { a: 'b' } } })).status, 200);
  assert.equal((await patch({ spec: { containers: [{ name: 'a', image: 'other' }] } })).status, 403);
});
