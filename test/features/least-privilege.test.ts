/**
 * Every component acts under an identity of its own and may do what its rules name and nothing else. Asked of a real
 * API server, with the component's own token: all verbs of all served resources.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeObject } from '../../packages/apimachinery/src/meta/object.ts';
import type { PolicyRule } from '../../packages/apimachinery/src/types/types.ts';
import { createSigningKey } from '../../packages/apiserver/src/auth/service-account-tokens.ts';
import { COMPONENT_NAMESPACE, COMPONENTS, EXTERNAL_COMPONENTS } from '../../packages/coracle/src/compose/components.ts';
import type { ControlPlane } from '../../packages/coracle/src/compose/control-plane.ts';
import { EVIDENCE_ACCOUNT, evidenceRules } from '../../packages/coracle/src/compose/refusal-evidence.ts';
import { VIRT_API_ACCOUNT, virtApiRules } from '../../packages/kubevirt/src/controllers/virt-api/virt-api.ts';
import { createFakeClock, type FakeClock } from '../../packages/runtime/src/clock/fake-clock.fixture.ts';
import { type ApiResponse, NEVER, NO_BYTES, type Peer } from '../../packages/runtime/src/http/seam.ts';
import { openPlane } from '../testkit/control-plane.ts';

const ISSUER = 'https://issuer.test';
const parts: readonly { account: string; rules: readonly PolicyRule[] }[] = [
  ...COMPONENTS,
  { account: VIRT_API_ACCOUNT, rules: virtApiRules },
  { account: EVIDENCE_ACCOUNT, rules: evidenceRules },
];

/** With those that run on external clusters only, and are not served here (`peer-certificates.test.ts`). */
const everywhere = [...parts, ...EXTERNAL_COMPONENTS];

/** Who may ask for every resource there is, and why it cannot be less. Nobody may use the verb `*`. */
const ALL_RESOURCES: Readonly<Record<string, string>> = {
  'coracle-resourcequota': 'counts objects of any kind against a quota',
  'coracle-disruption': 'reads the scale of whatever kind owns the Pods of a budget',
  'coracle-garbage-collector': 'collects dependents of any kind, custom ones included, and reads their owners',
  'coracle-namespace': 'empties a namespace of whatever kinds are served',
};
/** Who holds a dangerous right beside those two, as `verb group/resource`, and why. */
const DANGEROUS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'coracle-certificatesigningrequest-approving': {
    'update certificates.k8s.io/certificatesigningrequests/approval':
      'approves nodes; a right on the signer is asked for beside it, and it has that for kubelets only',
  },
  'coracle-certificatesigningrequest-signing': {
    'update certificates.k8s.io/certificatesigningrequests/status': 'puts the certificate there',
  },
  'coracle-peer-certificates': {
    'update certificates.k8s.io/certificatesigningrequests/approval':
      'approves agents; a right on the signer is asked for beside it, and it has that for a signer of ours only',
    'update certificates.k8s.io/certificatesigningrequests/status': 'puts the certificate there; the same',
  },
  'coracle-data-volume': {
    'get /secrets':
      'credentials of web servers and registries, which a DataVolume names in its own namespace; it lists none',
  },
  'coracle-export': {
    'get /secrets': 'the token of an export, in the Secret of its namespace that it names; it lists none',
    'create /secrets': 'the Secret with a token, for an export that names none',
    'create /pods': 'the Pod behind the Service of an export, which mounts nothing',
  },
  'coracle-certificatesigningrequest-cleaner': {
    'delete certificates.k8s.io/certificatesigningrequests': 'removes what is old',
  },
  'coracle-serviceaccount-token': {
    'list /secrets': 'finds Secrets of type kubernetes.io/service-account-token; RBAC cannot narrow to a type',
    'watch /secrets': 'the same',
    'update /secrets': 'fills them',
    'delete /secrets': 'removes them with their account',
  },
  'coracle-bin': {
    'get /secrets': 'brings back those that went with a machine, and sees whether they are there; by name alone',
    'create /secrets': 'the same',
    'patch /secrets': 'gives them to the machine',
    'delete /secrets': 'takes back those that it made for a machine that could not come back',
  },
  'coracle-gitops': {
    'get /secrets': 'reads the secret that a sync names, in its namespace',
    'create rbac.authorization.k8s.io/clusterrolebindings':
      'gives the account of a RootSync cluster-admin or the roles it names',
    'patch rbac.authorization.k8s.io/clusterrolebindings': 'the same, in the binding that all RootSyncs share',
    'delete rbac.authorization.k8s.io/clusterrolebindings': 'takes them away',
    'create rbac.authorization.k8s.io/rolebindings':
      'gives the account of a RootSync the roles it names in a namespace',
    'delete rbac.authorization.k8s.io/rolebindings': 'takes them away',
    'bind rbac.authorization.k8s.io/clusterroles': 'who may write RootSyncs may do anything, as upstream',
    'bind rbac.authorization.k8s.io/roles': 'the same',
  },
  'coracle-vmi': {
    'create /pods': 'launcher Pods',
    'patch /pods': 'notes on a launcher Pod that its eviction is being seen to; a Pod that runs takes little else',
  },
  'coracle-protection': {
    'create admissionregistration.k8s.io/validatingadmissionpolicies': 'the policy of deletion protection',
    'create admissionregistration.k8s.io/validatingadmissionpolicybindings': 'its binding',
  },
  'coracle-deletion-webhook': {
    'create admissionregistration.k8s.io/validatingwebhookconfigurations': 'has the API server ask it about deletions',
  },
  'coracle-migration': { 'create /pods': 'launcher Pods at the other end of a migration' },
  'coracle-clusterrole-aggregation': {
    'escalate rbac.authorization.k8s.io/clusterroles': 'writes rules that others hold into the role that collects them',
    'patch rbac.authorization.k8s.io/clusterroles': 'writes the collected rules',
  },
};
const isDangerous = (right: string): boolean =>
  / \/secrets$/.test(right) ||
  /^(create|update|patch) \/pods$/.test(right) ||
  /^(create|update|patch|delete|deletecollection) (rbac\.authorization\.k8s\.io|certificates\.k8s\.io|admissionregistration\.k8s\.io|apiregistration\.k8s\.io|apiextensions\.k8s\.io)\//.test(
    right,
  ) ||
  / \/serviceaccounts\/token$/.test(right) ||
  / \/(pods|nodes|services)\/(exec|attach|portforward|proxy)$/.test(right) ||
  /^(impersonate|escalate|bind|approve|sign|use) /.test(right);

/** Asking for these by GET takes the right to create as well: who may read everything may still run nothing. */
const RUNS_COMMANDS = /^get \/pods\/(exec|attach|portforward)$/;

/** What any authenticated service account may do: `verb group/resource`. */
const EVERYBODY = new Set([
  'create authorization.k8s.io/selfsubjectaccessreviews',
  'create authorization.k8s.io/selfsubjectrulesreviews',
  'create authentication.k8s.io/selfsubjectreviews',
  ...['get', 'list'].flatMap((verb) => [
    `${verb} kubevirt.io/kubevirts`,
    `${verb} subresources.kubevirt.io/version`,
    `${verb} subresources.kubevirt.io/guestfs`,
  ]),
  ...['get', 'list', 'watch'].flatMap((verb) => [
    `${verb} instancetype.kubevirt.io/virtualmachineclusterinstancetypes`,
    `${verb} instancetype.kubevirt.io/virtualmachineclusterpreferences`,
    `${verb} certificates.k8s.io/clustertrustbundles`,
  ]),
]);

interface Served {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespaced: boolean;
}

let plane: ControlPlane;
let clock: FakeClock;
let served: Served[];
let signingKey: string;
const stop = new AbortController();

before(async () => {
  clock = createFakeClock(Date.UTC(2030, 0, 1));
  signingKey = await createSigningKey();
  plane = await openPlane({ clock, signingKey, issuer: ISSUER, signal: stop.signal });
  served = await discover();
  // What its controller would make in every namespace, and Pods are refused without.
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: 'default' } };
  await asAdmin('POST', '/api/v1/namespaces/default/serviceaccounts', account);
});
after(async () => {
  await plane.close(AbortSignal.timeout(5000));
  stop.abort();
});

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly peer?: Peer;
}

const send = ({
  method,
  path,
  query = '',
  headers = {},
  body,
  peer = { address: '192.0.2.1' },
}: Call): Promise<ApiResponse> =>
  plane.handler({
    method,
    path,
    query,
    headers: {
      ...(body !== undefined && {
        'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      }),
      ...headers,
    },
    body: body === undefined ? NO_BYTES : new TextEncoder().encode(JSON.stringify(body)),
    peer,
    signal: NEVER,
  });
const MASTER: Peer = {
  address: '',
  certificate: { verified: true, commonName: 'admin', organizations: ['system:masters'], fingerprint: 'f' },
};
// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
async function read(call: Call): Promise<{ status: number; json: any }> {
  const { status, body } = await send(call);
  if (typeof body === 'function') throw new Error('a stream');
  const chunks = body === undefined ? [] : body instanceof Uint8Array ? [body] : body;
  const text = Buffer.concat(chunks).toString();
  return { status, json: text.startsWith('{') ? JSON.parse(text) : text };
}
const asAdmin = (method: string, path: string, body?: unknown) =>
  read({ method, path, peer: MASTER, ...(body !== undefined && { body }) });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const tokenOf = async (account: string): Promise<string> =>
  (await asAdmin('POST', `/api/v1/namespaces/kubevirt/serviceaccounts/${account}/token`, { spec: {} })).json.status
    .token;

async function discover(): Promise<Served[]> {
  const groups = (await asAdmin('GET', '/apis')).json.groups as { versions: { groupVersion: string }[] }[];
  const found: Served[] = [];
  for (const groupVersion of ['v1', ...groups.flatMap((one) => one.versions.map((version) => version.groupVersion))]) {
    const [group, version] = groupVersion.includes('/')
      ? (groupVersion.split('/') as [string, string])
      : ['', groupVersion];
    const { json } = await asAdmin('GET', group === '' ? `/api/${version}` : `/apis/${groupVersion}`);
    for (const { name, namespaced } of json.resources as { name: string; namespaced: boolean }[]) {
      const [resource = '', ...rest] = name.split('/');
      found.push({ group, version, resource, subresource: rest.join('/'), namespaced });
    }
  }
  return found;
}

const METHODS: Readonly<Record<string, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};
const VERBS = Object.keys(METHODS);
const COLLECTION = new Set(['list', 'watch', 'deletecollection']);
const NOBODY = 'no-such-object';

/** The request that asks for a verb on a resource. It changes nothing where it is allowed: the object is not there, a collection's selector fits nothing. */
function requestFor(verb: string, { group, version, resource, subresource, namespaced }: Served, name = NOBODY): Call {
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const collection = `${root}${namespaced ? '/namespaces/default' : ''}/${resource}`;
  const onObject = subresource !== '' || !(COLLECTION.has(verb) || verb === 'create');
  const path = onObject ? `${collection}/${name}${subresource && `/${subresource}`}` : collection;
  const query = COLLECTION.has(verb) ? `labelSelector=no-such-label%3Dx${verb === 'watch' ? '&watch=1' : ''}` : '';
  // A body without a name and kind: where creating is allowed, it is refused as a bad object and not as forbidden.
  return { method: METHODS[verb]!, path, query, ...(['create', 'update', 'patch'].includes(verb) && { body: {} }) };
}
/** Subresources have no collection. */
const verbsOf = ({ subresource }: Served): readonly string[] =>
  subresource === '' ? VERBS : VERBS.filter((verb) => !COLLECTION.has(verb));
const titleOf = ({ group, resource, subresource }: Served): string =>
  `${group}/${resource}${subresource && `/${subresource}`}`;

/** Everything `rules` allow on any name, as `verb group/resource`. Written without the server's own matching. */
function rightsOf(rules: readonly PolicyRule[]): Set<string> {
  const rights = new Set<string>();
  for (const { apiGroups = [], resources = [], verbs, resourceNames } of rules) {
    if (resourceNames) continue;
    for (const one of served) {
      const plain = `${one.resource}${one.subresource && `/${one.subresource}`}`;
      const fits =
        (apiGroups.includes('*') || apiGroups.includes(one.group)) &&
        (resources.includes('*') || resources.includes(plain) || resources.includes(`*/${one.subresource}`));
      if (fits) for (const verb of verbs) rights.add(`${verb} ${one.group}/${plain}`);
    }
  }
  return rights;
}

/** True when the answer says that the asker may not. */
const isRefused = ({ status }: { readonly status: number }): boolean => status === 403;

for (const { account, rules } of parts) {
  // S-104: Every component has an identity of its own that may do what its rules name and nothing else; wide rights are
  //   listed, each with its reason.
  test(`${account}: its token may do what its rules name and nothing else`, async () => {
    const headers = bearer(await tokenOf(account));
    const rights = rightsOf(rules);
    const wrong: string[] = [];
    let granted = 0;
    for (const one of served) {
      for (const verb of verbsOf(one)) {
        const right = `${verb} ${titleOf(one)}`;
        const enough = !RUNS_COMMANDS.test(right) || rights.has(right.replace('get', 'create'));
        const wanted = (rights.has(right) && enough) || EVERYBODY.has(right);
        const response = await send({ ...requestFor(verb, one), headers });
        // What virt-api does not route it answers by 404 or 405, whoever asks.
        if (one.group === 'subresources.kubevirt.io' && [404, 405].includes(response.status) && !wanted) continue;
        if (isRefused(response) === wanted)
          wrong.push(`${right}: ${wanted ? 'refused' : 'allowed'} (${response.status})`);
        if (!isRefused(response)) granted++;
        assert.notEqual(response.status, 500, `${right}: ${response.status}`);
      }
    }
    assert.deepEqual(wrong, []);
    assert.ok(rules.length > 0 && granted > 0, `${account} holds no right at all: is it wired?`);
  });

  test(`${account}: rules on single names hold for those names only`, async () => {
    const headers = bearer(await tokenOf(account));
    for (const { apiGroups = [], resources = [], resourceNames = [], verbs } of rules) {
      for (const one of served.filter(
        ({ group, resource }) => apiGroups.includes(group) && resources.includes(resource),
      )) {
        if (one.subresource !== '') continue;
        for (const verb of verbs) {
          for (const name of resourceNames)
            assert.ok(!isRefused(await send({ ...requestFor(verb, one, name), headers })));
        }
      }
    }
  });

  test(`${account}: nobody else's identity, no documents but the public ones`, async () => {
    const headers = bearer(await tokenOf(account));
    for (const who of [
      { 'impersonate-user': 'admin' },
      { 'impersonate-user': 'system:anonymous' },
      { 'impersonate-user': `system:serviceaccount:${COMPONENT_NAMESPACE}:coracle-vm` },
      { 'impersonate-user': 'x', 'impersonate-group': 'system:masters' },
    ])
      assert.equal(
        (
          await send({
            method: 'GET',
            path: '/api/v1/namespaces/default/configmaps/x',
            headers: { ...headers, ...who },
          })
        ).status,
        403,
      );
    for (const path of ['/metrics', '/debug/pprof', '/logs', '/', '/configz'])
      assert.equal((await send({ method: 'GET', path, headers })).status, 403, path);
    for (const path of ['/api', '/apis', '/openapi/v2', '/openapi/v3', '/version', '/readyz'])
      assert.equal((await send({ method: 'GET', path, headers })).status, 200, path);
  });
}

/** What a node may ask for while no Pod is bound to it, as `verb group/resource`; the objects asked about are not there. */
const NODE_WITHOUT_PODS: ReadonlySet<string> = new Set([
  ...['create /tokenreviews', 'create /subjectaccessreviews', 'create /localsubjectaccessreviews'].map((right) =>
    right.replace(' /', right.includes('token') ? ' authentication.k8s.io/' : ' authorization.k8s.io/'),
  ),
  ...['get', 'list', 'watch'].map((verb) => `${verb} /services`),
  ...['create', 'update', 'patch'].map((verb) => `${verb} /nodes`),
  ...['update', 'patch'].map((verb) => `${verb} /nodes/status`),
  ...['create', 'update', 'patch'].flatMap((verb) => [`${verb} /events`, `${verb} events.k8s.io/events`]),
  'get /events',
  'delete /pods',
  ...['update', 'patch'].map((verb) => `${verb} /pods/status`),
  'create /pods/eviction',
  'get /endpoints',
  ...['create', 'get', 'list', 'watch'].map((verb) => `${verb} certificates.k8s.io/certificatesigningrequests`),
  ...['get', 'list', 'watch'].flatMap((verb) => [
    `${verb} storage.k8s.io/csidrivers`,
    `${verb} node.k8s.io/runtimeclasses`,
  ]),
  ...['get', 'patch'].map((verb) => `${verb} kubevirt.io/virtualmachineinstances`),
  'list kubevirt.io/kubevirts',
  // Which networks there are beside that of Pods: of which it serves those that its Pods are on.
  'get k8s.cni.cncf.io/network-attachment-definitions',
  'get cdi.kubevirt.io/cdiconfigs',
]);

// S-136: A node agent may do what every node may, and touches nothing that is not its own.
test('a node may do what every node may, and touches nothing that is not its own', async () => {
  const certificate = {
    verified: true,
    commonName: 'system:node:n1',
    organizations: ['system:nodes'],
    fingerprint: 'n1',
  };
  const peer: Peer = { address: '192.0.2.1', certificate };
  const wrong: string[] = [];
  for (const one of served) {
    for (const verb of verbsOf(one)) {
      const right = `${verb} ${titleOf(one)}`;
      const call = requestFor(verb, one);
      const { status, body } = await send({ ...call, peer });
      const text = body instanceof Uint8Array ? Buffer.from(body).toString() : '';
      // Writes that the authorizer lets pass are refused by NodeRestriction where the object is not the node's own.
      const restricted = status === 403 && !text.includes('is forbidden: User ');
      const allowed = !isRefused({ status }) || restricted;
      if (one.group === 'subresources.kubevirt.io' && [404, 405].includes(status)) continue;
      const wanted = NODE_WITHOUT_PODS.has(right) || (EVERYBODY.has(right) && !right.includes('clustertrustbundles'));
      if (allowed !== wanted)
        wrong.push(`${right}: ${wanted ? 'refused' : 'allowed'} (${status} ${text.slice(0, 300)})`);
    }
  }
  assert.deepEqual(wrong, []);
});

// S-104
test('wide and dangerous rights are the ones on the list, each with its reason', () => {
  for (const { account, rules } of everywhere) {
    const verbs = rules.flatMap((rule) => rule.verbs);
    assert.ok(!verbs.includes('*'), `${account} uses the verb *`);
    const wide = rules.some((rule) =>
      [...(rule.resources ?? []), ...(rule.apiGroups ?? []), ...(rule.nonResourceURLs ?? [])].includes('*'),
    );
    assert.equal(
      wide,
      Object.hasOwn(ALL_RESOURCES, account),
      `${account} asks for all resources: say why, or name them`,
    );
    if (wide) {
      // Even these may not make things of any kind.
      const all = rules.filter((rule) => rule.resources?.includes('*')).flatMap((rule) => rule.verbs);
      assert.deepEqual(
        all.filter((verb) => ['create', 'update', 'impersonate', 'bind', 'escalate'].includes(verb)),
        [],
      );
      continue;
    }
    const dangerous = [...rightsOf(rules)].filter(isDangerous).sort();
    assert.deepEqual(dangerous, Object.keys(DANGEROUS[account] ?? {}).sort(), account);
  }
  for (const account of [...Object.keys(ALL_RESOURCES), ...Object.keys(DANGEROUS)])
    assert.ok(
      everywhere.some((part) => part.account === account),
      `${account} is listed and does not exist`,
    );
});

// S-904
test('another’s name is asked in by one component, and in the accounts of one namespace', async () => {
  const named = COMPONENTS.filter(({ localRules = [] }) => JSON.stringify(localRules).includes('impersonate'));
  assert.deepEqual(
    named.map(({ account, localRules = [] }) => [account, localRules.map(({ namespace }) => namespace)]),
    [['coracle-gitops', ['config-management-system']]],
  );
  const headers = bearer(await tokenOf('coracle-gitops'));
  const ask = async (account: string) => {
    const who = { 'impersonate-user': `system:serviceaccount:${account}` };
    const path = '/api/v1/namespaces/default/configmaps/x';
    return (await read({ method: 'GET', path, headers: { ...headers, ...who } })).json.message as string;
  };
  assert.match(
    await ask('config-management-system:root-reconciler'),
    /User "system:serviceaccount:config-management-system:root-reconciler" cannot get/,
  );
  assert.match(await ask('kube-system:any'), /cannot impersonate/);
});

// S-104
test('each account is bound to one role, the one of its rules', async () => {
  const { json } = await asAdmin('GET', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings');
  const local = await asAdmin('GET', '/apis/rbac.authorization.k8s.io/v1/rolebindings');
  type Binding = { roleRef: { name: string }; subjects?: { kind: string; name: string; namespace?: string }[] };
  for (const { account, rules } of parts) {
    const isMine = ({ subjects = [] }: Binding): boolean =>
      subjects.some(
        (subject) =>
          subject.kind === 'ServiceAccount' && subject.name === account && subject.namespace === COMPONENT_NAMESPACE,
      );
    const mine = (local.json.items as (Binding & { metadata: { namespace: string } })[]).filter(isMine);
    const { localRules = [] } = COMPONENTS.find((one) => one.account === account) ?? {};
    assert.deepEqual(
      mine.map(({ metadata }) => metadata.namespace),
      localRules.map(({ namespace }) => namespace),
      account,
    );
    for (const { roleRef, metadata } of mine) {
      const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${metadata.namespace}/roles/${roleRef.name}`;
      const wanted = localRules.find(({ namespace }) => namespace === metadata.namespace)?.rules;
      assert.deepEqual((await asAdmin('GET', path)).json.rules, wanted, account);
    }
    const roles = new Set((json.items as Binding[]).filter(isMine).map(({ roleRef }) => roleRef.name));
    for (const name of roles) {
      const role = await asAdmin('GET', `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}`);
      assert.deepEqual(role.json.rules, rules, name);
    }
    assert.ok(roles.size > 0, account);
  }
});

// S-105: Without a credential: version and health, and nothing else; a credential that does not hold is 401, forged,
//   expired or orphaned.
test('without a credential: version and health, and nothing else', async () => {
  for (const path of ['/version', '/version/', '/healthz', '/livez', '/readyz'])
    assert.equal((await send({ method: 'GET', path })).status, 200, path);
  for (const path of [
    '/',
    '/api',
    '/api/v1',
    '/apis',
    '/apis/apps',
    '/apis/apps/v1',
    '/apis/subresources.kubevirt.io/v1',
    '/openapi/v2',
    '/openapi/v3',
    '/openapi/v3/api/v1',
    '/metrics',
    '/healthz/ping',
    '/livez/ping',
    '/readyz/ping',
    '/.well-known/openid-configuration',
    '/openid/v1/jwks',
    '/no/such/path',
  ])
    assert.equal((await send({ method: 'GET', path })).status, 403, path);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'])
    assert.equal((await send({ method, path: '/version' })).status, 403, method);
  const open: string[] = [];
  for (const one of served) {
    for (const verb of verbsOf(one)) {
      const response = await send(requestFor(verb, one));
      if (one.group === 'subresources.kubevirt.io' && [404, 405].includes(response.status)) continue;
      if (!isRefused(response)) open.push(`${verb} ${titleOf(one)} (${response.status})`);
    }
  }
  assert.deepEqual(open, []);
});

// S-105
// Compat Authentication and impersonation, P0, yes: a wrong credential is 401, never anonymous
test('a credential that does not hold is 401, whatever is asked', async (t) => {
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'guest', namespace: 'default' } };
  assert.equal((await asAdmin('POST', '/api/v1/namespaces/default/serviceaccounts', account)).status, 201);
  const mint = async (spec: object): Promise<string> => {
    const { status, json } = await asAdmin('POST', '/api/v1/namespaces/default/serviceaccounts/guest/token', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
    });
    assert.equal(status, 201, JSON.stringify(json));
    return json.status.token;
  };
  const asks = async (token: string): Promise<number> =>
    (await send({ method: 'GET', path: '/version', headers: bearer(token) })).status;
  const whoAmI = async (token: string) =>
    (
      await read({
        method: 'POST',
        path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
        headers: bearer(token),
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      })
    ).json.status?.userInfo;

  await t.test('one of another audience', async () => {
    assert.equal(await asks(await mint({ audiences: ['vault'] })), 401);
    assert.equal(await asks(await mint({ audiences: ['vault', ISSUER] })), 200);
  });
  await t.test('one that has expired', async () => {
    const token = await mint({ expirationSeconds: 600 });
    assert.equal((await whoAmI(token)).username, 'system:serviceaccount:default:guest');
    await clock.advance(599_000);
    assert.equal(await asks(token), 200);
    await clock.advance(2_000);
    assert.equal(await asks(token), 401);
  });
  await t.test("one bound to a Pod that is gone, and a component's whose account was made anew", async () => {
    const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'default' } };
    const spec = { serviceAccountName: 'guest', containers: [{ name: 'c', image: 'i' }] };
    assert.equal((await asAdmin('POST', '/api/v1/namespaces/default/pods', { ...pod, spec })).status, 201);
    const bound = await mint({ boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p' } });
    assert.equal(await asks(bound), 200);
    await asAdmin('DELETE', '/api/v1/namespaces/default/pods/p', { gracePeriodSeconds: 0 });
    assert.equal(await asks(bound), 401);
    const accounts = `/api/v1/namespaces/${COMPONENT_NAMESPACE}/serviceaccounts`;
    const component = await tokenOf('coracle-vm');
    assert.equal(await asks(component), 200);
    await asAdmin('DELETE', `${accounts}/coracle-vm`);
    assert.equal(await asks(component), 401);
    await asAdmin('POST', accounts, { ...account, metadata: { name: 'coracle-vm', namespace: COMPONENT_NAMESPACE } });
    assert.equal(await asks(component), 401, 'the new account of the same name is not the old one');
  });
  await t.test('one of a service account that was deleted, and made anew', async () => {
    const token = await mint({});
    assert.equal(await asks(token), 200);
    await asAdmin('DELETE', '/api/v1/namespaces/default/serviceaccounts/guest');
    assert.equal(await asks(token), 401);
    await asAdmin('POST', '/api/v1/namespaces/default/serviceaccounts', account);
    assert.equal(await asks(token), 401);
  });
  await t.test('forged and broken ones', async () => {
    const good = await mint({});
    const [head = '', body = '', signature = ''] = good.split('.');
    const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString());
    const forged = { ...claims, sub: 'system:serviceaccount:kubevirt:coracle-agent' };
    const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`;
    for (const token of [
      `${head}.${encode(forged)}.${signature}`,
      `${encode({ alg: 'none' })}.${encode(claims)}.`,
      `${encode({ alg: 'none', typ: 'JWT' })}.${encode(claims)}.${signature}`,
      `${encode({ alg: 'HS256', kid: JSON.parse(Buffer.from(head, 'base64url').toString()).kid })}.${body}.${signature}`,
      `${head}.${body}.${flipped}`,
      `${head}.${body}`,
      `${good}.x`,
      'x'.repeat(100_000),
      '..',
      'admin',
    ])
      assert.equal(await asks(token), 401, token.slice(0, 60));
    for (const authorization of ['Bearer', 'Bearer ', 'Basic YWRtaW46YWRtaW4=', 'Negotiate x', good, ''])
      assert.equal(
        (await send({ method: 'GET', path: '/version', headers: { authorization } })).status,
        401,
        authorization.slice(0, 20),
      );
    const untrusted: Peer = { address: '', certificate: { ...MASTER.certificate!, verified: false } };
    assert.equal((await send({ method: 'GET', path: '/version', peer: untrusted })).status, 401);
    const nameless: Peer = { address: '', certificate: { ...MASTER.certificate!, commonName: '' } };
    assert.equal((await send({ method: 'GET', path: '/version', peer: nameless })).status, 401);
    // Headers of a front proxy mean nothing to a server that has none.
    const fronted = await send({
      method: 'GET',
      path: '/api/v1/secrets',
      headers: { 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' },
    });
    assert.equal(fronted.status, 403);
  });
});
