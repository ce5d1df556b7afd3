import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldErrorBody } from '../../../meta/status.ts';
import { builtinResource } from '../builtin-resources.ts';

/** Errors of a Pod as `field: message`. */
function errors(resourceClaims: object[], container: object = {}, name = 'p'): string[] {
  const info = builtinResource({ group: '', version: 'v1', resource: 'pods' }) ?? assert.fail();
  const pod = { metadata: { name }, spec: { resourceClaims, containers: [{ name: 'c', image: 'i', ...container }] } };
  return [...(info.validate?.(pod) ?? [])].map((error) => `${error.field}: ${fieldErrorBody(error)}`);
}
const claim = { name: 'a', resourceClaimName: 'b' };
const at = 'spec.resourceClaims[0]';
const using = (...claims: object[]): object => ({ resources: { claims } });
const used = 'spec.containers[0].resources.claims';

test('a claim of a Pod has a name and one source', () => {
  assert.deepEqual(errors([claim]), []);
  assert.deepEqual(errors([{ ...claim, name: '' }]), [`${at}.name: Required value`]);
  assert.deepEqual(errors([claim, claim]), ['spec.resourceClaims[1].name: Duplicate value: "a"']);
  assert.deepEqual(errors([{ name: 'a' }]), [
    `${at}: Invalid value: {"Name":"a","ResourceClaimName":null,"ResourceClaimTemplateName":null}: must specify one of: \`resourceClaimName\`, \`resourceClaimTemplateName\``,
  ]);
  assert.deepEqual(errors([{ ...claim, resourceClaimTemplateName: 't' }]), [
    `${at}: Invalid value: {"Name":"a","ResourceClaimName":"b","ResourceClaimTemplateName":"t"}: at most one of \`resourceClaimName\` or \`resourceClaimTemplateName\` may be specified`,
  ]);
  assert.match(errors([{ ...claim, resourceClaimName: 'B' }]).join(), /resourceClaimName: Invalid value: "B": a lower/);
  const [long] = errors([{ name: 'a', resourceClaimTemplateName: 't' }], {}, 'p'.repeat(252));
  assert.match(long ?? '', /: final ResourceClaim name: must be no more than 253 (?:bytes|characters)$/);
});

// Compat Types, P2, yes: `resourceClaims` of Pods and the claims of their containers
test('containers use the claims of their Pod, each once', () => {
  assert.deepEqual(errors([claim], using({ name: 'a', request: 'r' }, { name: 'a', request: 's' })), []);
  assert.deepEqual(errors([claim], using({ name: 'a' }, { name: 'a' }, { name: '' })), [
    `${used}[1]: Duplicate value: "a"`,
    `${used}[2]: Required value`,
  ]);
  assert.deepEqual(errors([claim], using({ name: 'z' })), [
    `${used}[0]: Not found: "z": must be one of the names in pod.spec.resourceClaims: a`,
  ]);
  assert.deepEqual(errors([], using({ name: 'z' })), [
    `${used}[0]: Not found: "z": must be one of the names in pod.spec.resourceClaims which is empty`,
  ]);
});

test('a variable out of a file says where that is', () => {
  const from = (fileKeyRef: object): string[] => errors([], { env: [{ name: 'N', valueFrom: { fileKeyRef } }] });
  const path = 'spec.containers[0].env[0].valueFrom.fileKeyRef';
  assert.deepEqual(from({ key: 'K', volumeName: 'v', path: 'a/b' }), []);
  assert.deepEqual(
    from({}),
    ['key', 'volumeName', 'path'].map((field) => `${path}.${field}: Required value`),
  );
  assert.deepEqual(from({ key: 'K', volumeName: 'v', path: '../b' }), [
    `${path}.path: Invalid value: "../b": must not contain '..'`,
  ]);
});
