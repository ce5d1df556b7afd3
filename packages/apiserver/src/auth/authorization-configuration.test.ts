import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refuses } from '../../../../test/testkit/refuses.ts';
import { readAuthorizationConfiguration } from './authorization-configuration.ts';

// biome-ignore lint/suspicious/noExplicitAny: configurations, wrong ones among them.
type Json = any;

const HOOK = {
  timeout: '3s',
  subjectAccessReviewVersion: 'v1',
  failurePolicy: 'Deny',
  connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: '/there' },
};
const configuration = (...authorizers: Json[]) => ({
  apiVersion: 'apiserver.config.k8s.io/v1',
  kind: 'AuthorizationConfiguration',
  authorizers,
});
const hook = (more: object = {}) => ({ type: 'Webhook', name: 'hook', webhook: { ...HOOK, ...more } });
const read = (document: unknown, initialTypes?: ReadonlySet<string>) =>
  readAuthorizationConfiguration(typeof document === 'string' ? document : JSON.stringify(document), {
    fileProblem: (path) =>
      path === '/there' ? undefined : `error loading file: stat ${path}: no such file or directory`,
    ...(initialTypes && { initialTypes }),
  });

test('authorizers in their order, webhooks with their defaults', () => {
  const [first, node, second] = read(
    configuration(
      hook({ matchConditionSubjectAccessReviewVersion: 'v1', matchConditions: [{ expression: `request.user != ''` }] }),
      { type: 'Node', name: 'node' },
      {
        ...hook({ cacheAuthorizedRequests: false, unauthorizedTTL: '1m30s', authorizedTTL: '1h' }),
        name: 'other.hook',
      },
    ),
  );
  assert.deepEqual(node, { type: 'Node' });
  assert.ok(first?.type === 'Webhook' && second?.type === 'Webhook');
  const { conditions, ...rest } = first.webhook;
  assert.equal(conditions.length, 1);
  assert.deepEqual(rest, {
    name: 'hook',
    timeoutMs: 3000,
    authorizedMs: 300_000,
    unauthorizedMs: 30_000,
    version: 'v1',
    failurePolicy: 'Deny',
    kubeConfigFile: '/there',
  });
  assert.deepEqual([second.webhook.authorizedMs, second.webhook.unauthorizedMs], [0, 90_000]);
});

const REFUSED: readonly (readonly [name: string, document: unknown, message: string | RegExp])[] = [
  ['nothing in it', configuration(), 'authorizers: Required value: at least one authorization mode must be defined'],
  ['no type', configuration({ name: 'a' }), 'authorizers[0].type: Required value'],
  [
    'a type nobody knows',
    configuration({ type: 'Magic', name: 'a' }),
    'authorizers[0].type: Unsupported value: "Magic": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"',
  ],
  [
    'a type twice',
    configuration({ type: 'RBAC', name: 'rbac' }, { type: 'RBAC', name: 'b' }),
    'authorizers[1].type: Duplicate value: "RBAC"',
  ],
  ['no name', configuration({ type: 'RBAC' }), 'authorizers[0].name: Required value'],
  ['a name twice', configuration(hook(), hook()), 'authorizers[1].name: Duplicate value: "hook"'],
  [
    'an odd name',
    configuration({ ...hook(), name: 'A_B' }),
    /^authorizers\[0\]\.name: Invalid value: "A_B": authorizer name is invalid: /,
  ],
  [
    'another name than its own',
    configuration({ type: 'RBAC', name: 'mine' }),
    'expected name rbac for authorizer RBAC instead of mine',
  ],
  [
    'a webhook without one',
    configuration({ type: 'Webhook', name: 'a' }),
    'authorizers[0].webhook: Required value: required when type=Webhook',
  ],
  [
    'a webhook where there is none',
    configuration({ type: 'RBAC', name: 'rbac', webhook: HOOK }),
    'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook',
  ],
  ['no timeout', configuration(hook({ timeout: '0s' })), 'authorizers[0].timeout: Required value'],
  [
    'a long timeout',
    configuration(hook({ timeout: '61s' })),
    'authorizers[0].timeout: Invalid value: "1m1s": must be > 0s and <= 30s',
  ],
  [
    'a time before now',
    configuration(hook({ authorizedTTL: '-1s' })),
    'authorizers[0].authorizedTTL: Invalid value: "-1s": must be > 0s',
  ],
  [
    'several mistakes',
    configuration(hook({ subjectAccessReviewVersion: 'v2', failurePolicy: undefined })),
    '[authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1", authorizers[0].failurePolicy: Required value]',
  ],
  [
    'no file',
    configuration(hook({ connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: '/gone' } })),
    'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/gone": error loading file: stat /gone: no such file or directory',
  ],
  [
    'a file from somewhere',
    configuration(hook({ connectionInfo: { type: 'KubeConfigFile', kubeConfigFile: 'there' } })),
    'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "there": must be an absolute path',
  ],
  [
    'conditions of no version',
    configuration(hook({ matchConditions: [{ expression: 'true' }] })),
    'authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified',
  ],
  [
    'conditions that are none',
    configuration(
      hook({
        matchConditionSubjectAccessReviewVersion: 'v1',
        matchConditions: [
          { expression: 'request.user' },
          { expression: 'true' },
          { expression: 'true' },
          { expression: ' ' },
        ],
      }),
    ),
    '[authorizers[0].matchConditions[0].expression: Invalid value: "request.user": must evaluate to bool but got string, authorizers[0].matchConditions[2].expression: Duplicate value: "true", authorizers[0].matchConditions[3].expression: Required value]',
  ],
  [
    'a condition about nothing',
    configuration(
      hook({ matchConditionSubjectAccessReviewVersion: 'v1', matchConditions: [{ expression: 'request.name == ""' }] }),
    ),
    /Invalid value: "request\.name == \\"\\"": compilation failed: ERROR: <input>:1:8: undefined field 'name'/,
  ],
  [
    'a field nobody knows',
    configuration(hook({ retries: 1 })),
    'failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "authorizers[0].webhook.retries"',
  ],
  ['a field of another type', configuration(hook({ timeout: 3 })), /^failed to load .*expected string, got number 3/],
  [
    'another kind',
    { ...configuration(), kind: 'Other' },
    /^failed to load .*no kind "Other" is registered for version "apiserver\.config\.k8s\.io\/v1" in scheme/,
  ],
  [
    'a kind for something else',
    { ...configuration(), kind: 'AuthenticationConfiguration' },
    'failed to load AuthorizationConfiguration from file: expected AuthorizationConfiguration, got *apiserver.AuthenticationConfiguration',
  ],
  ['no kind', 'a: b', /^failed to load .*Object 'Kind' is missing in/],
  ['no document', '[', /^failed to load /],
];
for (const [name, document, message] of REFUSED) {
  // S-289: What is wrong in a file of authentication or authorisation is reported in one line of upstream's words.
  test(`refused: ${name}`, () => {
    refuses(() => read(document), message);
  });
}

test('what takes the place of another keeps its types', () => {
  const initial = new Set(['Node', 'RBAC']);
  const [node, rbac] = [
    { type: 'Node', name: 'node' },
    { type: 'RBAC', name: 'rbac' },
  ];
  assert.equal(read(configuration(node, hook(), rbac), initial).length, 3);
  assert.throws(() => read(configuration(rbac), initial), /^Error: missing required types: \[Node\]$/);
  assert.throws(
    () => read(configuration(node, rbac), new Set(['Node'])),
    /authorizer type RBAC is not allowed if it was not enabled at initial server startup/,
  );
});
