/** Access reviews asked of a whole control plane: selectors, paths, rules, and what is refused as a question. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startPlane, type TestPlane } from '../testkit/control-plane.ts';

const ROOT = '/apis/authorization.k8s.io/v1';
let plane: TestPlane;
before(async () => {
  plane = await startPlane();
});
after(() => plane.stop());

const review = (kind: string, spec: object, path = `${kind.toLowerCase()}s`) =>
  plane.ask(`POST ${ROOT}/${path}`, {
    as: ['admin', 'system:masters'],
    body: { apiVersion: 'authorization.k8s.io/v1', kind, spec },
  });
const node = { user: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };

// Compat Authorisation, P2, yes: selectors as attributes of authorisation
test('a review takes selectors into account: a node lists the Pods on it and no others', async () => {
  const pods = (more: object) => ({ resourceAttributes: { verb: 'list', resource: 'pods', ...more }, ...node });
  const requirement = (value: string) => ({
    fieldSelector: { requirements: [{ key: 'spec.nodeName', operator: 'In', values: [value] }] },
  });
  const status = async (more: object) => (await review('SubjectAccessReview', pods(more))).json.status;
  assert.deepEqual(await status(requirement('n1')), { allowed: true });
  assert.deepEqual(await status({ fieldSelector: { rawSelector: 'spec.nodeName=n1' } }), { allowed: true });
  const none = { allowed: false, reason: 'can only list/watch pods with spec.nodeName field selector' };
  assert.deepEqual(await status(requirement('n2')), none);
  assert.deepEqual(await status({}), none);
  const { evaluationError, ...rest } = await status({ fieldSelector: { rawSelector: 'spec.nodeName' } });
  assert.deepEqual(rest, none);
  assert.match(evaluationError, /invalid selector/);
});

test('paths and the name of what allows are in the answer', async () => {
  const path = await review('SubjectAccessReview', {
    nonResourceAttributes: { path: '/healthz', verb: 'get' },
    user: 'jane',
    groups: ['system:authenticated'],
  });
  assert.deepEqual(path.json.status, {
    allowed: true,
    reason:
      'RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"',
  });
});

test('what a node may do is no list of rules', async () => {
  const { json } = await plane.ask(`POST ${ROOT}/selfsubjectrulesreviews`, {
    as: ['system:node:n1', 'system:nodes'],
    body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } },
  });
  assert.equal(json.status.incomplete, true);
  assert.equal(json.status.evaluationError, 'node authorizer does not support user rule resolution');
});

// Compat Authorisation, P0, yes: SubjectAccessReview and its kin, SelfSubjectRulesReview
test('questions that are none are 422, with every field that is wrong', async () => {
  const resourceAttributes = { verb: 'get', resource: 'pods' };
  for (const [kind, spec, message, path] of [
    [
      'SelfSubjectAccessReview',
      {},
      /spec\.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes/,
    ],
    [
      'SelfSubjectAccessReview',
      { resourceAttributes, nonResourceAttributes: { path: '/' } },
      /spec\.nonResourceAttributes: Invalid value: \{"path":"\/"\}: cannot be specified in combination with resourceAttributes/,
    ],
    [
      'SubjectAccessReview',
      { resourceAttributes },
      /spec\.user: Invalid value: "": at least one of user or group must be specified/,
    ],
    [
      'SubjectAccessReview',
      {
        resourceAttributes: {
          ...resourceAttributes,
          fieldSelector: { rawSelector: 'a=b', requirements: [{ key: 'a', operator: 'Exists' }] },
        },
        user: 'u',
      },
      /fieldSelector\.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements/,
    ],
    [
      'LocalSubjectAccessReview',
      { resourceAttributes: { ...resourceAttributes, namespace: 'other' }, user: 'u' },
      /spec\.resourceAttributes\.namespace: Invalid value: "other": must match metadata\.namespace/,
      'namespaces/default/localsubjectaccessreviews',
    ],
  ] as const) {
    const { status, json } = await review(kind, spec, path);
    assert.equal(status, 422, JSON.stringify(json));
    assert.match(json.message, message);
  }
});

// S-272
// Compat Authorisation, P2, yes: reviews of one's own and of others take no metadata
test('a question has no metadata of its own', async () => {
  const spec = { user: 'u', resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'default' } };
  const ask = (path: string, kind: string, metadata: object) =>
    plane.ask(`POST ${ROOT}/${path}`, {
      as: ['admin', 'system:masters'],
      body: { apiVersion: 'authorization.k8s.io/v1', kind, metadata, spec },
    });
  const local = 'namespaces/default/localsubjectaccessreviews';
  for (const [path, kind, metadata, message] of [
    [
      'subjectaccessreviews',
      'SubjectAccessReview',
      { name: 'x' },
      'metadata: Invalid value: {"name":"x"}: must be empty',
    ],
    ['selfsubjectaccessreviews', 'SelfSubjectAccessReview', { labels: { a: 'b' } }, 'must be empty'],
    [local, 'LocalSubjectAccessReview', { name: 'x' }, 'must be empty except for namespace'],
  ] as const) {
    const { status, json } = await ask(path, kind, metadata);
    assert.deepEqual([status, json.message.endsWith(message)], [422, true], json.message);
  }
  const managedFields = [{ manager: 'm', operation: 'Update' }];
  const empty = { labels: {}, creationTimestamp: null, managedFields };
  assert.equal((await ask('subjectaccessreviews', 'SubjectAccessReview', empty)).status, 201);
  assert.equal((await ask(local, 'LocalSubjectAccessReview', { namespace: 'default' })).status, 201);
});

// S-272
// Compat Authentication and impersonation, P1, yes: TokenRequest answers with kind and apiVersion, and binds to nothing
//   else
test('a token request answers with its kind, and binds to three core kinds only', async () => {
  const ask = (boundObjectRef?: object) =>
    plane.ask('POST /api/v1/namespaces/default/serviceaccounts/default/token', {
      as: ['admin', 'system:masters'],
      body: { spec: { ...(boundObjectRef && { boundObjectRef }) } },
    });
  await plane.ask('POST /api/v1/namespaces/default/serviceaccounts', {
    as: ['admin', 'system:masters'],
    body: { metadata: { name: 'default' } },
  });
  const { json } = await ask();
  assert.deepEqual([json.kind, json.apiVersion], ['TokenRequest', 'authentication.k8s.io/v1']);
  const type = 'cannot bind token for serviceaccount to object of type';
  for (const [ref, code, message] of [
    [{ kind: 'Pod', apiVersion: 'apps/v1', name: 'x' }, 400, `${type} apps/v1, Kind=Pod`],
    [{ kind: 'ConfigMap', apiVersion: 'v1', name: 'x' }, 400, `${type} /v1, Kind=ConfigMap`],
    [{ kind: 'Pod', apiVersion: 'v1', name: 'x' }, 404, 'pods "x" not found'],
  ] as const) {
    const answer = await ask(ref);
    assert.deepEqual([answer.status, answer.json.message], [code, message]);
  }
});

test('a token request is read strictly where that is asked', async () => {
  const ask = (query: string) =>
    plane.ask(`POST /api/v1/namespaces/default/serviceaccounts/default/token${query}`, {
      as: ['admin', 'system:masters'],
      body: { metadata: { labels: { a: 'b' } }, spec: { odd: 1 } },
    });
  const { status, json } = await ask('?fieldValidation=Strict');
  assert.deepEqual(
    [status, json.message],
    [
      400,
      'TokenRequest in version "v1" cannot be handled as a TokenRequest: strict decoding error: unknown field "spec.odd"',
    ],
  );
  const warned = await ask('');
  assert.equal(warned.headers['warning'], '299 - "unknown field \\"spec.odd\\""');
  const { spec, metadata } = warned.json;
  assert.deepEqual([metadata.labels, spec.boundObjectRef, spec.expirationSeconds], [{ a: 'b' }, null, 3600]);
});

test('policies see a token request whole, and are asked about no account that is not there', async () => {
  const as: [string, string] = ['admin', 'system:masters'];
  const group = '/apis/admissionregistration.k8s.io/v1';
  const rule = {
    apiGroups: [''],
    apiVersions: ['v1'],
    operations: ['CREATE'],
    resources: ['serviceaccounts/token'],
  };
  const expression =
    "object.metadata.name == 'nobody' || object.metadata.namespace == 'default' && object.spec.audiences.size() == 2";
  await plane.ask(`POST ${group}/validatingadmissionpolicies`, {
    as,
    body: {
      metadata: { name: 'whole' },
      spec: {
        matchConstraints: { resourceRules: [rule] },
        validations: [
          { expression, messageExpression: "object.metadata.name + ' of ' + object.spec.audiences.join(' ')" },
        ],
      },
    },
  });
  await plane.ask(`POST ${group}/validatingadmissionpolicybindings`, {
    as,
    body: { metadata: { name: 'whole' }, spec: { policyName: 'whole', validationActions: ['Deny'] } },
  });
  const ask = (name: string) =>
    plane.ask(`POST /api/v1/namespaces/default/serviceaccounts/${name}/token`, { as, body: {} });
  const denied = await ask('default');
  assert.equal(denied.status, 422);
  assert.match(denied.json.message, /denied request: default of https?:\/\/\S+$/);
  assert.equal((await ask('nobody')).status, 404);
  await plane.ask(`DELETE ${group}/validatingadmissionpolicybindings/whole`, { as });
});

test('a token request names its account as the URL does, and by its uid', async () => {
  const ask = (metadata: object) =>
    plane.ask('POST /api/v1/namespaces/default/serviceaccounts/default/token', {
      as: ['admin', 'system:masters'],
      body: { metadata, spec: {} },
    });
  const { uid } = (await ask({})).json.metadata;
  assert.equal((await ask({ name: 'default', namespace: 'default', uid })).status, 201);
  const reply = async (metadata: object): Promise<unknown[]> => {
    const { status, json } = await ask(metadata);
    return [status, json.message];
  };
  assert.deepEqual(await reply({ name: 'x' }), [
    422,
    'TokenRequest.authentication.k8s.io "default" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified',
  ]);
  assert.deepEqual(await reply({ namespace: 'x' }), [
    400,
    'the namespace of the provided object does not match the namespace sent on the request',
  ]);
  assert.deepEqual(await reply({ uid: 'x' }), [
    409,
    `Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "default": the UID in the token request (x) does not match the UID of the service account (${uid})`,
  ]);
});

test('who am I: the answer is made anew and says when', async () => {
  const { json } = await plane.ask('POST /apis/authentication.k8s.io/v1/selfsubjectreviews', {
    as: ['jane'],
    body: { kind: 'SelfSubjectReview', apiVersion: 'authentication.k8s.io/v1', metadata: { labels: { a: 'b' } } },
  });
  assert.deepEqual(Object.keys(json.metadata), ['creationTimestamp']);
  assert.equal(json.status.userInfo.username, 'jane');
});
