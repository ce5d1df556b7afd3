/**
 * Protection on an external cluster: a server of ours without KubeVirt's admission stands for it, which asks the
 * webhook of `coracle controllers` over TLS, and has the policies of `coracle rbac`.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Authorizer } from '../../packages/apiserver/src/auth/identity.ts';
import { createClient } from '../../packages/client/src/create-client.ts';
import { controllerManifests } from '../../packages/coracle/src/compose/component-policy.ts';
import { chooseComponents, keepRunning } from '../../packages/coracle/src/compose/components.ts';
import { DELETION_WEBHOOK_RULES } from '../../packages/coracle/src/compose/deletion-webhook.ts';
import { createOutbound } from '../../packages/coracle/src/compose/outbound.ts';
import { webhookEndpoint } from '../../packages/coracle/src/compose/webhook-endpoint.ts';
import { kubevirtResources } from '../../packages/kubevirt/src/kinds/kubevirt.ts';
import { systemClock } from '../../packages/runtime/src/clock/clock.ts';
import type { ApiHandler } from '../../packages/runtime/src/http/seam.ts';
import { silentLogger } from '../../packages/runtime/src/log/log.ts';
import { eventually } from '../testkit/eventually.ts';
import { type Answer, type InProcessServer, startServer } from '../testkit/in-process-server.ts';

const LABEL = 'kubevirt.io/vm-delete-protection';
const CONFIGURATION =
  '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/coracle-deletion-protection';
const NAMESPACE = '/api/v1/namespaces/shop';
const VMS = '/apis/kubevirt.io/v1/namespaces/shop/virtualmachines';

let server: InProcessServer;
let outbound: ReturnType<typeof createOutbound>;
let stop: AbortController;
let running: Promise<void>;

const send = (method: string, path: string, body?: object, user?: string): Promise<Answer> =>
  server.request(method, path, { ...(body && { body }), ...(user && { headers: { 'x-user': user } }) });
const accepted = async (method: string, path: string, body?: object): Promise<Answer['json']> => {
  const { status, text, json } = await send(method, path, body);
  assert.ok(status < 300, `${method} ${path}: ${status} ${text}`);
  return json;
};
const vm = (name: string, volumes: readonly object[], more: object = {}) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name, labels: { [LABEL]: 'true' } },
  spec: { runStrategy: 'Halted', template: { spec: { domain: { devices: {} }, volumes } }, ...more },
});
const label = (value: string | null, name = 'db'): Promise<Answer['json']> =>
  accepted('PATCH', `${VMS}/${name}`, { metadata: { labels: { [LABEL]: value } } });

/** As its account, with the rights that `coracle rbac` gives it and no others. */
const ACCOUNT = 'system:serviceaccount:kubevirt:coracle-deletion-webhook';
const isAllowed: Authorizer = (user, asked) => {
  const names = (list: readonly string[] | undefined, word: string): boolean => list?.includes(word) === true;
  const allowed =
    user.username !== ACCOUNT ||
    (asked.type === 'resource' &&
      DELETION_WEBHOOK_RULES.some(
        (rule) =>
          names(rule.apiGroups, asked.group) &&
          names(rule.resources, asked.resource) &&
          names(rule.verbs, asked.verb) &&
          (rule.resourceNames === undefined || names(rule.resourceNames, asked.name)),
      ));
  return { allowed, reason: '' };
};
const asAccount: ApiHandler = (request) =>
  server.handler({ ...request, headers: { ...request.headers, 'x-user': ACCOUNT } });

const startComponent = (): void => {
  stop = new AbortController();
  const [component] = chooseComponents('deletion-webhook', { external: true });
  running = keepRunning({
    component: component!,
    client: createClient(asAccount),
    facts: {
      rootCa: '',
      serveWebhook: webhookEndpoint({ address: '127.0.0.1', port: 0, clock: systemClock, log: silentLogger }),
    },
    clock: systemClock,
    log: silentLogger,
    signal: stop.signal,
  });
};
const stopComponent = async (): Promise<void> => {
  stop.abort();
  await running;
};
const isConfigured = (): Promise<unknown> =>
  eventually(
    () => send('GET', CONFIGURATION),
    ({ status }) => status === 200,
  );

before(
  async () => {
    outbound = createOutbound({
      store: { get: (key) => server.store.get(key), list: (...args) => server.store.list(...args) },
    });
    server = await startServer({
      resources: kubevirtResources(),
      connectOutbound: outbound.connect,
      authorize: isAllowed,
      authenticate: async ({ headers }) => ({
        username: headers['x-user'] ?? 'root',
        groups: ['system:masters', 'system:authenticated'],
      }),
    });
    await accepted('POST', '/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const manifests = controllerManifests(chooseComponents('deletion-webhook', { external: true }));
    for (const manifest of manifests.filter(({ kind }) => kind.startsWith('ValidatingAdmissionPolicy'))) {
      const plural = `${manifest.kind.replace(/y$/, 'ie').toLowerCase()}s`;
      await accepted('POST', `/apis/${manifest.apiVersion}/${plural}`, manifest);
    }
  },
  { timeout: 600_000 },
);
after(async () => {
  await server.stop();
  outbound.close();
});

const volumes = [
  { name: 'a', persistentVolumeClaim: { claimName: 'part' } },
  { name: 'b', secret: { secretName: 'part' } },
  { name: 'c', configMap: { name: 'part' } },
  { name: 'd', serviceAccount: { serviceAccountName: 'part' } },
];
const revision = {
  data: { apiVersion: 'instancetype.kubevirt.io/v1beta1', kind: 'VirtualMachinePreference', metadata: { name: 'p' } },
  revision: 0,
};
const claimSpec = { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } } };
const PARTS: readonly [path: string, body: object][] = [
  [`${NAMESPACE}/persistentvolumeclaims`, claimSpec],
  [`${NAMESPACE}/secrets`, {}],
  [`${NAMESPACE}/configmaps`, {}],
  [`${NAMESPACE}/serviceaccounts`, {}],
  ['/apis/apps/v1/namespaces/shop/controllerrevisions', revision],
];
async function make(): Promise<void> {
  for (const [path, body] of PARTS) await accepted('POST', path, { metadata: { name: 'part' }, ...body });
  await accepted(
    'POST',
    VMS,
    vm('db', volumes, { preference: { kind: 'VirtualMachinePreference', name: 'p', revisionName: 'part' } }),
  );
}
async function clear(): Promise<void> {
  await label(null);
  await accepted('DELETE', `${VMS}/db`);
  for (const [path] of PARTS) await accepted('DELETE', `${path}/part`);
}
const REFERS = /protected VirtualMachine shop\/db .*refers to it; disable\/remove label/;

describe('while the webhook is away', () => {
  // S-711
  it('the policy of coracle rbac keeps what protected machines name', async () => {
    await make();
    for (const [path] of PARTS) {
      for (const query of ['', '?dryRun=All']) {
        const { status, json } = await send('DELETE', `${path}/part${query}`);
        assert.equal(status, 403, path);
        assert.match(json.message, REFERS);
      }
      assert.equal(
        (await send('POST', path, { metadata: { name: 'other' }, ...PARTS.find(([p]) => p === path)![1] })).status,
        201,
      );
      assert.equal((await send('DELETE', `${path}/other`)).status, 200);
    }
    // One that says "true" alone protects; the machine that goes does not.
    await label('TRUE');
    assert.equal((await send('DELETE', `${PARTS[1]![0]}/part?dryRun=All`)).status, 200);
    await clear();
  });
});

describe('with the webhook', () => {
  before(async () => {
    startComponent();
    await isConfigured();
  });
  after(() => stopComponent());

  // S-711: On an external cluster the API server asks a webhook of `coracle controllers`, which decides as the embedded
  //   server does, by the state that is there now; while it is away a policy that `coracle rbac` prints keeps what
  //   protected machines name, and namespaces and definitions stay.
  it('refuses as the embedded server does: parts, firmware state, volumes, and what holds machines', async () => {
    await make();
    const claims = PARTS[0]![0];
    const state = { metadata: { name: 'state', labels: { 'persistent-state-for': 'db' } }, ...claimSpec };
    await accepted('POST', claims, state);
    const { metadata } = await accepted('GET', `${claims}/part`);
    await accepted('POST', '/api/v1/persistentvolumes', {
      metadata: { name: 'pv' },
      spec: {
        capacity: { storage: '1Mi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/x' },
        claimRef: { namespace: 'shop', name: 'part', uid: metadata.uid },
      },
    });
    await accepted('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'network-attachment-definitions.k8s.cni.cncf.io' },
      spec: {
        group: 'k8s.cni.cncf.io',
        scope: 'Namespaced',
        names: { plural: 'network-attachment-definitions', kind: 'NetworkAttachmentDefinition' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    });
    await accepted('PATCH', `${VMS}/db`, {
      spec: { template: { spec: { networks: [{ name: 'n', multus: { networkName: 'wire' } }] } } },
    });
    const refused: readonly (readonly [path: string, text: RegExp])[] = [
      ...PARTS.map(([path]) => [`${path}/part`, REFERS] as const),
      [`${claims}/state`, /label persistent-state-for of the claim/],
      ['/api/v1/persistentvolumes/pv', /claim shop\/part, .*refers to it/],
      [NAMESPACE, /protected VirtualMachine shop\/db is in it/],
      [
        '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/network-attachment-definitions.k8s.cni.cncf.io',
        /spec.template.spec.networks\[0\].multus.networkName.* refers to it/,
      ],
    ];
    for (const [path, text] of refused)
      for (const query of ['', '?dryRun=All']) {
        const { status, json } = await send('DELETE', `${path}${query}`);
        assert.equal(status, 403, path);
        assert.match(json.message, text);
      }
    await label('False');
    for (const [path] of refused) assert.equal((await send('DELETE', `${path}?dryRun=All`)).status, 200, path);
    await label('True');
    for (const [path] of refused) assert.equal((await send('DELETE', `${path}?dryRun=All`)).status, 403, path);
    await clear();
    for (const path of [`${claims}/state`, '/api/v1/persistentvolumes/pv']) await accepted('DELETE', path);
  });

  // S-711
  it('is right at once after a label was set or taken away, whatever its copy says', async () => {
    await accepted('POST', `${NAMESPACE}/secrets`, { metadata: { name: 'part' } });
    await accepted('POST', VMS, vm('db', [{ name: 'b', secret: { secretName: 'part' } }]));
    for (let round = 0; round < 20; round++) {
      await label(round % 2 === 0 ? null : 'true');
      const { status, text } = await send('DELETE', `${NAMESPACE}?dryRun=All`);
      assert.equal(status, round % 2 === 0 ? 200 : 403, text);
    }
    await label(null);
    await accepted('DELETE', `${VMS}/db`);
    await accepted('DELETE', `${NAMESPACE}/secrets/part`);
  });

  // S-711
  it('its configuration comes back when it is edited or deleted', async () => {
    const before = (await accepted('GET', CONFIGURATION)).webhooks;
    await accepted('PATCH', CONFIGURATION, { webhooks: [] });
    await eventually(
      () => send('GET', CONFIGURATION),
      ({ json }) => JSON.stringify(json.webhooks) === JSON.stringify(before),
    );
    await accepted('DELETE', CONFIGURATION);
    await isConfigured();
  });
});

describe('when it is away again', () => {
  // S-711
  it('parts are decided by the policy, and nothing that holds machines goes until its configuration is taken away', async () => {
    await accepted('POST', `${NAMESPACE}/secrets`, { metadata: { name: 'free' } });
    await accepted('DELETE', `${NAMESPACE}/secrets/free`);
    assert.equal((await send('DELETE', `${NAMESPACE}?dryRun=All`)).status, 500);
    await accepted('DELETE', CONFIGURATION);
    assert.equal((await send('DELETE', `${NAMESPACE}?dryRun=All`)).status, 200);
  });
});
